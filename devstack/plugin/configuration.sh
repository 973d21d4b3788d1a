# Writes the configuration of Ingot. Sourced by plugin.sh and by the scripts of upgrade/.
# shellcheck shell=bash

function configure_ingot {
    make_ingot_directories
    # The same each time, also if the file of a run before is there.
    install -m 600 /dev/null "$IRONIC_CONF_FILE"
    configure_ingot_services
    configure_ingot_hardware
    configure_ingot_flows
    configure_ingot_images
    configure_ingot_authentication
    configure_ingot_clients
    configure_ingot_conductors
    setup_logging "$IRONIC_CONF_FILE"
}

function make_ingot_directories {
    sudo install -d -o "$STACK_USER" -m 750 "$IRONIC_CONF_DIR"
    sudo install -d -o "$STACK_USER" "$IRONIC_DATA_DIR" "$IRONIC_STATE_PATH" "$IRONIC_HTTP_DIR" \
        "$IRONIC_DEPLOY_LOGS_LOCAL_PATH"
}

# set_ingot_option GROUP OPTION VALUE
function set_ingot_option {
    iniset "$IRONIC_CONF_FILE" "$1" "$2" "$3"
}

# set_ingot_option_given GROUP OPTION VALUE: unless the value is empty, and Ingot's default holds.
function set_ingot_option_given {
    if [[ -n "$3" ]]; then set_ingot_option "$1" "$2" "$3"; fi
}

# configure_ingot_services: addresses, database, broker.
function configure_ingot_services {
    set_ingot_option DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    set_ingot_option DEFAULT my_ip "$HOST_IP"
    set_ingot_option DEFAULT host "$(hostname)"
    set_ingot_option DEFAULT state_path "$IRONIC_STATE_PATH"
    set_ingot_option secrets encrypt "$INGOT_ENCRYPT_SECRETS"
    set_ingot_option database connection "$(database_connection_url "$INGOT_DATABASE")"
    if [[ "$INGOT_ALL_IN_ONE" == "False" ]]; then
        iniset_rpc_backend ingot "$IRONIC_CONF_FILE"
    fi
    set_ingot_option api host_ip "$(ipv6_unquote "$SERVICE_LISTEN_ADDRESS")"
    set_ingot_option api port "$IRONIC_SERVICE_PORT"
    set_ingot_option api api_workers "$(ingot_api_workers)"
    # Links in answers lead where the catalog does; machines use the API's own address.
    set_ingot_option api public_endpoint "$IRONIC_SERVICE_PROTOCOL://$IRONIC_HOSTPORT"
    set_ingot_option service_catalog endpoint_override "http://$IRONIC_HTTP_SERVER:$IRONIC_SERVICE_PORT"
}

# ingot_api_workers: prints how many processes the API has. The all-in-one is one process.
function ingot_api_workers {
    if [[ "$INGOT_ALL_IN_ONE" == "True" ]]; then echo 1; else echo "${API_WORKERS:-1}"; fi
}

function configure_ingot_hardware {
    local kind enabled default
    set_ingot_option DEFAULT enabled_hardware_types "$IRONIC_ENABLED_HARDWARE_TYPES"
    for kind in $INGOT_INTERFACES; do
        enabled=IRONIC_ENABLED_${kind^^}_INTERFACES
        default=IRONIC_DEFAULT_${kind^^}_INTERFACE
        set_ingot_option DEFAULT "enabled_${kind}_interfaces" "${!enabled}"
        set_ingot_option_given DEFAULT "default_${kind}_interface" "${!default:-}"
    done
    # The certificate of the rack's Redfish is its own.
    if is_service_enabled ir-rack; then set_ingot_option redfish verify_ca False; fi
}

function configure_ingot_flows {
    set_ingot_option conductor automated_clean "$IRONIC_AUTOMATED_CLEAN_ENABLED"
    set_ingot_option_given conductor deploy_callback_timeout "$IRONIC_CALLBACK_TIMEOUT"
    if is_service_enabled ir-rack; then
        # Whole disks are erased by each cleaning otherwise, which takes minutes of an emulated machine.
        set_ingot_option deploy erase_devices_priority 0
        set_ingot_option deploy erase_devices_metadata_priority 10
    fi
    set_ingot_option deploy fast_track "$IRONIC_DEPLOY_FAST_TRACK"
    set_ingot_option agent deploy_logs_collect "$IRONIC_DEPLOY_LOGS_COLLECT"
    set_ingot_option agent deploy_logs_local_path "$IRONIC_DEPLOY_LOGS_LOCAL_PATH"
}

