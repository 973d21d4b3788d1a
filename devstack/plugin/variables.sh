# What can be set in localrc, and its defaults. Names that begin with IRONIC are those of Ironic's plugin, with the same
# meaning: a localrc written for it works here, as far as Ingot has what it asks for.
# shellcheck shell=bash
# shellcheck disable=SC2034 # most are used by other files

INGOT_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# What runs
# ---------

# API and conductor in one process, ``ingot``, which needs no broker; False: a process for each.
INGOT_ALL_IN_ONE=$(trueorfalse False INGOT_ALL_IN_ONE)
# Conductors, each a service of its own on this host.
INGOT_CONDUCTORS=${INGOT_CONDUCTORS:-1}
# ingot_has_neutron, ingot_has_cinder: whether the cloud has it, on this host or on another one.
function ingot_has_neutron { is_service_enabled neutron q-svc neutron-api; }
function ingot_has_cinder { is_service_enabled cinder c-api; }

# Further dependencies that setup.cfg names, separated by commas: of the database, of Keystone's cache of tokens, and of
# the other services that are asked.
if ingot_has_neutron || ingot_has_cinder; then
    INGOT_EXTRAS=${INGOT_EXTRAS:-mysql,memcached,neutron,cinder}
else
    INGOT_EXTRAS=${INGOT_EXTRAS:-mysql,memcached}
fi
# Dependencies that DevStack's constraints hold at a release which is too old for Ingot: the newest that fits is installed.
INGOT_UNCONSTRAINED=${INGOT_UNCONSTRAINED:-sushy}

# ingot_conductor_services: prints the names of the services of all conductors. The first has the name of Ironic's.
function ingot_conductor_services {
    local number
    for ((number = 1; number <= INGOT_CONDUCTORS; number++)); do
        if ((number == 1)); then echo ir-cond; else echo "ir-cond-$number"; fi
    done
}

# Whether passwords of BMCs are encrypted in the database. Where conductors are on several hosts, each has a key of its own
# after stack.sh: say False on all of them, or copy the key, $IRONIC_STATE_PATH/secrets.key, and start them again.
INGOT_ENCRYPT_SECRETS=$(trueorfalse True INGOT_ENCRYPT_SECRETS)

# Where things are
# ----------------

IRONIC_BIN_DIR=$(get_python_exec_prefix)

# ingot_python: prints the Python of DevStack's environment, which has openstacksdk. Scripts of grenade have no PYTHON.
function ingot_python {
    if [[ "${GLOBAL_VENV:-}" == "True" ]]; then
        echo "$IRONIC_BIN_DIR/python3"
    else
        echo "${PYTHON:-$(command -v python3)}"
    fi
}

# The configuration. [[post-config|$IRONIC_CONF_FILE]] in local.conf adds to it.
IRONIC_CONF_DIR=${IRONIC_CONF_DIR:-/etc/ingot}
IRONIC_CONF_FILE=$IRONIC_CONF_DIR/ingot.conf
# Disks of the rack, images, keys.
IRONIC_DATA_DIR=${IRONIC_DATA_DIR:-$DATA_DIR/ingot}
IRONIC_STATE_PATH=${IRONIC_STATE_PATH:-$IRONIC_DATA_DIR/state}
# The database that is made anew by each stack.sh.
INGOT_DATABASE=${INGOT_DATABASE:-ingot}

# The API
# -------

# The API's own address, which machines use.
IRONIC_SERVICE_PORT=${IRONIC_SERVICE_PORT:-6385}
# The address in Keystone's catalog: Apache passes on what it gets there, with TLS if DevStack's tls-proxy is enabled.
IRONIC_SERVICE_PROTOCOL=${IRONIC_SERVICE_PROTOCOL:-$SERVICE_PROTOCOL}
IRONIC_HOSTPORT=${IRONIC_HOSTPORT:-$SERVICE_HOST/baremetal}
# keystone, or noauth: every user may do everything then.
IRONIC_AUTH_STRATEGY=${IRONIC_AUTH_STRATEGY:-keystone}
# Whether the scope of tokens counts. DevStack enrolls machines as administrator of the system then, else of a project.
IRONIC_ENFORCE_SCOPE=$(trueorfalse True IRONIC_ENFORCE_SCOPE)
if [[ "$IRONIC_ENFORCE_SCOPE" == "True" ]]; then
    IRONIC_OS_CLOUD=${IRONIC_OS_CLOUD:-devstack-system-admin}
