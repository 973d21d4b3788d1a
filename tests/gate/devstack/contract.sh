# What DevStack and grenade promise to plugins, as far as Ingot's plugin uses it: these functions, these variables. They
# really do what they say where that is possible without a machine of one's own. Each call is recorded in $CALLS.
# The tests give: PLACE, PROGRAMS, CLIENT, PYTHON, HOST_IP, KEYSTONE_SERVICE_URI, MYSQL_URL, RABBIT_URL, CALLS.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the plugin uses them

DEST=$PLACE/opt
TOP_DIR=${TOP_DIR:-$PLACE/devstack}
DATA_DIR=$PLACE/data
STACK_USER=$(id -un)
SERVICE_HOST=$HOST_IP
SERVICE_LISTEN_ADDRESS=${SERVICE_LISTEN_ADDRESS:-$HOST_IP}
SERVICE_PROTOCOL=http
SERVICE_TIMEOUT=120
SERVICE_PROJECT_NAME=service
SERVICE_DOMAIN_NAME=Default
REGION_NAME=gate
ENABLE_DEBUG_LOG_LEVEL=True
API_WORKERS=1
SSL_BUNDLE_FILE=$DATA_DIR/ca-bundle.pem
TEMPEST_CONFIG=${TEMPEST_CONFIG:-$PLACE/tempest.conf}
CURL_GET="curl -g"
REQUIREMENTS_DIR=$PLACE/requirements
ENABLED_SERVICES=${ENABLED_SERVICES:-key,mysql,rabbit,tempest}
declare -A -g GITREPO GITDIR PLUGIN_DIR
UNITS=$PLACE/units
mkdir -p "$DEST" "$DATA_DIR" "$UNITS" "$PLACE/apache"

record() { printf '%s\n' "$*" >> "$CALLS"; }

# Messages and errors

echo_summary() { record echo_summary "$@"; echo "=== $*"; }
die() {
    record die "$@"
    echo "line $1: ${*:2}" >&2
    exit 1
}

# Variables and services

trueorfalse() { # DEFAULT VARIABLE
    case ${!2:-} in
        1 | [yY]es | YES | [tT]rue | TRUE) echo True ;;
        0 | [nN]o | NO | [fF]alse | FALSE) echo False ;;
        *) echo "$1" ;;
    esac
}
enable_service() {
    local service
    for service; do
        if [[ ",${DISABLED_SERVICES:-}," != *",$service,"* ]] && ! is_service_enabled "$service"; then
            ENABLED_SERVICES+=,$service
        fi
    done
}
# One of these is enabled with any part of it.
declare -A _PARTS=([nova]=n- [glance]=g- [neutron]=q-)
is_service_enabled() {
    local service
    for service; do
        if [[ ",$ENABLED_SERVICES," == *",$service,"* ]]; then return 0; fi
        if [[ -n "${_PARTS[$service]:-}" && ",$ENABLED_SERVICES" == *",${_PARTS[$service]}"* ]]; then return 0; fi
    done
    return 1
}
define_plugin() { record define_plugin "$@"; }
ipv6_unquote() { echo "$1" | tr -d '[]'; }

# Files of configuration

iniset() { # FILE GROUP OPTION VALUE
    "$PYTHON" - "$@" << 'END'
import configparser, pathlib, sys
name, group, option, value = sys.argv[1:]
parser = configparser.RawConfigParser(default_section="", strict=False)
parser.optionxform = str
parser.read(name)
if not parser.has_section(group):
    parser.add_section(group)
parser.set(group, option, value)
file = pathlib.Path(name)
file.parent.mkdir(parents=True, exist_ok=True)
with file.open("w") as opened:
    parser.write(opened)
END
}
iniget() { # FILE GROUP OPTION
    "$PYTHON" - "$@" << 'END'
import configparser, sys
name, group, option = sys.argv[1:]
parser = configparser.RawConfigParser(default_section="", strict=False)
parser.optionxform = str
parser.read(name)
print(parser.get(group, option, fallback=""))
END
}

# Packages and sources

install_package() { record install_package "$@"; }
mkdir -p "$REQUIREMENTS_DIR/.venv/bin"
cat > "$REQUIREMENTS_DIR/.venv/bin/edit-constraints" << 'END'
#!/bin/sh
# FILE -- NAME
sed -i "/^$3===/d" "$1"
END
chmod +x "$REQUIREMENTS_DIR/.venv/bin/edit-constraints"
[[ -e "$REQUIREMENTS_DIR/upper-constraints.txt" ]] ||
    printf '%s\n' sushy===5.13.0 tooz===8.0.0 > "$REQUIREMENTS_DIR/upper-constraints.txt"
setup_develop() { record setup_develop "$@"; }
setup_dev_lib() { record setup_dev_lib "$@"; }
git_clone_by_name() { record git_clone_by_name "$@"; }
pip_install_gr() { record pip_install_gr "$@"; }
use_library_from_git() { return 1; }
get_python_exec_prefix() { echo "$PROGRAMS"; }
stack_install_service() { record stack_install_service "$@"; "install_$1"; }
sudo() { record sudo "$@"; "$@"; }

# Identity. The client is that of OpenStack's users, the Keystone a real one.

