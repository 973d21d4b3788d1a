# What the scripts of grenade share: functions and variables of grenade, of a DevStack, and of this plugin. Sourced with
# INGOT_DEVSTACK set to the DevStack of the old or of the new release, whose localrc says how many conductors there are.
# Not in a function: what these files declare would be the function's own.
# shellcheck shell=bash
# shellcheck disable=SC1090,SC1091 # files of grenade and of DevStack are not here

INGOT_UPGRADE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

source "$GRENADE_DIR/grenaderc"
source "$GRENADE_DIR/functions"
source "$INGOT_DEVSTACK/functions"
source "$INGOT_DEVSTACK/stackrc"
source "$INGOT_DEVSTACK/lib/database"
source "$INGOT_DEVSTACK/lib/rpc_backend"
source "$INGOT_DEVSTACK/lib/apache"
source "$INGOT_DEVSTACK/lib/tls"
source "$INGOT_DEVSTACK/lib/keystone"
source "$INGOT_UPGRADE_DIR/../settings"
source "$INGOT_UPGRADE_DIR/../plugin/services.sh"
source "$INGOT_UPGRADE_DIR/../plugin/configuration.sh"
source "$INGOT_UPGRADE_DIR/../plugin/machines.sh"

# ingot_services: prints the services that an upgrade replaces. Machines, and what serves their images, stay up.
function ingot_services {
    local service
    for service in ir-api $(ingot_conductor_services); do
        if is_service_enabled "$service"; then echo "$service"; fi
    done
}
