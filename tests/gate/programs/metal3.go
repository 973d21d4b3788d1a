// What Metal3's baremetal-operator asks of the bare-metal API, with the client it is built on: gophercloud.
//
// A run is one visit of the operator to a host: `metal3 VISIT` reads a JSON object that says where the API is and what is
// wanted of which host, does its part, waits until the machine is there, and writes a JSON object. An error goes to the
// standard error, and the exit status is 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack/baremetal/apiversions"
	"github.com/gophercloud/gophercloud/openstack/baremetal/httpbasic"
	"github.com/gophercloud/gophercloud/openstack/baremetal/noauth"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/drivers"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/nodes"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/ports"
)

// The oldest version of the API that the operator speaks.
const microversion = "1.89"

const patience = 60 * time.Second
const pause = 200 * time.Millisecond

type object = map[string]interface{}

// What a visit is told.
type order struct {
	Endpoint    string
	User        string
	Password    string
	Name        string
	Driver      string
	DriverInfo  object   `json:"driver_info"`
	MACs        []string `json:"macs"`
	Image       object
	ConfigDrive nodes.ConfigDrive `json:"configdrive"`
	Hosts       []host
}

type visit func(*gophercloud.ServiceClient, order) (interface{}, error)

var visits = map[string]visit{
	"ready":       ready,
	"register":    register,
	"inventory":   inventory,
	"prepare":     prepare,
	"provision":   provision,
	"power":       power,
	"deprovision": deprovision,
	"delete":      remove,
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string) error {
	var wanted order
	if err := json.NewDecoder(os.Stdin).Decode(&wanted); err != nil {
		return err
	}
	client, err := connect(wanted)
	if err != nil {
		return err
	}
	work, known := visits[name]
	if !known {
		work = everywhere(errands[name])
	}
	answer, err := work(client, wanted)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

func connect(wanted order) (client *gophercloud.ServiceClient, err error) {
	if wanted.User == "" {
		client, err = noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: wanted.Endpoint})
	} else {
		client, err = httpbasic.NewBareMetalHTTPBasic(httpbasic.EndpointOpts{
			IronicEndpoint:     wanted.Endpoint,
			IronicUser:         wanted.User,
			IronicUserPassword: wanted.Password,
		})
	}
	if err == nil {
		client.Microversion = microversion
	}
	return client, err
}

// The operator begins when the API serves its version and there is a driver.
func ready(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	root := *client
	root.Endpoint = strings.TrimSuffix(client.Endpoint, "v1/")
	version, err := apiversions.Get(&root, "v1").Extract()
	if err != nil {
		return nil, err
	}
	pages, err := drivers.ListDrivers(client, drivers.ListDriversOpts{Detail: true}).AllPages()
	if err != nil {
		return nil, err
	}
	found, err := drivers.ExtractDrivers(pages)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, driver := range found {
		names = append(names, driver.Name)
	}
	sort.Strings(names)
	properties, err := drivers.GetDriverProperties(client, wanted.Driver).Extract()
	if err != nil {
		return nil, err
	}
	return object{"versions": []string{version.MinVersion, version.Version}, "drivers": names, "properties": properties}, nil
}

// Enrolls a host with its ports, unless it is known by its name or one of its addresses, and verifies the access to it.
func register(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	known, err := find(client, wanted)
	if err != nil {
		return nil, err
	}
	if known == nil {
		if known, err = create(client, wanted); err != nil {
			return nil, err
		}
	}
	if err = patch(client, known.UUID, object{"/automated_clean": false, "/extra": object{"managed": "metal3"}}); err != nil {
		return nil, err
	}
	node, err := target(client, known.UUID, nodes.ProvisionStateOpts{Target: nodes.TargetManage}, "manageable")
	if err != nil {
		return nil, err
	}
	pages, err := ports.ListDetail(client, ports.ListOpts{NodeUUID: node.UUID, Limit: 1}).AllPages()
	if err != nil {
		return nil, err
	}
	found, err := ports.ExtractPorts(pages)
	if err != nil {
		return nil, err
	}
	boots := object{}
	for _, port := range found {
		boots[port.Address] = port.PXEEnabled
	}
	again, err := find(client, wanted)
	if err != nil {
		return nil, err
	}
	return object{"node": node, "ports": boots, "found": again.UUID}, nil
}

