// What the operator asks of hosts of all kinds, with the bodies that it sends at the version that it prefers. Debian's
// gophercloud, of 2020, has no calls of their own for most of it, so these go through its client as they are.
//
// A visit is to all hosts at once; its answer has what was found by the name of each.
package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack/baremetal/v1/nodes"
)

// The version that the operator prefers.
const preferred = "1.110"

// A host, as its kind of BMC has it.
type host struct {
	Name        string
	Driver      string
	Interfaces  object
	DriverInfo  object `json:"driver_info"`
	MACs        []string
	Agent       object // deploy_kernel, deploy_ramdisk, kernel_append_params
	Fast        bool   // inspected by its BMC, too
	RAID        string `json:"raid"` // interface that builds arrays
	Disks       []object
	CleanSteps  []object `json:"clean_steps"`
	Service     []object `json:"service_steps"`
	DeploySteps []object `json:"deploy_steps"`
	Image       object
	ISO         string `json:"iso"`
	Data        string // URL of a data image
	Events      string // where events of the BMC are sent
	ConfigDrive object `json:"configdrive"`
	UID         string
}

type errand func(*gophercloud.ServiceClient, host) (interface{}, error)

var errands = map[string]errand{
	"hosts-enroll":    enroll,
	"hosts-prepare":   prepareHost,
	"hosts-provision": provisionHost,
	"hosts-day-two":   dayTwo,
	"hosts-other":     deployOtherwise,
	"hosts-leave":     leave,
}

// Sends all hosts through an errand at once; every error is told.
func everywhere(work errand) visit {
	return func(client *gophercloud.ServiceClient, wanted order) (interface{}, error) {
		client.Microversion = preferred
		found, problems := object{}, []string{}
		var guard sync.Mutex
		var group sync.WaitGroup
		for _, one := range wanted.Hosts {
			group.Add(1)
			go func(one host) {
				defer group.Done()
				answer, err := work(client, one)
				guard.Lock()
				defer guard.Unlock()
				found[one.Name] = answer
				if err != nil {
					problems = append(problems, one.Name+": "+err.Error())
				}
			}(one)
		}
		group.Wait()
		if len(problems) > 0 {
			return nil, fmt.Errorf("%s", strings.Join(problems, "\n"))
		}
		return found, nil
	}
}

func ask(client *gophercloud.ServiceClient, method string, path []string, body interface{}) (object, error) {
	var answer object
	opts := &gophercloud.RequestOpts{JSONBody: body, OkCodes: []int{200, 201, 202, 204}, MoreHeaders: map[string]string{
		"X-OpenStack-Ironic-API-Version": preferred,
	}}
	err := patient(func() error {
		answer = nil
		response, err := client.ProviderClient.Request(method, client.ServiceURL(path...), withAnswer(opts, method, &answer))
		if err == nil && response.StatusCode == http.StatusNoContent {
			answer = object{}
		}
		return err
	})
	return answer, err
}

// Only what answers with an object is read as one.
func withAnswer(opts *gophercloud.RequestOpts, method string, answer *object) *gophercloud.RequestOpts {
	own := *opts
	if method == "GET" || method == "POST" {
		own.JSONResponse = answer
	}
	return &own
}

func change(client *gophercloud.ServiceClient, name string, values object) error {
	changes := []object{}
	for path, value := range values {
		if value == nil {
			changes = append(changes, object{"op": "remove", "path": path})
		} else {
			changes = append(changes, object{"op": "add", "path": path, "value": value})
		}
	}
	_, err := ask(client, "PATCH", []string{"nodes", name}, changes)
	return err
}

func lead(client *gophercloud.ServiceClient, one host, body object, end string) (*nodes.Node, error) {
	if _, err := ask(client, "PUT", []string{"nodes", one.Name, "states", "provision"}, body); err != nil {
		return nil, fmt.Errorf("%v: %v", body["target"], err)
	}
	return wait(client, one.Name, func(node *nodes.Node) bool {
		return node.ProvisionState == end && node.TargetProvisionState == ""
	})
}

