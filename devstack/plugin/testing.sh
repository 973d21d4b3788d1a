# Tells tempest what there is. Sourced by plugin.sh.
# shellcheck shell=bash

# configure_ingot_tempest: after DevStack's own configure_tempest, which writes who the administrator is.
function configure_ingot_tempest {
    set_tempest_option service_available ironic True
    set_tempest_option service_available ironic_inspector False
    set_tempest_option enforce_scope ironic "$IRONIC_ENFORCE_SCOPE"
    configure_ingot_tempest_hardware
    configure_ingot_tempest_waits
    configure_ingot_tempest_images
    configure_ingot_tempest_networks
    if ingot_has_nova; then configure_ingot_tempest_servers; fi
}

# set_tempest_option GROUP OPTION VALUE
function set_tempest_option {
    iniset "$TEMPEST_CONFIG" "$1" "$2" "$3"
}

function configure_ingot_tempest_hardware {
    local kind enabled
    set_tempest_option baremetal driver fake-hardware
    set_tempest_option baremetal enabled_drivers "$IRONIC_ENABLED_HARDWARE_TYPES"
    set_tempest_option baremetal enabled_hardware_types "$IRONIC_ENABLED_HARDWARE_TYPES"
    # Of other kinds the tests know no option.
    for kind in bios boot console deploy inspect management power raid rescue; do
        enabled=IRONIC_ENABLED_${kind^^}_INTERFACES
        set_tempest_option baremetal "enabled_${kind}_interfaces" "${!enabled}"
    done
    # Rescue is tested on fake hardware, where it needs no agent.
    set_tempest_option baremetal default_rescue_interface "${IRONIC_DEFAULT_RESCUE_INTERFACE:-fake}"
    if [[ -n "$TEMPEST_BAREMETAL_MIN_MICROVERSION" ]]; then
        set_tempest_option baremetal min_microversion "$TEMPEST_BAREMETAL_MIN_MICROVERSION"
    fi
    # shellcheck disable=SC2153 # variables.sh sets it
    set_tempest_option baremetal max_microversion "$TEMPEST_BAREMETAL_MAX_MICROVERSION"
    set_tempest_option baremetal_feature_enabled adoption True
    set_tempest_option baremetal_feature_enabled ipxe_enabled True
}

function configure_ingot_tempest_waits {
    local wait
    for wait in deploywait active power unprovision rescue unrescue inspect; do
        set_tempest_option baremetal "${wait}_timeout" "$IRONIC_TEMPEST_BUILD_TIMEOUT"
    done
    set_tempest_option compute build_interval 1
}

function configure_ingot_tempest_images {
    local image
    if ! is_service_enabled ir-files; then return; fi
    set_tempest_option baremetal whole_disk_image_url "$(ingot_image_url disk.img)"
    set_tempest_option baremetal whole_disk_image_checksum "$(sha256sum "$IRONIC_HTTP_DIR/disk.img" | cut -d ' ' -f 1)"
    if is_service_enabled glance g-api; then
        image=$(openstack --os-cloud devstack-admin image show ingot-disk -f value -c id)
        set_tempest_option baremetal whole_disk_image_ref "$image"
        if ingot_has_nova; then
            set_tempest_option compute image_ref "$image"
            set_tempest_option compute image_ref_alt "$image"
        fi
    fi
}

function configure_ingot_tempest_networks {
    if ! ingot_has_neutron; then
        # There is no network to make for a test, and no address to log in at.
        set_tempest_option auth create_isolated_networks False
        set_tempest_option validation run_validation False
    elif [[ -n "$IRONIC_PROVISION_NETWORK_NAME" ]]; then
        set_tempest_option baremetal use_provision_network True
    else
        # All machines stay on one network, also those of tests.
        set_tempest_option auth create_isolated_networks False
        set_tempest_option compute fixed_network_name "$INGOT_PROVISION_NET_NAME"
        set_tempest_option network shared_physical_network True
    fi
}

function configure_ingot_tempest_servers {
    local flavor
    flavor=$(openstack --os-cloud devstack-admin flavor show "$_INGOT_FLAVOR" -f value -c id)
    set_tempest_option compute flavor_ref "$flavor"
    set_tempest_option compute flavor_ref_alt "$flavor"
    # The whole disk is written.
    set_tempest_option compute-feature-enabled disk_config False
}
