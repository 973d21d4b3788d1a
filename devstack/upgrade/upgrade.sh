#!/bin/bash
# Installs the new release over the stopped old one, and starts it, in the order of doc/source/operator/upgrading.rst.
# Called by grenade.

set -o errexit

INGOT_DEVSTACK=$TARGET_DEVSTACK_DIR
# shellcheck source=devstack/upgrade/common.sh
source "$(dirname "$0")/common.sh"

# check_ingot_upgrade: 1 is something to look at, which the log shows; more stands in the way.
function check_ingot_upgrade {
    local status=0
    "$IRONIC_BIN_DIR/ingot-status" --config-file "$IRONIC_CONF_FILE" upgrade check || status=$?
    if ((status > 1)); then die $LINENO "ingot-status upgrade check ends with $status"; fi
}

# keep_ingot_configuration: as it was, to be read beside the logs. An upgrade that is repeated does not overwrite it.
function keep_ingot_configuration {
    if [[ -d "$IRONIC_CONF_DIR" && ! -d "$SAVE_DIR/etc.ingot" ]]; then
        cp -pr "$IRONIC_CONF_DIR" "$SAVE_DIR/etc.ingot"
    fi
}

set -o xtrace

keep_ingot_configuration
stack_install_service ingot
# The file from-RELEASE/upgrade-ingot beside this one, if a release needs another configuration.
upgrade_project ingot "$INGOT_UPGRADE_DIR" "$BASE_DEVSTACK_BRANCH" "$TARGET_DEVSTACK_BRANCH"

run_ingot_dbsync expand
# Releases before 0.3 had no key; a second one would be of no use.
if [[ ! -e "$IRONIC_STATE_PATH/secrets.key" ]]; then run_ingot_dbsync add_key; fi
check_ingot_upgrade

start_ingot
# shellcheck disable=SC2046 # words are names of services
ensure_services_started $(ingot_services)

run_ingot_dbsync online_data_migrations
run_ingot_dbsync contract