else
    IRONIC_OS_CLOUD=${IRONIC_OS_CLOUD:-devstack-admin}
fi
# Seconds that the API and the conductors have to begin.
INGOT_START_TIMEOUT=${INGOT_START_TIMEOUT:-${SERVICE_TIMEOUT:-60}}

# Hardware types and interfaces
# -----------------------------

IRONIC_ENABLED_HARDWARE_TYPES=${IRONIC_ENABLED_HARDWARE_TYPES:-ipmi,redfish,fake-hardware}
IRONIC_ENABLED_BIOS_INTERFACES=${IRONIC_ENABLED_BIOS_INTERFACES:-fake,no-bios}
IRONIC_ENABLED_BOOT_INTERFACES=${IRONIC_ENABLED_BOOT_INTERFACES:-fake,ipxe}
IRONIC_ENABLED_CONSOLE_INTERFACES=${IRONIC_ENABLED_CONSOLE_INTERFACES:-fake,fake-graphical,no-console}
IRONIC_ENABLED_DEPLOY_INTERFACES=${IRONIC_ENABLED_DEPLOY_INTERFACES:-fake,direct,ramdisk}
IRONIC_ENABLED_FIRMWARE_INTERFACES=${IRONIC_ENABLED_FIRMWARE_INTERFACES:-fake,no-firmware}
IRONIC_ENABLED_INSPECT_INTERFACES=${IRONIC_ENABLED_INSPECT_INTERFACES:-fake,agent,no-inspect}
IRONIC_ENABLED_MANAGEMENT_INTERFACES=${IRONIC_ENABLED_MANAGEMENT_INTERFACES:-fake,ipmitool,redfish,noop}
if ingot_has_neutron; then
    IRONIC_ENABLED_NETWORK_INTERFACES=${IRONIC_ENABLED_NETWORK_INTERFACES:-flat,neutron,noop}
else
    IRONIC_ENABLED_NETWORK_INTERFACES=${IRONIC_ENABLED_NETWORK_INTERFACES:-noop}
fi
IRONIC_ENABLED_POWER_INTERFACES=${IRONIC_ENABLED_POWER_INTERFACES:-fake,ipmitool,redfish}
IRONIC_ENABLED_RAID_INTERFACES=${IRONIC_ENABLED_RAID_INTERFACES:-fake,agent,no-raid}
IRONIC_ENABLED_RESCUE_INTERFACES=${IRONIC_ENABLED_RESCUE_INTERFACES:-fake,agent,no-rescue}
if ingot_has_cinder; then
    IRONIC_ENABLED_STORAGE_INTERFACES=${IRONIC_ENABLED_STORAGE_INTERFACES:-cinder,noop}
else
    IRONIC_ENABLED_STORAGE_INTERFACES=${IRONIC_ENABLED_STORAGE_INTERFACES:-noop}
fi
IRONIC_ENABLED_VENDOR_INTERFACES=${IRONIC_ENABLED_VENDOR_INTERFACES:-fake,no-vendor}
INGOT_INTERFACES="bios boot console deploy firmware inspect management network power raid rescue storage vendor"
# IRONIC_DEFAULT_<KIND>_INTERFACE of each kind: what a node gets that names none. Unset: what its hardware type prefers.

# What conductors do
# ------------------

# Whether machines are cleaned before they become available, and after each use.
IRONIC_AUTOMATED_CLEAN_ENABLED=$(trueorfalse True IRONIC_AUTOMATED_CLEAN_ENABLED)
# Seconds that a deployment waits for the agent. Unset: Ingot's default.
IRONIC_CALLBACK_TIMEOUT=${IRONIC_CALLBACK_TIMEOUT:-}
# Whether an agent that waits on a powered machine is used without booting it anew.
IRONIC_DEPLOY_FAST_TRACK=$(trueorfalse False IRONIC_DEPLOY_FAST_TRACK)
# When the agent's logs are kept: always, on_failure or never.
IRONIC_DEPLOY_LOGS_COLLECT=${IRONIC_DEPLOY_LOGS_COLLECT:-always}
IRONIC_DEPLOY_LOGS_LOCAL_PATH=${IRONIC_DEPLOY_LOGS_LOCAL_PATH:-$IRONIC_DATA_DIR/logs}

# Machines
# --------

