# What the scripts of devstack/ share; to be sourced by bash.
# shellcheck shell=bash

CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Of the gate's environment in .gate/venv, which real-machine.sh uses too.
# shellcheck disable=SC2034
GATE_EXTRAS=docs,lint,mysql,mysqlclient,postgresql,test

say() { printf '%s\n' "$*"; }

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# install_packages NAME...: those of Debian's packages that are missing. Their services are neither started nor enabled:
# what runs beside tests, the tests start themselves.
install_packages() {
    local name missing=() policy=/usr/sbin/policy-rc.d own=
    for name; do
        dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
    done
    if [ "${#missing[@]}" = 0 ]; then return; fi
    say "installing ${missing[*]}"
    local units
    units=$(list_units)
    as_root apt-get update -q
    if [ ! -e "$policy" ]; then
        own=$policy
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' > $policy && chmod 755 $policy"
    fi
    local status=0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" || status=$?
    if [ -n "$own" ]; then as_root rm -f "$own"; fi
    if [ "$status" != 0 ]; then return "$status"; fi
    if command -v systemctl >/dev/null; then
        comm -13 <(echo "$units") <(list_units) | while read -r name; do
            as_root systemctl disable --quiet "$name" </dev/null
        done
    fi
}

list_units() {
    find /lib/systemd/system /etc/init.d -maxdepth 1 -type f ! -name '*@*' -printf '%f\n' 2>/dev/null |
        sed -n -e '/\.\(socket\|timer\|target\|path\|mount\|slice\)$/d' -e 's/\.service$//' -e 's/$/.service/p' | sort -u
}

# Prints a Python that Ingot supports: $PYTHON, or the first that fits.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found; install one, or name one in PYTHON"
}

# install_for_compiling PYTHON: what it takes to compile mysqlclient.
install_for_compiling() {
    local headers
    headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    install_packages gcc libc6-dev libmariadb-dev pkg-config
    if [ ! -f "$headers/Python.h" ]; then install_packages "$(basename "$headers")-dev"; fi
}

# make_environment DIRECTORY EXTRAS: a virtual environment with this checkout installed in place.
# It is made again only when the packaging or the Python changed, or when making it did not finish.
make_environment() {
    local directory=$1 extras=$2 python sources
    python=$(find_python)
    sources=$("$python" --version; printf '%s\n' "$python" "$extras" "$CHECKOUT"; cat "$CHECKOUT/setup.cfg")
    if [ -f "$directory/.made-from" ] && [ "$(cat "$directory/.made-from")" = "$sources" ]; then
        return
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        install_packages python3-venv
    fi
    case $extras in *mysqlclient*) install_for_compiling "$python" ;; esac
    "$python" -m venv --clear "$directory"
    "$directory/bin/python" -m pip install -q uv
    "$directory/bin/python" "$CHECKOUT/devstack/uv.py" pip install -q --python "$directory" --upgrade pip -e "${CHECKOUT}[$extras]"
    printf '%s\n' "$sources" > "$directory/.made-from"
}
