#!/bin/bash
# Everything that must hold before a change is merged. Needs nothing but Debian or Ubuntu, network, and root or sudo.
#
#   devstack/gate.sh                        all of it
#   devstack/gate.sh --only lint,unit       some of it; --list names the steps
#
# Each step writes a log to .gate/logs. A step that fails does not keep the next from running. The last line is
# "N passed, N failed, N skipped": the tests of all runs, and one for each step that is not a test run.
#
# Limits are those of a quiet machine with two cores. devstack/speed.py measures how many times slower this one is, every
# few minutes anew, and limits and the waits of the tests (tests/patience.py) grow by that factor. What has not ended
# after 88 minutes is stopped, and what has not begun then has failed.

set -euo pipefail
# shellcheck source=devstack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$CHECKOUT"

GATE=$CHECKOUT/.gate
LOGS=$GATE/logs
# What functional tests need: a target for iSCSI, what writes to it, a server for Ansible, and those for DHCP.
FUNCTIONAL_PACKAGES=(
    tgt qemu-utils qemu-block-extra openssh-server iproute2 cpio dnsmasq-base kea-dhcp4-server isc-dhcp-server
)
# A switch, how one logs in to it, and its networks.
SWITCH_PACKAGES=(openvswitch-switch openssh-server iproute2)
# With what DevStack waits for services.
DEVSTACK_PACKAGES=(curl)
# What clients need that pip does not have: Metal3's is a Go program, Nova makes config drives with genisoimage.
CLIENT_PACKAGES=(golang-go golang-github-gophercloud-gophercloud-dev genisoimage)

# What Ingot is watched with; it comes with promtool.
MONITORING_PACKAGES=(prometheus)
SHELL_PACKAGES=(shellcheck)
# What runs a Debian with systemd in a container of its own, and builds images.
PACKAGING_PACKAGES=(buildah mmdebstrap systemd-container)

BASE_PYTHON=$(find_python) # makes environments; later the first in PATH is the gate's own
export BASE_PYTHON
LONGEST=$((88 * 60)) # CI stops a run after 90 minutes
MEASURE_EVERY=$((4 * 60))