func find(client *gophercloud.ServiceClient, wanted order) (*nodes.Node, error) {
	node, err := nodes.Get(client, wanted.Name).Extract()
	if err == nil {
		return node, nil
	}
	if _, missing := err.(gophercloud.ErrDefault404); !missing {
		return nil, err
	}
	for _, mac := range wanted.MACs {
		pages, err := ports.List(client, ports.ListOpts{Address: mac, Fields: []string{"node_uuid"}}).AllPages()
		if err != nil {
			return nil, err
		}
		found, err := ports.ExtractPorts(pages)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return nodes.Get(client, found[0].NodeUUID).Extract()
		}
	}
	return nil, nil
}

func create(client *gophercloud.ServiceClient, wanted order) (*nodes.Node, error) {
	node, err := nodes.Create(client, nodes.CreateOpts{
		Driver:              wanted.Driver,
		Name:                wanted.Name,
		DriverInfo:          wanted.DriverInfo,
		BootInterface:       "ipxe",
		DeployInterface:     "direct",
		InspectInterface:    "no-inspect",
		ManagementInterface: "ipmitool",
		PowerInterface:      "ipmitool",
		RAIDInterface:       "agent",
		NetworkInterface:    "noop",
		Properties:          object{"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
	}).Extract()
	if err != nil {
		return nil, err
	}
	enabled := true
	for _, mac := range wanted.MACs {
		opts := ports.CreateOpts{NodeUUID: node.UUID, Address: mac, PXEEnabled: &enabled}
		if _, err = ports.Create(client, opts).Extract(); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// What an inspection found. Debian's gophercloud, of 2020, has no call of its own for it.
func inventory(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	var found object
	_, err := client.Get(client.ServiceURL("nodes", wanted.Name, "inventory"), &found, nil)
	return found, err
}

// Builds a software RAID by manual cleaning.
func prepare(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	root := true
	disks := []nodes.LogicalDisk{{RAIDLevel: nodes.RAID1, Controller: "software", IsRootVolume: &root}}
	err := patient(func() error {
		return nodes.SetRAIDConfig(client, wanted.Name, nodes.RAIDConfigOpts{LogicalDisks: disks}).ExtractErr()
	})
	if err != nil {
		return nil, err
	}
	return target(client, wanted.Name, nodes.ProvisionStateOpts{
		Target: nodes.TargetClean,
		CleanSteps: []nodes.CleanStep{
			{Interface: "raid", Step: "delete_configuration"},
			{Interface: "deploy", Step: "erase_devices_metadata"},
			{Interface: "raid", Step: "create_configuration"},
		},
	}, "manageable")
}

// Makes a host available and puts the image on it.
func provision(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	_, err := target(client, wanted.Name, nodes.ProvisionStateOpts{Target: nodes.TargetProvide}, "available")
	if err != nil {
		return nil, err
	}
	changes := object{"/instance_uuid": "6b1f4f0e-6a1c-4b5b-8f6e-0d6a4c1f2a77"}
	for name, value := range wanted.Image {
		changes["/instance_info/"+name] = value
	}
	if err = patch(client, wanted.Name, changes); err != nil {
		return nil, err
	}
	checked, err := nodes.Validate(client, wanted.Name).Extract()
	if err != nil {
		return nil, err
	}
	if !checked.Boot.Result || !checked.Deploy.Result || !checked.Power.Result {
		return nil, fmt.Errorf("host validation error: %v", checked)
	}
	opts := nodes.ProvisionStateOpts{Target: nodes.TargetActive, ConfigDrive: wanted.ConfigDrive}
	node, err := target(client, wanted.Name, opts, "active")
	if err != nil {
		return nil, err
	}
	return object{"node": node, "inspect": checked.Inspect}, nil
}

// Switches a host off as its system is asked to, and on; then sets the device it boots from.
func power(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	reached := []string{}
	for _, opts := range []nodes.PowerStateOpts{
		{Target: nodes.SoftPowerOff, Timeout: 30}, {Target: nodes.PowerOn}, {Target: nodes.Rebooting}, {Target: nodes.PowerOff},
	} {
		change := opts
		err := patient(func() error { return nodes.ChangePowerState(client, wanted.Name, change).ExtractErr() })
		if err != nil {
			return nil, err
		}
		node, err := wait(client, wanted.Name, func(node *nodes.Node) bool { return node.TargetPowerState == "" })
		if err != nil {
			return nil, err
		}
		reached = append(reached, node.PowerState)
	}
	device := nodes.BootDeviceOpts{BootDevice: "pxe", Persistent: false}
	if err := nodes.SetBootDevice(client, wanted.Name, device).ExtractErr(); err != nil {
		return nil, err
	}
	set, err := nodes.GetBootDevice(client, wanted.Name).Extract()
	if err != nil {
		return nil, err
	}
	supported, err := nodes.GetSupportedBootDevices(client, wanted.Name).Extract()
	if err != nil {
		return nil, err
	}
	return object{"reached": reached, "device": set, "supported": supported}, nil
}

func deprovision(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	return target(client, wanted.Name, nodes.ProvisionStateOpts{Target: nodes.TargetDeleted}, "available")
}

// Forgets a host, whatever state it is in: maintenance lets it go.
func remove(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
	node, err := find(client, wanted)
	if err != nil {
		return nil, err
	}
	if err = patch(client, node.UUID, object{"/maintenance": true}); err != nil {
		return nil, err
	}
	if err = patient(func() error { return nodes.Delete(client, node.UUID).ExtractErr() }); err != nil {
		return nil, err
	}
	pages, err := nodes.List(client, nodes.ListOpts{Fields: []string{"uuid", "name"}, Limit: 1}).AllPages()
	if err != nil {
		return nil, err
	}
	left, err := nodes.ExtractNodes(pages)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, node := range left {
		names = append(names, node.Name)
	}
	return object{"left": names}, nil
}

func patch(client *gophercloud.ServiceClient, id string, values object) error {
	var changes nodes.UpdateOpts
	for path, value := range values {
		changes = append(changes, nodes.UpdateOperation{Op: nodes.AddOp, Path: path, Value: value})
	}
	return patient(func() error {
		_, err := nodes.Update(client, id, changes).Extract()
		return err
	})
}

func target(client *gophercloud.ServiceClient, id string, opts nodes.ProvisionStateOpts, end string) (*nodes.Node, error) {
	if err := patient(func() error { return nodes.ChangeProvisionState(client, id, opts).ExtractErr() }); err != nil {
		return nil, err
	}
	return wait(client, id, func(node *nodes.Node) bool {
		return node.ProvisionState == end && node.TargetProvisionState == ""
	})
}

// A host that somebody works on is asked again, as the operator does at its next visit.
func patient(ask func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		err := ask()
		if _, conflict := err.(gophercloud.ErrDefault409); !conflict || time.Now().After(end) {
			return err
		}
	}
}

func wait(client *gophercloud.ServiceClient, id string, done func(*nodes.Node) bool) (*nodes.Node, error) {
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		node, err := nodes.Get(client, id).Extract()
		if err != nil {
			return nil, err
		}
		refused := node.ProvisionState == "enroll" && node.LastError != ""
		failed := refused || strings.HasSuffix(node.ProvisionState, "failed")
		if !failed && done(node) {
			return node, nil
		}
		if failed || time.Now().After(end) {
			return nil, fmt.Errorf("%s is %s, %s: %s", id, node.ProvisionState, node.PowerState, node.LastError)
		}
	}
}
