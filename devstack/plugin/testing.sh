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
    if ! ingot_has_neutron; then configure_ingot_tempest_without_networks; fi
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
    fi
}

# Without Neutron there is no network to make for a test, and no address to log in at.
function configure_ingot_tempest_without_networks {
    set_tempest_option auth create_isolated_networks False
    set_tempest_option validation run_validation False
}
