# The rack's machines, images for them, and how machines become nodes. Sourced by plugin.sh and by upgrade/resources.sh.
# shellcheck shell=bash

function start_ingot_rack {
    if is_service_enabled ir-rack; then
        write_ingot_rack_settings
        run_process ir-rack "$IRONIC_BIN_DIR/ingot-rack --config-file $IRONIC_CONF_DIR/rack.json"
        if ! wait_for_service "$INGOT_START_TIMEOUT" "$(ingot_rack_url)"; then
            die $LINENO "the rack does not answer: journalctl -u devstack@ir-rack"
        fi
    fi
    if is_service_enabled ir-files; then
        run_process ir-files "$(ingot_python) -m http.server --directory $IRONIC_HTTP_DIR $IRONIC_HTTP_PORT"
    fi
}

function stop_ingot_rack {
    stop_process ir-files
    stop_process ir-rack
}

# ingot_rack_url: prints the address of the rack's control.
function ingot_rack_url {
    echo "http://127.0.0.1:$INGOT_RACK_CONTROL_PORT"
}

# The API has the scripts of all machines by the address of their card.
function write_ingot_rack_settings {
    local file=$IRONIC_CONF_DIR/rack.json
    install -m 600 /dev/null "$file"
    cat > "$file" << END
{
    "machines": $IRONIC_VM_COUNT,
    "machine_kind": "$INGOT_RACK_KIND",
    "address": "$INGOT_RACK_ADDRESS",
    "username": "$INGOT_RACK_USERNAME",
    "password": "$INGOT_RACK_PASSWORD",
    "bmc_base_port": $IRONIC_VBMC_PORT_RANGE_START,
    "redfish_port": $IRONIC_REDFISH_EMULATOR_PORT,
    "control_port": $INGOT_RACK_CONTROL_PORT,
    "boot_url": "http://$IRONIC_HTTP_SERVER:$IRONIC_SERVICE_PORT/boot/ipxe/{mac}",
    "state_dir": "$IRONIC_DATA_DIR/rack",
    "cpus": $IRONIC_VM_SPECS_CPU,
    "memory": $IRONIC_VM_SPECS_RAM,
    "disks": $IRONIC_VM_VOLUME_COUNT,
    "disk_size": "${IRONIC_VM_SPECS_DISK}G",
    "nics": $IRONIC_VM_INTERFACE_COUNT
}
END
}

# prepare_ingot_images: agent.kernel, agent.ramdisk and disk.img are in IRONIC_HTTP_DIR afterwards.
function prepare_ingot_images {
    if ! is_service_enabled ir-files; then return; fi
    if [[ -z "$INGOT_DISK_IMAGE" || -z "$IRONIC_DEPLOY_KERNEL" ]]; then build_ingot_images; fi
    place_ingot_image "$INGOT_DISK_IMAGE" disk.img
    place_ingot_image "$IRONIC_DEPLOY_KERNEL" agent.kernel
    place_ingot_image "$IRONIC_DEPLOY_RAMDISK" agent.ramdisk
    if is_service_enabled glance g-api; then upload_ingot_image; fi
}

# place_ingot_image FILE NAME
function place_ingot_image {
    if [[ ! -r "$1" ]]; then die $LINENO "$2: the file '$1' cannot be read"; fi
    install -m 644 "$1" "$IRONIC_HTTP_DIR/$2"
}

# build_ingot_images: sets INGOT_DISK_IMAGE, IRONIC_DEPLOY_KERNEL and IRONIC_DEPLOY_RAMDISK, those that are not set.
function build_ingot_images {
    local built
    built=$(PYTHONPATH=$INGOT_DIR/devstack "$(ingot_python)" -P -m quickstart.image "$IRONIC_DATA_DIR/images")
    INGOT_DISK_IMAGE=${INGOT_DISK_IMAGE:-$built/disk.img}
    if [[ -n "$IRONIC_DEPLOY_KERNEL" ]]; then return; fi
    if is_service_enabled ir-rack && [[ "$INGOT_RACK_KIND" == "simulated" ]]; then
        # The agent of a simulated machine is the rack's; the machine only wants to see files.
        IRONIC_DEPLOY_KERNEL=$built/vmlinuz
        IRONIC_DEPLOY_RAMDISK=$built/initrd.gz
    else
        build_ingot_agent
    fi
}