# name | type | seats | minutes on a quiet machine | command. Type `check` counts as one, `tests` as the tests that the
# command ran. Steps begin in this order, each as soon as it has its seats: one for each test that it runs at a time. There
# are more seats than processors, as tests also wait. Steps share nothing.
SEATS=6
STEPS=(
    "types          | check | 1 | 3  | mypy"
    "lint           | check | 1 | 2  | ruff check ."
    "format         | check | 1 | 2  | ruff format --check ."
    "shell          | check | 1 | 2  | check_shell"
    "imports        | check | 1 | 2  | lint-imports"
    "config-sample  | check | 1 | 2  | compare_config_sample"
    "policy-sample  | check | 1 | 2  | compare_policy_sample"
    "diagram        | check | 1 | 2  | python doc/states_diagram.py --check doc/source/contributor/states.dot"
    "openapi        | check | 1 | 2  | python -m ingot.api.openapi --check doc/openapi.json"
    "docs           | check | 1 | 4  | sphinx-build -q -W --keep-going -b html doc/source \$GATE/html && python doc/check_widths.py \$GATE/html"
    "example-driver | check | 1 | 2  | cd devstack/example-driver && python -m testtools.run tests.test_power"
    "releasenotes   | check | 1 | 2  | reno -q lint"
    "console        | check | 1 | 4  | cd console && npm ci && npm run check && npm run build"
    "console-tests  | tests | 2 | 8  | stestr --test-path ./tests/gate/console run --concurrency 2"
    "unit           | tests | 4 | 8  | stestr --test-path ./tests/unit run --concurrency 4"
    # Only makes what the steps real-machine and machine-room need.
    "machine-image  | check | 1 | 15 | PYTHON=\$BASE_PYTHON devstack/machine-room.sh --prepare"
    # These tests share nothing with others of their class.
    "functional     | tests | 5 | 20 | python devstack/services.py run -- stestr --test-path ./tests/functional --group-regex .+ run --concurrency 5"
    # On a network of its own.
    "machine-room   | check | 1 | 22 | PYTHON=\$BASE_PYTHON devstack/machine-room.sh"
    # The longest begin first. A worker for each of the longest machines, and one for the others.
    "real-machine   | tests | 3 | 20 | PYTHON=\$BASE_PYTHON devstack/real-machine.sh --prepare && stestr --test-path ./tests/gate/real_machine run --concurrency 3"
    # Servers with systemd, one with an emulated machine on its network, and the image of containers: nspawn and buildah.
    "packaging      | tests | 2 | 15 | PYTHON=\$BASE_PYTHON devstack/machine-room.sh --prepare && with_root stestr --test-path ./tests/gate run --concurrency 2 test_packaging test_container ServersTest"
    # A real Neutron, and machines that are cabled to a real Open vSwitch. Its tests run one after the other.
    "neutron        | tests | 1 | 25 | with_root stestr --test-path ./tests/gate run --serial test_neutron"
    "clients        | tests | 2 | 12 | stestr --test-path ./tests/gate run --concurrency 2 test_cli test_metalsmith test_metal3 test_nova test_swift_urls"
    # DevStack's plugin and the scripts for grenade, against what DevStack and grenade promise to plugins.
    "devstack       | tests | 2 | 10 | python devstack/services.py run -- stestr --test-path ./tests/gate run --concurrency 2 tests.gate.devstack"
    "tempest        | tests | 2 | 9  | stestr --test-path ./tests/gate run --serial test_tempest"
    "moving         | tests | 2 | 8  | python devstack/services.py run -- stestr --test-path ./tests/gate run --concurrency 2 test_moving test_aliases"
    # Types the commands of the guides; the step packaging those that install a server.
    "pages          | tests | 2 | 12 | stestr --test-path ./tests/gate/pages run --concurrency 2 --exclude-regex ServersTest"
    "upgrade        | tests | 2 | 12 | python devstack/services.py run -- stestr --test-path ./tests/gate run --concurrency 2 test_upgrade test_gunicorn"
    "cinder         | tests | 1 | 10 | stestr --test-path ./tests/gate run --serial test_cinder"
    # A real Open vSwitch, without Neutron.
    "switch         | tests | 1 | 10 | with_root stestr --test-path ./tests/gate run --serial test_switch"
    "inspector      | tests | 1 | 5  | stestr --test-path ./tests/gate run --serial test_inspector"
    "keystone       | tests | 1 | 5  | stestr --test-path ./tests/gate run --serial test_keystone"
    "glance         | tests | 1 | 8  | stestr --test-path ./tests/gate run --serial test_glance"
    "faults         | tests | 2 | 12 | stestr --test-path ./tests/gate run --concurrency 2 tests.gate.faults"
    "wheel          | tests | 1 | 5  | stestr --test-path ./tests/gate run --serial test_wheel"
    "quickstart     | check | 1 | 7  | devstack/quickstart.sh --once"
    "monitoring     | tests | 2 | 6  | python devstack/services.py run -- stestr --test-path ./tests/gate run --concurrency 2 tests.gate.monitoring"
)

passed=0
failed=0
skipped=0
failures=()
slowness=1
declare -A running=() # the steps that run, by their process
declare -A began=()   # when each did, and the limit it got
declare -A limits=()
free=$SEATS
measured=-$MEASURE_EVERY # when the machine's speed was

# A gate that is stopped stops the steps that run, and with them the servers they started.
interrupted() {
    if [ "${#running[@]}" != 0 ]; then
        say "stopped in: ${running[*]%%|*}"
        kill -TERM "${!running[@]}"
        wait "${!running[@]}" || true
    fi
    fail "stopped"
}
trap interrupted INT TERM HUP

field() { printf '%s' "$2" | cut -d'|' -f"$1" | sed 's/^ *//; s/ *$//'; }

usage() {
    say "usage: devstack/gate.sh [--list] [--only STEP[,STEP...]]"
    exit "$1"
}

list_steps() {
    local step
    for step in "${STEPS[@]}"; do printf '%-14s %s\n' "$(field 1 "$step")" "$(field 5 "$step")"; done
}

# The sample is generated: a difference means that an option was changed and not the file, or the reverse.
compare_config_sample() {
    python -m ingot.common.conf.sample "$GATE/ingot.conf.sample" || return
    diff -u etc/ingot.conf.sample "$GATE/ingot.conf.sample" || {
        say "etc/ingot.conf.sample is not what the options say: tox -e genconfig"
        return 1
    }
}
compare_policy_sample() {
    oslopolicy-sample-generator --config-file etc/policy-generator.conf --output-file "$GATE/policy.yaml.sample" || return
    diff -u etc/policy.yaml.sample "$GATE/policy.yaml.sample" || {
        say "etc/policy.yaml.sample is not what the rules say: tox -e genpolicy"
        return 1
    }
}