# True: the machines are real, and listed in IRONIC_HWINFO_FILE, one a line:
#   <BMC address> <MAC address> <BMC user> <BMC password>
IRONIC_IS_HARDWARE=$(trueorfalse False IRONIC_IS_HARDWARE)
IRONIC_HWINFO_FILE=${IRONIC_HWINFO_FILE:-$IRONIC_DATA_DIR/hardware_info}
# False: they are those of Ingot's virtual rack, with real BMCs (IPMI and Redfish): simulated, or qemu for machines that
# run a real agent and a real system.
INGOT_RACK_KIND=${INGOT_RACK_KIND:-simulated}
# How the machines are enrolled: ipmi or redfish.
IRONIC_DEPLOY_DRIVER=${IRONIC_DEPLOY_DRIVER:-ipmi}
# How many, and what each has: processors, memory in MiB, disks, GiB of each disk, network cards.
IRONIC_VM_COUNT=${IRONIC_VM_COUNT:-1}
IRONIC_VM_SPECS_CPU=${IRONIC_VM_SPECS_CPU:-1}
IRONIC_VM_SPECS_RAM=${IRONIC_VM_SPECS_RAM:-3072}
IRONIC_VM_VOLUME_COUNT=${IRONIC_VM_VOLUME_COUNT:-1}
IRONIC_VM_SPECS_DISK=${IRONIC_VM_SPECS_DISK:-10}
IRONIC_VM_INTERFACE_COUNT=${IRONIC_VM_INTERFACE_COUNT:-2}
# Facts that real machines are enrolled with, in the same units.
IRONIC_HW_NODE_CPU=${IRONIC_HW_NODE_CPU:-1}
IRONIC_HW_NODE_RAM=${IRONIC_HW_NODE_RAM:-512}
IRONIC_HW_NODE_DISK=${IRONIC_HW_NODE_DISK:-10}
IRONIC_HW_ARCH=${IRONIC_HW_ARCH:-x86_64}
# Ports of the rack: UDP of the first BMC, TCP of Redfish, TCP of its own control.
IRONIC_VBMC_PORT_RANGE_START=${IRONIC_VBMC_PORT_RANGE_START:-6230}
IRONIC_REDFISH_EMULATOR_PORT=${IRONIC_REDFISH_EMULATOR_PORT:-9132}
INGOT_RACK_CONTROL_PORT=${INGOT_RACK_CONTROL_PORT:-6229}
# Address of BMCs and agents of the rack. Conductors on other hosts need one that they reach.
INGOT_RACK_ADDRESS=${INGOT_RACK_ADDRESS:-127.0.0.1}
INGOT_RACK_USERNAME=${INGOT_RACK_USERNAME:-admin}
INGOT_RACK_PASSWORD=${INGOT_RACK_PASSWORD:-password}

# What every node gets: resource class, traits separated by spaces, owner (a project's ID), and, with IRONIC_SHARDS=1, shard.
IRONIC_DEFAULT_RESOURCE_CLASS=${IRONIC_DEFAULT_RESOURCE_CLASS:-baremetal}
IRONIC_DEFAULT_TRAITS=${IRONIC_DEFAULT_TRAITS:-CUSTOM_GOLD}
IRONIC_SET_NODE_OWNER=${IRONIC_SET_NODE_OWNER:-}
IRONIC_SHARDS=${IRONIC_SHARDS:-0}
IRONIC_SHARD_1_NAME=${IRONIC_SHARD_1_NAME:-ds_shard_1}
IRONIC_NODE_SHARD_NAME=${IRONIC_NODE_SHARD_NAME:-$IRONIC_SHARD_1_NAME}
# Seconds for all machines together until they are available.
INGOT_ENROLL_TIMEOUT=${INGOT_ENROLL_TIMEOUT:-600}

# Networks, where Neutron is enabled
# ----------------------------------

