# Installs, starts, stops and removes Ingot's services. Sourced by plugin.sh and by the scripts of upgrade/.
# shellcheck shell=bash

_INGOT_APACHE_SITE=ingot-api

# install_ingot_packages: those of QEMU machines, and those with which an agent is built. Simulated machines need none.
function install_ingot_packages {
    if is_service_enabled ir-rack; then
        if [[ "$INGOT_RACK_KIND" == "simulated" ]]; then return; fi
        install_package qemu-system-x86 qemu-utils ipxe-qemu ovmf
    fi
    if [[ -z "$IRONIC_DEPLOY_KERNEL" ]]; then install_package mmdebstrap debian-archive-keyring cpio zstd; fi
}

# install_ingot: called by stack_install_service, and when an upgrade installs the new release.
function install_ingot {
    lift_ingot_constraints
    setup_develop "$INGOT_DIR" "$INGOT_EXTRAS"
}

# lift_ingot_constraints: as DevStack does with what it installs from source. No other service has these dependencies.
function lift_ingot_constraints {
    local name
    for name in $INGOT_UNCONSTRAINED; do
        "$REQUIREMENTS_DIR/.venv/bin/edit-constraints" "$REQUIREMENTS_DIR/upper-constraints.txt" -- "$name"
    done
}

# install_ingot_client: the commands ``openstack baremetal``, from git if the user says so.
function install_ingot_client {
    if use_library_from_git python-ironicclient; then
        git_clone_by_name python-ironicclient
        setup_dev_lib python-ironicclient
    else
        pip_install_gr python-ironicclient
    fi
    # The enrolment speaks to the API by it.
    pip_install_gr openstacksdk
}

# create_ingot_accounts: the user by which Ingot asks other services, the service and its endpoints, on Keystone's host.
function create_ingot_accounts {
    if ! is_service_enabled key; then return; fi
    local url=$IRONIC_SERVICE_PROTOCOL://$IRONIC_HOSTPORT
    # Names of Ironic: its clients, and policies of other services, name them.
    if ingot_has_neutron; then
        # To see physical networks, agents, and security groups of other projects.
        create_service_user ironic admin
    else
        create_service_user ironic
    fi
    get_or_create_service ironic baremetal "Bare Metal Provisioning Service"
    get_or_create_endpoint baremetal "$REGION_NAME" "$url" "$url" "$url"
}

# init_ingot: an empty database with the current schema, on the host of the database.
function init_ingot {
    if ! is_service_enabled mysql postgresql; then return; fi
    recreate_database "$INGOT_DATABASE"
    # Secrets of the database before are lost with it. A key of old would be refused.
    rm -f "$IRONIC_STATE_PATH/secrets.key"
    run_ingot_dbsync upgrade
}

# run_ingot_dbsync ARGUMENT...
function run_ingot_dbsync {
    "$IRONIC_BIN_DIR/ingot-dbsync" --config-file "$IRONIC_CONF_FILE" "$@"
}

# start_ingot: conductors first, so that the first request finds them.
function start_ingot {
    if [[ "$INGOT_ALL_IN_ONE" == "True" ]]; then
        run_process ir-api "$IRONIC_BIN_DIR/ingot --config-file $IRONIC_CONF_FILE"
    else
        start_ingot_conductors
        start_ingot_api
    fi
    publish_ingot_api
    wait_for_ingot
}

function start_ingot_conductors {
    local service
    for service in $(ingot_conductor_services); do
        run_process "$service" "$IRONIC_BIN_DIR/ingot-conductor --config-file $IRONIC_CONF_FILE \
--config-file $IRONIC_CONF_DIR/$service.conf"
    done
}

function start_ingot_api {
    run_process ir-api "$IRONIC_BIN_DIR/ingot-api --config-file $IRONIC_CONF_FILE"
}

# publish_ingot_api: the address of the catalog leads to the API.
function publish_ingot_api {
    if ! is_service_enabled ir-api; then return; fi
    write_local_proxy_http_config "$_INGOT_APACHE_SITE" "$(ingot_api_url)" /baremetal
}

# ingot_api_url: prints the API's own address on this host.
function ingot_api_url {
    echo "http://$SERVICE_HOST:$IRONIC_SERVICE_PORT"
}

# wait_for_ingot: until the API answers, and all conductors that were started here have joined.
function wait_for_ingot {
    local service number=0
    if ! is_service_enabled ir-api; then return; fi
    if ! wait_for_service "$INGOT_START_TIMEOUT" "$(ingot_api_url)"; then
        die $LINENO "the API of Ingot does not answer: journalctl -u devstack@ir-api"
    fi
    for service in $(ingot_conductor_services); do
        if is_service_enabled "$service"; then number=$((number + 1)); fi
    done
    if [[ "$INGOT_ALL_IN_ONE" == "True" ]]; then number=1; fi
    ingot_machines wait --conductors "$number" --timeout "$INGOT_START_TIMEOUT"
}

# stop_ingot: the API first, so that no request comes when the conductors are gone.
function stop_ingot {
    local service
    for service in ir-api $(ingot_conductor_services); do stop_process "$service"; done
}

# cleanup_ingot: everything that the phases before have left. The database goes with DevStack's server.
function cleanup_ingot {
    local directory
    disable_apache_site "$_INGOT_APACHE_SITE"
    sudo rm -f "$(apache_site_config_for "$_INGOT_APACHE_SITE")"
    for directory in "$IRONIC_CONF_DIR" "$IRONIC_STATE_PATH" "$IRONIC_HTTP_DIR" "$IRONIC_DATA_DIR"; do
        remove_ingot_directory "$directory"
    done
}

# remove_ingot_directory DIRECTORY: a mistake in localrc must not remove one of the system.
function remove_ingot_directory {
    if [[ ! "$(realpath --no-symlinks --canonicalize-missing "$1")" =~ ^/[^/]+/[^/] || "$1" != /* ]]; then
        die $LINENO "clean.sh does not remove '$1', which may be a directory of the system"
    fi
    sudo rm -rf "$1"
}