# Of all scripts that git tracks, with and without a shebang.
check_shell() {
    local file files=()
    while read -r file; do files+=("$file"); done < <(list_scripts)
    for file in "${files[@]}"; do bash -n "$file" || return; done
    shellcheck "${files[@]}"
}
# A script says what it is in its first lines: by a shebang, or to shellcheck.
list_scripts() {
    git grep -lIEz -e '^#!.*[/ ](ba)?sh$' -e '^# shellcheck shell=' | xargs -0 awk 'FNR > 6 { nextfile }
        /^#!.*[\/ ](ba)?sh$|^# shellcheck shell=/ { print FILENAME; nextfile }'
}

# Containers need root: those of the gate boot, and have networks of their own. Root leaves no files in a user's cache.
with_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo --preserve-env env PATH="$PATH" UV_NO_CACHE=1 "$@"; fi
}
export GATE
export -f compare_config_sample compare_policy_sample check_shell list_scripts with_root say

# Add the results of a test run to the counters. A run that left no result (it crashed, timed out, or a module could
# not be imported) is one failure.
count_tests() {
    local status=$1 results=$2 stats ran_failed
    stats=$(stestr --repo-url "$results" last --subunit 2>/dev/null | subunit-stats 2>/dev/null) || true
    number() { printf '%s\n' "$stats" | sed -n "s/^$1 tests: *//p" | grep . || echo 0; }
    ran_failed=$(number Failed)
    if [ "$status" != 0 ] && [ "$ran_failed" = 0 ]; then ran_failed=1; fi
    passed=$((passed + $(number Passed)))
    failed=$((failed + ran_failed))
    skipped=$((skipped + $(number Skipped)))
    printf ' (%s passed, %s failed, %s skipped)' "$(number Passed)" "$ran_failed" "$(number Skipped)"
}

# The gate's own output, where it is all there is to see, names at least the tests to look at.
list_failing() { stestr --repo-url "$1" failing --list 2>/dev/null | sed 's/^/failed: /' || true; }

measure_machine() {
    if [ $((SECONDS - measured)) -lt "$MEASURE_EVERY" ]; then return; fi
    measured=$SECONDS
    slowness=$(python devstack/speed.py)
    export INGOT_TEST_PATIENCE=$slowness
    say "after $((SECONDS / 60)) minutes: this machine is now $slowness times as slow as a quiet one with two cores"
}

# start_step STEP: begin it in the background, within its limit and what is left of the gate's time.
start_step() {
    local name command limit left
    measure_machine
    left=$((LONGEST - SECONDS))
    name=$(field 1 "$1") command=$(field 5 "$1")
    if [ "$left" -le 0 ]; then
        failed=$((failed + 1))
        failures+=("$name")
        printf '%-14s FAILED: not begun, the gate has taken %d minutes\n' "$name" $((SECONDS / 60))
        return
    fi
    limit=$(awk -v minutes="$(field 4 "$1")" -v factor="$slowness" 'BEGIN { print int(minutes * 60 * factor) }')
    if [ "$(field 2 "$1")" = tests ]; then
        rm -rf "${GATE:?}/results/$name"
        cp -r "$GATE/durations" "$GATE/results/$name" # a repository of stestr that knows how long slow tests take
        command=${command/stestr /stestr --repo-url "$GATE/results/$name" }
    fi
    limits[$name]=$((limit < left ? limit : left)) began[$name]=$SECONDS
    timeout --kill-after=60 "${limits[$name]}" bash -c "$command" > "$LOGS/$name.log" 2>&1 < /dev/null &
    running[$!]=$1
    free=$((free - $(field 3 "$1")))
    say "$name begins"
}

# Set `used` to the processor time, in seconds, of all processes of the gate that have ended.
read_used() {
    times > "$GATE/times" # in a pipe it would be that of another process
    used=$(awk -F '[ms ]' 'NR == 2 { print int($1 * 60 + $2 + $4 * 60 + $5) }' "$GATE/times")
}

