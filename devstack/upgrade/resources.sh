#!/bin/bash
# A deployed machine and what an operator has made beside it, which must outlive an upgrade. Called by grenade:
#
#   resources.sh early_create | create | verify SIDE | verify_noapi SIDE | destroy

set -o errexit

INGOT_DEVSTACK=$TOP_DIR
# shellcheck source=devstack/upgrade/common.sh
source "$(dirname "$0")/common.sh"

TEMPLATE=CUSTOM_GRENADE
ALLOCATION=ingot-grenade

baremetal() {
    openstack --os-cloud "$IRONIC_OS_CLOUD" baremetal "$@"
}

# expect WHAT EXPECTED FOUND
expect() {
    if [[ "$2" != "$3" ]]; then die $LINENO "$1 should be '$2', but is '$3'"; fi
}

create() {
    local node group image=$IRONIC_HTTP_DIR/disk.img
    baremetal deploy template create "$TEMPLATE" \
        --steps '[{"interface": "deploy", "step": "write_image", "args": {}, "priority": 0}]'
    baremetal allocation create --name "$ALLOCATION" --resource-class "$IRONIC_DEFAULT_RESOURCE_CLASS" --wait 60
    node=$(baremetal allocation show "$ALLOCATION" -f value -c node_uuid)
    group=$(baremetal port group create --node "$node" --name "$ALLOCATION" -f value -c uuid)
    ingot_machines deploy --node "$node" --image "file://$image" --sha256 "$(sha256sum "$image" | cut -d ' ' -f 1)" \
        --timeout "$INGOT_ENROLL_TIMEOUT"
    resource_save ingot node "$node"
    resource_save ingot name "$(baremetal node show "$node" -f value -c name)"
    resource_save ingot group "$group"
}

# verify: the API says of all of it what it said before.
verify() {
    local node
    node=$(resource_get ingot node)
    expect "the state of $node" active "$(baremetal node show "$node" -f value -c provision_state)"
    expect "the power of $node" "power on" "$(baremetal node show "$node" -f value -c power_state)"
    expect "the node of the allocation" "$node" "$(baremetal allocation show "$ALLOCATION" -f value -c node_uuid)"
    expect "the node of the port group" "$node" \
        "$(baremetal port group show "$(resource_get ingot group)" -f value -c node_uuid)"
    expect "the deploy template" "$TEMPLATE" "$(baremetal deploy template show "$TEMPLATE" -f value -c name)"
}

# verify_noapi: the machine runs what was deployed, whether or not an API does.
verify_noapi() {
    if ! is_service_enabled ir-rack; then
        # Of a real machine nothing is known but its BMC, which is not asked here.
        echo "verify_noapi: the machine is a real one, and is not asked"
        return
    fi
    expect "what the machine runs" os "$(ask_rack "$(resource_get ingot name)" state)"
}

# ask_rack MACHINE FACT: prints what the rack says of a machine.
ask_rack() {
    $CURL_GET -sf "$(ingot_rack_url)/machines/$1" |
        "$(ingot_python)" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

destroy() {
    local node
    node=$(resource_get ingot node)
    # The allocation goes with the instance.
    ingot_machines undeploy --node "$node" --timeout "$INGOT_ENROLL_TIMEOUT"
    baremetal port group delete "$(resource_get ingot group)"
    baremetal deploy template delete "$TEMPLATE"
}

set -o xtrace

case $1 in
    early_create) ;; # no other service waits for what is made here
    create | verify | verify_noapi | destroy) "$1" "${@:2}" ;;
    *) die $LINENO "resources.sh: there is no phase '$1'" ;;
esac
