#!/bin/bash
# Stops the old release. Machines go on: what they run must outlive it. Called by grenade.

set -o errexit

INGOT_DEVSTACK=$BASE_DEVSTACK_DIR
# shellcheck source=devstack/upgrade/common.sh
source "$(dirname "$0")/common.sh"

set -o xtrace

stop_ingot
# shellcheck disable=SC2046 # words are names of services
ensure_services_stopped $(ingot_services)
