# The network of the agents in Neutron. Sourced by plugin.sh.
# shellcheck shell=bash

# start_ingot_ovn: with VIRT_DRIVER=ironic DevStack leaves that to the plugin of bare metal, before Neutron starts.
function start_ingot_ovn {
    if ! ingot_has_nova || [[ "${Q_AGENT:-}" != "ovn" ]]; then return; fi
    if ! is_service_enabled ovn-controller ovn-controller-vtep; then return; fi
    init_ovn
    start_ovn
}

# create_ingot_network: unless it is there already, or machines stay on the private network.
function create_ingot_network {
    if ! ingot_has_neutron || [[ -z "$IRONIC_PROVISION_NETWORK_NAME" ]]; then return; fi
    ingot_networks network show "$IRONIC_PROVISION_NETWORK_NAME" > /dev/null 2>&1 || create_ingot_provider_network
}

function create_ingot_provider_network {
    local physical=${NEUTRON_PHYSICAL_NETWORK:-${PHYSICAL_NETWORK:-}} segment=()
    if [[ -z "$physical" ]]; then
        die $LINENO "PHYSICAL_NETWORK is not set, on which IRONIC_PROVISION_NETWORK_NAME is to be made"
    fi
    if [[ -n "$IRONIC_PROVISION_SEGMENTATION_ID" ]]; then
        segment=(--provider-segment "$IRONIC_PROVISION_SEGMENTATION_ID")
    fi
    ingot_networks network create "$IRONIC_PROVISION_NETWORK_NAME" --provider-physical-network "$physical" \
        --provider-network-type "$IRONIC_PROVISION_PROVIDER_NETWORK_TYPE" "${segment[@]}"
    ingot_networks subnet create "$IRONIC_PROVISION_PROVIDER_SUBNET_NAME" --network "$IRONIC_PROVISION_NETWORK_NAME" \
        --ip-version 4 --subnet-range "$IRONIC_PROVISION_SUBNET_PREFIX" --gateway "$IRONIC_PROVISION_SUBNET_GATEWAY" \
        --allocation-pool "$IRONIC_PROVISION_ALLOCATION_POOL"
}

# ingot_networks ARGUMENT...: the command of Neutron's administrator, who is one of a project.
function ingot_networks {
    openstack --os-cloud devstack-admin "$@"
}
