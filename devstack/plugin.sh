#!/bin/bash
# What DevStack calls to install, configure, start, stop and remove Ingot:
#
#   source plugin.sh stack pre-install | install | post-config | extra | test-config
#   source plugin.sh unstack
#   source plugin.sh clean
#
# doc/source/contributor/devstack.rst says how to use it. The functions are in devstack/plugin, one file for each subject.

INGOT_PLUGIN_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/plugin" && pwd)
# shellcheck source=devstack/plugin/variables.sh
source "$INGOT_PLUGIN_DIR/variables.sh"
# shellcheck source=devstack/plugin/services.sh
source "$INGOT_PLUGIN_DIR/services.sh"
# shellcheck source=devstack/plugin/configuration.sh
source "$INGOT_PLUGIN_DIR/configuration.sh"
# shellcheck source=devstack/plugin/networks.sh
source "$INGOT_PLUGIN_DIR/networks.sh"
# shellcheck source=devstack/plugin/machines.sh
source "$INGOT_PLUGIN_DIR/machines.sh"
# shellcheck source=devstack/plugin/nova.sh
source "$INGOT_PLUGIN_DIR/nova.sh"
# shellcheck source=devstack/plugin/testing.sh
source "$INGOT_PLUGIN_DIR/testing.sh"

# ingot_stack PHASE
function ingot_stack {
    case $1 in
        pre-install)
            install_ingot_packages
            ;;
        install)
            echo_summary "Installing Ingot"
            stack_install_service ingot
            install_ingot_client
            ;;
        post-config)
            echo_summary "Configuring Ingot"
            configure_ingot
            create_ingot_accounts
            start_ingot_ovn
            ;;
        extra)
            echo_summary "Starting Ingot"
            # After DevStack has merged [[post-config|$IRONIC_CONF_FILE]] of local.conf into the configuration.
            init_ingot
            create_ingot_network
            start_ingot_rack
            prepare_ingot_images
            start_ingot
            echo_summary "Enrolling machines"
            enroll_ingot_machines
            prepare_ingot_nova
            ;;
        test-config)
            if is_service_enabled tempest; then
                echo_summary "Configuring tempest for Ingot"
                configure_ingot_tempest
            fi
            ;;
    esac
}

if is_service_enabled ironic; then
    case $1 in
        stack) ingot_stack "$2" ;;
        unstack)
            stop_ingot
            stop_ingot_rack
            ;;
        clean) cleanup_ingot ;;
    esac
fi