function configure_ingot_images {
    set_ingot_option deploy http_root "$IRONIC_HTTP_DIR"
    set_ingot_option deploy http_url "http://$IRONIC_HTTP_SERVER:$IRONIC_HTTP_PORT"
    set_ingot_option deploy file_url_allowed_paths "$IRONIC_DATA_DIR"
    # BMCs of the rack are processes of this host, also where its machines have networks of their own.
    set_ingot_option deploy external_http_url "$(ingot_api_url)"
}

# configure_ingot_authentication: of the API's users. DevStack's clouds log in to Keystone, and are who enrolls machines.
function configure_ingot_authentication {
    if [[ "$IRONIC_AUTH_STRATEGY" != "keystone" && "$IRONIC_AUTH_STRATEGY" != "noauth" ]]; then
        die $LINENO "IRONIC_AUTH_STRATEGY is '$IRONIC_AUTH_STRATEGY', but should be keystone or noauth"
    fi
    set_ingot_option DEFAULT auth_strategy "$IRONIC_AUTH_STRATEGY"
    set_ingot_option oslo_policy enforce_new_defaults "$IRONIC_ENFORCE_SCOPE"
    if [[ "$IRONIC_AUTH_STRATEGY" == "keystone" ]]; then
        configure_keystone_authtoken_middleware "$IRONIC_CONF_FILE" ironic
        set_ingot_option keystone_authtoken service_type baremetal
    fi
}

# configure_ingot_clients: of the services that Ingot asks.
function configure_ingot_clients {
    if is_service_enabled glance g-api; then configure_ingot_client_for glance; fi
    if is_service_enabled nova n-api; then configure_ingot_client_for nova; fi
    if ingot_has_cinder; then configure_ingot_client_for cinder; fi
    if ingot_has_neutron; then
        configure_ingot_client_for neutron
        configure_ingot_networks
    fi
}

# configure_ingot_networks: one for each purpose.
function configure_ingot_networks {
    set_ingot_option neutron provisioning_network "$INGOT_PROVISION_NET_NAME"
    set_ingot_option neutron cleaning_network "$IRONIC_CLEAN_NET_NAME"
    set_ingot_option neutron rescuing_network "$IRONIC_RESCUE_NET_NAME"
    set_ingot_option neutron inspection_network "$IRONIC_INSPECTION_NET_NAME"
    set_ingot_option neutron servicing_network "$IRONIC_SERVICE_NET_NAME"
    set_ingot_option_given neutron fail_on_port_binding_failure "$IRONIC_FAIL_ON_BINDING_FAILURE"
}

# configure_ingot_client_for GROUP
function configure_ingot_client_for {
    set_ingot_option "$1" auth_type password
    set_ingot_option "$1" auth_url "$KEYSTONE_SERVICE_URI"
    set_ingot_option "$1" username ironic
    set_ingot_option "$1" password "$SERVICE_PASSWORD"
    set_ingot_option "$1" project_name "$SERVICE_PROJECT_NAME"
    set_ingot_option "$1" user_domain_name "$SERVICE_DOMAIN_NAME"
    set_ingot_option "$1" project_domain_name "$SERVICE_DOMAIN_NAME"
    set_ingot_option "$1" region_name "$REGION_NAME"
    if is_service_enabled tls-proxy; then set_ingot_option "$1" cafile "$SSL_BUNDLE_FILE"; fi
}

# configure_ingot_conductors: each on this host has a name of its own.
function configure_ingot_conductors {
    local service
    if [[ "$INGOT_ALL_IN_ONE" == "True" ]]; then return; fi
    for service in $(ingot_conductor_services); do
        iniset "$IRONIC_CONF_DIR/$service.conf" DEFAULT host "$(ingot_conductor_name "$service")"
    done
}

# ingot_conductor_name SERVICE: prints under which name it joins: ir-cond-2 of controller is controller-2.
function ingot_conductor_name {
    echo "$(hostname)${1#ir-cond}"
}