# The network interface of the enrolled nodes. Unset: IRONIC_DEFAULT_NETWORK_INTERFACE, or what Ingot prefers, flat.
IRONIC_NETWORK_INTERFACE=${IRONIC_NETWORK_INTERFACE:-}
# A network that is made for the agents. Unset: machines stay on the cloud's private network.
IRONIC_PROVISION_NETWORK_NAME=${IRONIC_PROVISION_NETWORK_NAME:-}
# Of which type it is, flat or vlan, which VLAN, unset: any that is free; and its subnet.
IRONIC_PROVISION_PROVIDER_NETWORK_TYPE=${IRONIC_PROVISION_PROVIDER_NETWORK_TYPE:-vlan}
IRONIC_PROVISION_SEGMENTATION_ID=${IRONIC_PROVISION_SEGMENTATION_ID:-}
IRONIC_PROVISION_PROVIDER_SUBNET_NAME=${IRONIC_PROVISION_PROVIDER_SUBNET_NAME:-$IRONIC_PROVISION_NETWORK_NAME-subnet}
IRONIC_PROVISION_SUBNET_PREFIX=${IRONIC_PROVISION_SUBNET_PREFIX:-10.0.5.0/24}
IRONIC_PROVISION_SUBNET_GATEWAY=${IRONIC_PROVISION_SUBNET_GATEWAY:-10.0.5.1}
IRONIC_PROVISION_ALLOCATION_POOL=${IRONIC_PROVISION_ALLOCATION_POOL:-start=10.0.5.10,end=10.0.5.100}
# The network of each purpose, by name. It must be there before the phase extra.
INGOT_PROVISION_NET_NAME=${IRONIC_PROVISION_NETWORK_NAME:-${PRIVATE_NETWORK_NAME:-private}}
IRONIC_CLEAN_NET_NAME=${IRONIC_CLEAN_NET_NAME:-$INGOT_PROVISION_NET_NAME}
IRONIC_RESCUE_NET_NAME=${IRONIC_RESCUE_NET_NAME:-$IRONIC_CLEAN_NET_NAME}
IRONIC_INSPECTION_NET_NAME=${IRONIC_INSPECTION_NET_NAME:-$IRONIC_CLEAN_NET_NAME}
IRONIC_SERVICE_NET_NAME=${IRONIC_SERVICE_NET_NAME:-$IRONIC_CLEAN_NET_NAME}
# Whether a flow fails when no mechanism driver binds a port. Unset: Ingot's default, True.
IRONIC_FAIL_ON_BINDING_FAILURE=${IRONIC_FAIL_ON_BINDING_FAILURE:-}
# To which switch the rack's machines are cabled, as a mechanism driver such as networking-generic-switch knows it: its
# name and the MAC address of its own. A card's port there has the name of the machine and the number of the card.
INGOT_SWITCH_INFO=${INGOT_SWITCH_INFO:-ingot-rack}
INGOT_SWITCH_ID=${INGOT_SWITCH_ID:-02:00:00:00:00:01}

# Images
# ------

# Files of the agent. Unset: for simulated machines any kernel does; for others ``ingot-image`` builds one.
IRONIC_DEPLOY_KERNEL=${IRONIC_DEPLOY_KERNEL:-}
IRONIC_DEPLOY_RAMDISK=${IRONIC_DEPLOY_RAMDISK:-}
# A raw disk image to deploy. Unset: a small Linux, put together from Debian's packages.
INGOT_DISK_IMAGE=${INGOT_DISK_IMAGE:-}
# Machines fetch images from this directory and port of this host.
IRONIC_HTTP_DIR=${IRONIC_HTTP_DIR:-$IRONIC_DATA_DIR/httpboot}
IRONIC_HTTP_PORT=${IRONIC_HTTP_PORT:-3928}
# This host as machines reach it. The network of a QEMU machine is its own, and this host is its gateway there.
if [[ "$INGOT_RACK_KIND" == "qemu" && "$IRONIC_IS_HARDWARE" == "False" ]]; then
    IRONIC_HTTP_SERVER=${IRONIC_HTTP_SERVER:-10.0.2.2}
else
    IRONIC_HTTP_SERVER=${IRONIC_HTTP_SERVER:-$HOST_IP}
fi

# Tempest
# -------

# The API versions of the tests. Unset: the plugin's default, and the newest.
TEMPEST_BAREMETAL_MIN_MICROVERSION=${TEMPEST_BAREMETAL_MIN_MICROVERSION:-}
TEMPEST_BAREMETAL_MAX_MICROVERSION=${TEMPEST_BAREMETAL_MAX_MICROVERSION:-latest}
# Seconds that a test waits for a state of a machine.
IRONIC_TEMPEST_BUILD_TIMEOUT=${IRONIC_TEMPEST_BUILD_TIMEOUT:-${BUILD_TIMEOUT:-196}}
