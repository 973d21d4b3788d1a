#!/bin/bash
# Three machines from unknown to active on this computer, with real IPMI, a real agent protocol and a real image.
#
#   devstack/quickstart.sh             run it; on a terminal then print the web console's address, and serve until Ctrl-C
#   devstack/quickstart.sh --once      run it, stop everything, exit 0 if all was as it must be
#
#   --machines N     how many machines (default 3)
#   --work-dir DIR   where database, disks and logs go (default: a new one in .quickstart, removed after a success)
#   --keep           keep that directory also after a success; after a failure it is always kept
#
# Needs Debian or Ubuntu with Python 3.11 or newer. Debian's python3 and python3-venv are installed if they are missing (as
# root or through sudo), nothing else; the environment and the image stay in .quickstart. PYTHON names another
# interpreter than python3.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/.quickstart
python=${PYTHON:-python3}
builder=

fail() {
    echo "quickstart: $*" >&2
    exit 1
}

# Whatever happens until the last command takes this process over, nothing stays behind.
stop_builder() {
    [ -z "$builder" ] || kill "$builder" 2>/dev/null || true
}
trap stop_builder EXIT

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "'$*' must be run as root, and there is no sudo: run it yourself, then start this again"
    fi
}

apt_install() {
    command -v apt-get >/dev/null || fail "$* is missing, and there is no apt-get to install it"
    echo "installing $*"
    as_root apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$@" >/dev/null
}

find_python() {
    command -v "$python" >/dev/null || [ -n "${PYTHON:-}" ] || apt_install python3 python3-venv
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$("$python" --version) is too old:" \
        "Ingot needs Python 3.11 or newer; PYTHON=/path/to/python names another one"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    fi
}

build_image() {
    PYTHONPATH=$root/devstack "$python" -P -m quickstart.image "$build/cache" >"$build/image" 2>"$build/image.log" &
    builder=$!
}

# The environment is made once and again when the requirements change; the code in it is always the checkout's.
install() {
    local sources
    sources=$({ echo "$root" && "$python" -VV && cat "$root/setup.cfg" "$root/pyproject.toml"; } | sha256sum)
    if [ "$(cat "$build/installed" 2>/dev/null)" != "$sources" ]; then
        echo "installing Ingot and openstacksdk into $build/venv"
        "$python" -m venv --clear "$build/venv"
        # Few of the modules are imported: each is compiled when it is.
        "$build/venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check -e "$root" "openstacksdk>=4.0" ||
            fail "the environment could not be installed; what pip said is above"
        echo "$sources" >"$build/installed"
    fi
}

wait_for_image() {
    wait "$builder" || fail "the image could not be built: $(cat "$build/image.log")"
    builder=
}

case " $* " in
*" --help "* | *" -h "*) sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac

mkdir -p "$build"
find_python
# Two that start at once share what the first one installs.
exec 9>"$build/lock"
flock 9
build_image
install
wait_for_image
exec 9>&-

# From here on this process is the quickstart itself, which stops what it starts.
export PYTHONPATH=$root/devstack
exec "$build/venv/bin/python" -P -m quickstart --build-dir "$build" --image "$(cat "$build/image")" "$@"