openstack() { "$CLIENT/openstack" "$@"; }
_identity() { openstack --os-cloud devstack-system-admin "$@"; }
create_service_user() { # NAME [ROLE]
    record create_service_user "$@"
    _identity user create "$1" --password "$SERVICE_PASSWORD" --domain default --or-show -f value -c id
    _identity role add service --user "$1" --user-domain default --project "$SERVICE_PROJECT_NAME" --project-domain default
}
get_or_create_service() { # NAME TYPE DESCRIPTION
    record get_or_create_service "$@"
    _identity service show "$2" -f value -c id 2> /dev/null ||
        _identity service create "$2" --name "$1" --description "$3" -f value -c id
}
get_or_create_endpoint() { # SERVICE REGION PUBLIC [ADMIN] [INTERNAL]
    record get_or_create_endpoint "$@"
    _endpoint "$1" "$2" public "$3"
    _endpoint "$1" "$2" admin "${4:-}"
    _endpoint "$1" "$2" internal "${5:-}"
}
_endpoint() { # SERVICE REGION INTERFACE URL: one that is there stays as it is
    if [[ -z "$4" || -n "$(_identity endpoint list --service "$1" --interface "$3" --region "$2" -f value -c ID)" ]]; then
        return
    fi
    _identity endpoint create "$1" "$3" "$4" --region "$2" -f value -c id
}
configure_keystone_authtoken_middleware() { # FILE USER [GROUP]
    record configure_keystone_authtoken_middleware "$@"
    local file=$1 group=${3:-keystone_authtoken} pair
    for pair in auth_type=password interface=public "auth_url=$KEYSTONE_SERVICE_URI" "username=$2" \
        "password=$SERVICE_PASSWORD" "user_domain_name=$SERVICE_DOMAIN_NAME" "project_name=$SERVICE_PROJECT_NAME" \
        "project_domain_name=$SERVICE_DOMAIN_NAME" "www_authenticate_uri=$KEYSTONE_SERVICE_URI" \
        "cafile=$SSL_BUNDLE_FILE"; do
        iniset "$file" "$group" "${pair%%=*}" "${pair#*=}"
    done
}

# Database and broker

database_connection_url() { echo "${MYSQL_URL/\/\?/\/$1?}"; }
recreate_database() {
    record recreate_database "$@"
    "$PYTHON" - "$MYSQL_URL" "$1" << 'END'
import sys
import sqlalchemy
url, name = sys.argv[1:]
with sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT").connect() as connection:
    connection.execute(sqlalchemy.text(f"DROP DATABASE IF EXISTS {name}"))
    connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} CHARACTER SET utf8"))
END
}
iniset_rpc_backend() { # SERVICE FILE
    record iniset_rpc_backend "$@"
    iniset "$2" DEFAULT transport_url "$RABBIT_URL"
}

# Processes

setup_logging() { record setup_logging "$@"; }
run_process() { # SERVICE COMMAND [GROUP] [USER] [ENVIRONMENT]
    record run_process "$@"
    if ! is_service_enabled "$1"; then return 0; fi
    if [[ "$2" != /* ]]; then die $LINENO "run_process: '$2' is not an absolute path"; fi
    # As in a unit, quotes and variables of a shell mean nothing.
    local words
    read -r -a words <<< "$2"
    PYTHONWARNINGS=ignore "${words[@]}" > "$UNITS/$1.log" 2>&1 < /dev/null &
    echo $! > "$UNITS/$1.pid"
}
stop_process() {
    record stop_process "$@"
    local pid file=$UNITS/$1.pid
    if ! is_service_enabled "$1" || [[ ! -e "$file" ]]; then return 0; fi
    pid=$(cat "$file")
    kill -TERM "$pid" 2> /dev/null || true
    timeout "$SERVICE_TIMEOUT" tail --pid="$pid" -f /dev/null || die $LINENO "$1 does not end"
    rm "$file"
}
wait_for_service() { # SECONDS URL
    record wait_for_service "$@"
    local until=$((SECONDS + $1))
    # While nothing listens, or what listens is not ready.
    while [[ $($CURL_GET -s -o /dev/null -w '%{http_code}' "$2") == 503 || $? == 7 ]]; do
        if ((SECONDS > until)); then return 1; fi
        sleep 0.2
    done
}

# Apache, of which there is only the configuration

apache_site_config_for() { echo "$PLACE/apache/$1.conf"; }
write_local_proxy_http_config() { # NAME URL PATH
    record write_local_proxy_http_config "$@"
    echo "ProxyPass $3 $2" > "$(apache_site_config_for "$1")"
}
disable_apache_site() { record disable_apache_site "$@"; }

# grenade

register_project_for_upgrade() { record register_project_for_upgrade "$@"; }
register_db_to_save() { record register_db_to_save "$@"; }
devstack_localrc() { record devstack_localrc "$@"; }
upgrade_project() { record upgrade_project "$@"; }
resource_save() { iniset "$PLACE/grenade_db.ini" "$@"; }
resource_get() { iniget "$PLACE/grenade_db.ini" "$@"; }
_is_running() { [[ -e "$UNITS/$1.pid" ]] && kill -0 "$(cat "$UNITS/$1.pid")" 2> /dev/null; }
ensure_services_started() {
    local service
    record ensure_services_started "$@"
    for service; do _is_running "$service" || die $LINENO "$service does not run"; done
}
ensure_services_stopped() {
    local service
    record ensure_services_stopped "$@"
    for service; do ! _is_running "$service" || die $LINENO "$service runs"; done
}