# report_step STEP STATUS SECONDS: say how a step ended and what processor time it took, and count it.
report_step() {
    local name type status=$2
    name=$(field 1 "$1") type=$(field 2 "$1")
    free=$((free + $(field 3 "$1")))
    printf '%-14s %s in %d s, of a processor %d s' "$name" "$([ "$status" = 0 ] && echo ok || echo FAILED)" \
        $((SECONDS - began[$name])) "$3"
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then printf ' (stopped after %d s)' "${limits[$name]}"; fi
    if [ "$type" = tests ]; then
        count_tests "$status" "$GATE/results/$name"
    elif [ "$status" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    say
    if [ "$status" != 0 ]; then
        failures+=("$name")
        tail -n 40 "$LOGS/$name.log" | sed 's/^/    /'
        if [ "$type" = tests ]; then list_failing "$GATE/results/$name"; fi
    fi
}

# Wait until a step ends, and report it.
await_step() {
    local status=0 ended='' step used before
    read_used
    before=$used
    wait -n -p ended "${!running[@]}" 2> /dev/null || status=$?
    if [ -z "${ended:-}" ]; then # a signal has ended it meanwhile: only a plain wait still knows how
        for ended in "${!running[@]}"; do kill -0 "$ended" 2> /dev/null || break; done
        status=0
        wait "$ended" || status=$?
    fi
    step=${running[$ended]}
    unset "running[$ended]"
    read_used
    report_step "$step" "$status" $((used - before))
}

only=
while [ $# -gt 0 ]; do
    case $1 in
        --only) [ $# -ge 2 ] || usage 2; only=$2; shift ;;
        --list) list_steps; exit ;;
        -h | --help) usage 0 ;;
        *) usage 2 ;;
    esac
    shift
done
for name in ${only//,/ }; do
    list_steps | cut -d' ' -f1 | grep -qx -- "$name" || fail "there is no step '$name': devstack/gate.sh --list"
done

mkdir -p "$LOGS"
say "environment in $GATE/venv"
make_environment "$GATE/venv" "$GATE_EXTRAS" > "$LOGS/environment.log" 2>&1 || {
    tail -n 40 "$LOGS/environment.log"
    fail "the environment could not be made; the log is $LOGS/environment.log"
}
# As an operator would install it: a copy, and anew each time, as it may have changed.
"$GATE/venv/bin/python" devstack/uv.py pip install -q --python "$GATE/venv" --no-deps --reinstall devstack/example-driver >> "$LOGS/environment.log" 2>&1 || {
    tail -n 40 "$LOGS/environment.log"
    fail "devstack/example-driver could not be installed; the log is $LOGS/environment.log"
}
export PATH=$GATE/venv/bin:$PATH
if [ -z "$only" ] || [[ ,$only, =~ ,(functional|quickstart|moving|clients|upgrade|devstack|faults|monitoring), ]]; then
    python devstack/services.py install
fi
if [ -z "$only" ] || [[ ,$only, == *,functional,* ]]; then
    install_packages "${FUNCTIONAL_PACKAGES[@]}"
fi
if [ -z "$only" ] || [[ ,$only, =~ ,(switch|neutron), ]]; then
    install_packages "${SWITCH_PACKAGES[@]}"
fi
if [ -z "$only" ] || [[ ,$only, == *,devstack,* ]]; then
    install_packages "${DEVSTACK_PACKAGES[@]}"
fi
if [ -z "$only" ] || [[ ,$only, == *,clients,* ]]; then
    install_packages "${CLIENT_PACKAGES[@]}"
fi
if [ -z "$only" ] || [[ ,$only, =~ ,(monitoring|pages), ]]; then
    install_packages "${MONITORING_PACKAGES[@]}"
fi
if [ -z "$only" ] || [[ ,$only, == *,shell,* ]]; then
    install_packages "${SHELL_PACKAGES[@]}"
fi
if [ -z "$only" ] || [[ ,$only, == *,packaging,* ]]; then
    install_packages "${PACKAGING_PACKAGES[@]}"
fi

if [ -z "$only" ] || [[ ,$only, =~ ,(console|console-tests), ]]; then
    # Where Node.js comes from elsewhere, its npm comes with it, and Debian's does not go with it.
    command -v npm > /dev/null || install_packages nodejs npm
fi
if [ -z "$only" ] || [[ ,$only, == *,docs,* ]]; then
    install_packages graphviz # draws the pictures of the guides
fi
if [ -z "$only" ] || [[ ,$only, =~ ,(docs|console-tests|real-machine), ]]; then
    install_packages chromium # looks whether a page of the guides is too wide; has the console in it
fi

rm -rf "$GATE/durations"
mkdir -p "$GATE/durations" "$GATE/results"
python devstack/durations.py tell "$GATE/durations"

for step in "${STEPS[@]}"; do
    if [ -z "$only" ] || [[ ,$only, == *,$(field 1 "$step"),* ]]; then
        while [ "$free" -lt "$(field 3 "$step")" ]; do await_step; done
        start_step "$step"
    fi
done
while [ "${#running[@]}" != 0 ]; do await_step; done

if [ "$failed" != 0 ]; then say "failed: ${failures[*]}; logs are in $LOGS"; fi
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
