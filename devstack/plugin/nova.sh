# Nova, where it makes servers of Ingot's machines: VIRT_DRIVER=ironic. Sourced by plugin.sh.
# shellcheck shell=bash

# The flavor of which one server is one machine.
_INGOT_FLAVOR=baremetal

function ingot_has_nova {
    is_service_enabled nova && [[ "${VIRT_DRIVER:-}" == "ironic" ]]
}

# prepare_ingot_nova: servers can be made of all machines afterwards.
function prepare_ingot_nova {
    local arguments trait
    if ! ingot_has_nova; then return; fi
    if is_service_enabled n-cpu; then
        # DevStack has started it before there was an Ingot, without which it may have given up.
        stop_nova_compute
        start_nova_compute
    fi
    if ! is_service_enabled n-api; then return; fi
    create_ingot_flavor
    arguments=(--resource-class "$IRONIC_DEFAULT_RESOURCE_CLASS" --timeout "$INGOT_ENROLL_TIMEOUT")
    for trait in $IRONIC_DEFAULT_TRAITS; do arguments+=(--trait "$trait"); done
    ingot_machines track --placement devstack-admin "${arguments[@]}"
}

# create_ingot_flavor: one unit of the resource class is a whole machine. Its sizes are only what users see.
function create_ingot_flavor {
    local cpus memory disk trait class=${IRONIC_DEFAULT_RESOURCE_CLASS^^} properties
    read -r cpus memory disk <<< "$(ingot_machine_size)"
    properties=(--property "resources:CUSTOM_${class//[^A-Z0-9_]/_}=1")
    properties+=(--property resources:VCPU=0 --property resources:MEMORY_MB=0 --property resources:DISK_GB=0)
    for trait in $IRONIC_DEFAULT_TRAITS; do properties+=(--property "trait:$trait=required"); done
    openstack --os-cloud devstack-admin flavor show "$_INGOT_FLAVOR" > /dev/null 2>&1 ||
        openstack --os-cloud devstack-admin flavor create --vcpus "$cpus" --ram "$memory" --disk "$disk" \
            "${properties[@]}" "$_INGOT_FLAVOR"
}
