# What a shell of the environment `site` knows beside the programs: for the hidden commands of pages.

_ask() { curl -s --fail-with-body -H 'X-OpenStack-Ironic-API-Version: latest' -H 'Content-Type: application/json' "$@"; }

# reach NODE STATE: wait until the node is in the state and nothing works on it.
reach() {
    local found
    for _ in $(seq 600); do
        found=$(_ask "$API/v1/nodes/$1?fields=provision_state,reservation,last_error")
        case $found in *"\"provision_state\":\"$2\""*'"reservation":null'* | *'"reservation":null'*"\"provision_state\":\"$2\""*) return ;; esac
        sleep 0.1
    done
    echo "$1 is not $2: $found"
    return 1
}

# verb NODE VERB STATE: ask for a change of the provision state, and wait for it.
verb() { _ask -X PUT "$API/v1/nodes/$1/states/provision" -d "{\"target\": \"$2\"}" && reach "$1" "$3"; }

# pretend NAME [STATE]: a node of fake hardware, in one of enroll, manageable, available, active.
pretend() {
    _ask -X POST "$API/v1/nodes" -d "{\"name\": \"$1\", \"driver\": \"fake-hardware\"}" || return
    _lead "$1" "${2:-enroll}"
}

# enroll NAME NUMBER [STATE]: a node of the machine of the rack with this number, by IPMI, with an image to write.
enroll() {
    local access="\"ipmi_address\": \"127.0.0.1\", \"ipmi_username\": \"admin\", \"ipmi_password\": \"password\""
    local port="IPMI_PORT_$2" mac="MAC_$2"
    local image="\"image_source\": \"$IMAGE_URL\", \"image_checksum\": \"$IMAGE_SHA256\", \"image_disk_format\": \"raw\""
    _ask -X POST "$API/v1/nodes" -d "{\"name\": \"$1\", \"driver\": \"ipmi\", \"raid_interface\": \"agent\",
        \"rescue_interface\": \"agent\", \"inspect_interface\": \"agent\", \"instance_info\": {$image},
        \"driver_info\": {$access, \"ipmi_port\": ${!port}}}" || return
    _ask -X POST "$API/v1/ports" -d "{\"node_uuid\": \"$(_uuid "$1")\", \"address\": \"${!mac}\"}" || return
    _lead "$1" "${3:-enroll}"
}

_uuid() { _ask "$API/v1/nodes/$1?fields=uuid" | sed 's/.*"uuid":"\([^"]*\)".*/\1/'; }

_lead() {
    case $2 in
        enroll) ;;
        manageable) verb "$1" manage manageable ;;
        available) _lead "$1" manageable && verb "$1" provide available ;;
        active) _lead "$1" available && verb "$1" active active ;;
        *) echo "$2 is none of the states that a node is led to" && return 1 ;;
    esac
}