function build_ingot_agent {
    local place=$IRONIC_DATA_DIR/agent profile=server
    if is_service_enabled ir-rack; then profile=small; fi
    # It makes a system of Debian packages, which takes root.
    sudo "$IRONIC_BIN_DIR/ingot-image" build --profile "$profile" --output "$place"
    IRONIC_DEPLOY_KERNEL=$place/vmlinuz
    IRONIC_DEPLOY_RAMDISK=$place/initrd.img
}

# upload_ingot_image: tests of bare metal find the image by its name in Glance, too.
function upload_ingot_image {
    openstack --os-cloud devstack-admin image show ingot-disk > /dev/null 2>&1 ||
        openstack --os-cloud devstack-admin image create ingot-disk --public --disk-format raw \
            --container-format bare --file "$IRONIC_HTTP_DIR/disk.img"
}

# ingot_machines COMMAND ARGUMENT...: runs machines.py as the administrator of machines.
function ingot_machines {
    "$(ingot_python)" "$INGOT_DIR/devstack/plugin/machines.py" "$1" --cloud "$IRONIC_OS_CLOUD" "${@:2}"
}

# enroll_ingot_machines: all of them are available nodes afterwards.
function enroll_ingot_machines {
    local found=() cpus memory disk trait arguments
    if [[ "$IRONIC_IS_HARDWARE" == "True" ]]; then
        found=(--hardware "$IRONIC_HWINFO_FILE")
    elif is_service_enabled ir-rack; then
        found=(--rack "$(ingot_rack_url)" --username "$INGOT_RACK_USERNAME" --password "$INGOT_RACK_PASSWORD")
    else
        return 0
    fi
    read -r cpus memory disk <<< "$(ingot_machine_size)"
    arguments=(--driver "$IRONIC_DEPLOY_DRIVER" --cpus "$cpus" --memory "$memory" --disk "$disk" --arch "$IRONIC_HW_ARCH"
        --resource-class "$IRONIC_DEFAULT_RESOURCE_CLASS" --timeout "$INGOT_ENROLL_TIMEOUT"
        --kernel "$(ingot_image_url agent.kernel)" --ramdisk "$(ingot_image_url agent.ramdisk)")
    for trait in $IRONIC_DEFAULT_TRAITS; do arguments+=(--trait "$trait"); done
    if [[ -n "$IRONIC_SET_NODE_OWNER" ]]; then arguments+=(--owner "$IRONIC_SET_NODE_OWNER"); fi
    if [[ "$IRONIC_SHARDS" == "1" ]]; then arguments+=(--shard "$IRONIC_NODE_SHARD_NAME"); fi
    if [[ -n "$IRONIC_NETWORK_INTERFACE" ]]; then arguments+=(--network-interface "$IRONIC_NETWORK_INTERFACE"); fi
    if ingot_has_neutron && is_service_enabled ir-rack; then
        arguments+=(--switch-info "$INGOT_SWITCH_INFO" --switch-id "$INGOT_SWITCH_ID")
        if [[ -n "${PHYSICAL_NETWORK:-}" ]]; then arguments+=(--physical-network "$PHYSICAL_NETWORK"); fi
    fi
    ingot_machines enroll "${found[@]}" "${arguments[@]}"
}

# ingot_machine_size: prints processors, MiB of memory and GiB of disk of a machine.
function ingot_machine_size {
    if [[ "$IRONIC_IS_HARDWARE" == "True" ]]; then
        echo "$IRONIC_HW_NODE_CPU $IRONIC_HW_NODE_RAM $IRONIC_HW_NODE_DISK"
    else
        echo "$IRONIC_VM_SPECS_CPU $IRONIC_VM_SPECS_RAM $IRONIC_VM_SPECS_DISK"
    fi
}

# ingot_image_url NAME: prints where machines fetch a file of IRONIC_HTTP_DIR.
function ingot_image_url {
    echo "http://$IRONIC_HTTP_SERVER:$IRONIC_HTTP_PORT/$1"
}