// Registers a host and its port, verifies the access, says from what the agent boots, and inspects.
func enroll(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	body := object{
		"name": one.Name, "driver": one.Driver, "driver_info": one.DriverInfo, "inspect_interface": "agent",
		"disable_power_off": false,
		"properties":        object{"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
	}
	for name, value := range one.Interfaces {
		body[name] = value
	}
	node, err := ask(client, "POST", []string{"nodes"}, body)
	if err != nil {
		return nil, err
	}
	port := object{"node_uuid": node["uuid"], "address": one.MACs[0], "pxe_enabled": true}
	if _, err = ask(client, "POST", []string{"ports"}, port); err != nil {
		return nil, err
	}
	if _, err = lead(client, one, object{"target": "manage"}, "manageable"); err != nil {
		return nil, err
	}
	values := object{"/automated_clean": false}
	for name, value := range one.Agent {
		values["/driver_info/"+name] = value
	}
	if err = change(client, one.Name, values); err != nil {
		return nil, err
	}
	return inspect(client, one)
}

func inspect(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	found := object{}
	ways := []string{"agent"}
	if one.Fast {
		ways = append(ways, "redfish")
	}
	for _, way := range ways {
		if err := change(client, one.Name, object{"/inspect_interface": way}); err != nil {
			return nil, err
		}
		if _, err := lead(client, one, object{"target": "inspect"}, "manageable"); err != nil {
			return nil, err
		}
		inventory, err := ask(client, "GET", []string{"nodes", one.Name, "inventory"}, nil)
		if err != nil {
			return nil, err
		}
		found[way] = inventory
	}
	return found, nil
}

// Builds arrays, applies settings and updates firmware, as steps of one manual cleaning.
func prepareHost(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	if err := change(client, one.Name, object{"/raid_interface": one.RAID}); err != nil {
		return nil, err
	}
	disks := object{"logical_disks": one.Disks}
	if _, err := ask(client, "PUT", []string{"nodes", one.Name, "states", "raid"}, disks); err != nil {
		return nil, err
	}
	node, err := lead(client, one, object{"target": "clean", "clean_steps": one.CleanSteps}, "manageable")
	if err != nil {
		return nil, err
	}
	settings, err := ask(client, "GET", []string{"nodes", one.Name, "bios?detail=True"}, nil)
	if err != nil {
		return nil, err
	}
	firmware, err := ask(client, "GET", []string{"nodes", one.Name, "firmware"}, nil)
	return object{"raid": node.RAIDConfig, "bios": settings["bios"], "firmware": firmware["firmware"]}, err
}

// Makes a host available if it is not, and deploys what its instance says.
func provisionHost(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	if _, err := lead(client, one, object{"target": "provide"}, "available"); err != nil {
		return nil, err
	}
	return deployHost(client, one, one.Image, "autodetect", nil)
}

func deployHost(
	client *gophercloud.ServiceClient, one host, instance object, way string, steps []object,
) (interface{}, error) {
	values := object{"/instance_uuid": one.UID, "/deploy_interface": way, "/instance_info": instance}
	if err := change(client, one.Name, values); err != nil {
		return nil, err
	}
	checked, err := nodes.Validate(client, one.Name).Extract()
	if err != nil {
		return nil, err
	}
	if !checked.Boot.Result || !checked.Deploy.Result {
		return nil, fmt.Errorf("host validation error: %v", checked)
	}
	body := object{"target": "active", "configdrive": one.ConfigDrive}
	if steps != nil {
		body["deploy_steps"] = steps
	}
	node, err := lead(client, one, body, "active")
	if err != nil {
		return nil, err
	}
	return object{"state": node.ProvisionState, "power": node.PowerState, "way": way}, nil
}

// What happens to a host that runs: settings and firmware, a data image, events of its BMC.
func dayTwo(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	if _, err := lead(client, one, object{"target": "service", "service_steps": one.Service}, "active"); err != nil {
		return nil, err
	}
	image := object{"device_type": "cdrom", "image_url": one.Data}
	if _, err := ask(client, "POST", []string{"nodes", one.Name, "vmedia"}, image); err != nil {
		return nil, err
	}
	attached, err := inserted(client, one)
	if err != nil {
		return nil, err
	}
	if _, err = ask(client, "DELETE", []string{"nodes", one.Name, "vmedia?device_types=cdrom"}, nil); err != nil {
		return nil, err
	}
	left, err := inserted(client, one)
	if err != nil {
		return nil, err
	}
	return object{"attached": attached, "left": left}, subscribe(client, one)
}

func inserted(client *gophercloud.ServiceClient, one host) ([]string, error) {
	var drives []object
	_, err := client.Get(client.ServiceURL("nodes", one.Name, "vmedia"), &drives, nil)
	images := []string{}
	for _, drive := range drives {
		if drive["inserted"] == true {
			images = append(images, fmt.Sprint(drive["image"]))
		}
	}
	return images, err
}

func subscribe(client *gophercloud.ServiceClient, one host) error {
	body := object{"Destination": one.Events, "Context": one.Name, "HttpHeaders": []object{{"Authorization": "Bearer x"}}}
	made, err := ask(client, "POST", []string{"nodes", one.Name, "vendor_passthru?method=create_subscription"}, body)
	if err != nil {
		return err
	}
	body = object{"id": made["Id"]}
	_, err = ask(client, "DELETE", []string{"nodes", one.Name, "vendor_passthru?method=delete_subscription"}, body)
	return err
}

// Deploys what is no disk image: a live image, and the agent's own step.
func deployOtherwise(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	found := []interface{}{}
	for _, way := range []string{"ramdisk", "custom-agent"} {
		if _, err := lead(client, one, object{"target": "deleted"}, "available"); err != nil {
			return nil, err
		}
		instance, steps := object{"boot_iso": one.ISO}, []object(nil)
		if way == "custom-agent" {
			instance, steps = object{}, one.DeploySteps
		}
		deployed, err := deployHost(client, one, instance, way, steps)
		if err != nil {
			return nil, fmt.Errorf("%s: %v", way, err)
		}
		found = append(found, deployed)
	}
	return found, nil
}

// Deprovisions a host and forgets it.
func leave(client *gophercloud.ServiceClient, one host) (interface{}, error) {
	node, err := lead(client, one, object{"target": "deleted"}, "available")
	if err != nil {
		return nil, err
	}
	_, err = ask(client, "DELETE", []string{"nodes", one.Name}, nil)
	return node.PowerState, err
}
