#!/bin/bash
# Everything that must hold before a change is merged. Needs nothing but Debian or Ubuntu, network, and root or sudo.
#
#   devstack/gate.sh                        all of it
#   devstack/gate.sh --only lint,unit       some of it; --list names the steps
#
# Each step writes a log to .gate/logs. A step that fails does not keep the next from running. The last line is
# "N passed, N failed, N skipped": the tests of all runs, and one for each step that is not a test run.

set -euo pipefail
# shellcheck source=devstack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$CHECKOUT"

GATE=$CHECKOUT/.gate
LOGS=$GATE/logs
EXTRAS=lint,mysql,postgresql,test
# What clients need that pip does not have: Metal3's is a Go program, Nova makes config drives with genisoimage.
CLIENT_PACKAGES=(golang-go golang-github-gophercloud-gophercloud-dev genisoimage)

# name | kind | minutes it may take | command. Kind `check` counts as one, `tests` as the tests that the command ran.
STEPS=(
    "lint          | check | 1  | ruff check ."
    "format        | check | 1  | ruff format --check ."
    "types         | check | 3  | mypy"
    "imports       | check | 1  | lint-imports"
    "config-sample | check | 1  | compare_config_sample"
    "policy-sample | check | 1  | compare_policy_sample"
    "diagram       | check | 1  | python -m ingot.common.diagram --check doc/source/contributor/states.dot"
    "openapi       | check | 1  | python -m ingot.api.openapi --check doc/openapi.json"
    "releasenotes  | check | 1  | reno -q lint"
    "unit          | tests | 8  | stestr --test-path ./tests/unit run"
    # Functional tests wait more than they work, and none shares anything with others of its class.
    "functional    | tests | 25 | python devstack/services.py run -- stestr --test-path ./tests/functional --group-regex .+ run --concurrency 4"
    "quickstart    | check | 7  | devstack/quickstart.sh --once"
    "clients       | tests | 12 | stestr --test-path ./tests/gate run --concurrency 2 test_cli test_metalsmith test_metal3 test_nova"
    "keystone      | tests | 5  | stestr --test-path ./tests/gate run --serial test_keystone"
    "glance        | tests | 8  | stestr --test-path ./tests/gate run --serial test_glance"
    "upgrade       | tests | 8  | python devstack/services.py run -- stestr --test-path ./tests/gate run --concurrency 2 test_upgrade test_gunicorn"
    "faults        | tests | 9  | stestr --test-path ./tests/gate run --concurrency 2 tests.gate.faults"
    "tempest       | tests | 9  | stestr --test-path ./tests/gate run --serial test_tempest"
    "real-machine  | tests | 20 | devstack/real-machine.sh --prepare && stestr --test-path ./tests/gate/real_machine run --concurrency 3"
    "wheel         | tests | 5  | stestr --test-path ./tests/gate run --serial test_wheel"
)

passed=0
failed=0
skipped=0
failures=()
running=

# Whoever stops the gate stops the step that runs, and with it the servers it started.
interrupted() {
    if [ -n "$running" ]; then
        kill -TERM "$running"
        wait "$running" || true
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
    for step in "${STEPS[@]}"; do printf '%-14s %s\n' "$(field 1 "$step")" "$(field 4 "$step")"; done
}

# The sample is generated: a difference means that someone changed an option and not the file, or the reverse.
compare_config_sample() {
    oslo-config-generator --config-file etc/config-generator.conf --output-file "$GATE/ingot.conf.sample" &&
        diff -u etc/ingot.conf.sample "$GATE/ingot.conf.sample" || {
        say "etc/ingot.conf.sample is not what the options say: tox -e genconfig"
        return 1
    }
}
compare_policy_sample() {
    oslopolicy-sample-generator --config-file etc/policy-generator.conf --output-file "$GATE/policy.yaml.sample" &&
        diff -u etc/policy.yaml.sample "$GATE/policy.yaml.sample" || {
        say "etc/policy.yaml.sample is not what the rules say: tox -e genpolicy"
        return 1
    }
}
export GATE
export -f compare_config_sample compare_policy_sample say

# Adds the results of a test run to the counters. A run that left no result (it crashed, timed out, or a module could
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

# Whoever sees only the gate's own output must know at least which tests to look at.
list_failing() { stestr --repo-url "$1" failing --list 2>/dev/null | sed 's/^/failed: /' || true; }

run_step() {
    local name kind minutes command status=0 began=$SECONDS
    name=$(field 1 "$1") kind=$(field 2 "$1") minutes=$(field 3 "$1") command=$(field 4 "$1")
    printf '%-14s ' "$name"
    if [ "$kind" = tests ]; then
        rm -rf "${GATE:?}/results/$name"
        mkdir -p "$GATE/results/$name"
        command=${command/stestr /stestr --repo-url "$GATE/results/$name" }
    fi
    timeout --kill-after=60 "${minutes}m" bash -c "$command" > "$LOGS/$name.log" 2>&1 < /dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    printf '%s in %d s' "$([ "$status" = 0 ] && echo ok || echo FAILED)" $((SECONDS - began))
    if [ "$status" = 124 ]; then printf ' (stopped after %d minutes)' "$minutes"; fi
    if [ "$kind" = tests ]; then
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
        if [ "$kind" = tests ]; then list_failing "$GATE/results/$name"; fi
    fi
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
make_environment "$GATE/venv" "$EXTRAS" > "$LOGS/environment.log" 2>&1 || {
    tail -n 40 "$LOGS/environment.log"
    fail "the environment could not be made; the log is $LOGS/environment.log"
}
# As an operator would install it: a copy, and anew each time, as it may have changed.
"$GATE/venv/bin/python" -m pip install -q "$CHECKOUT/devstack/example-driver" >> "$LOGS/environment.log" 2>&1 || {
    tail -n 40 "$LOGS/environment.log"
    fail "devstack/example-driver could not be installed; the log is $LOGS/environment.log"
}
export PATH=$GATE/venv/bin:$PATH
if [ -z "$only" ] || [[ ,$only, =~ ,(functional|quickstart|clients|upgrade|faults), ]]; then
    python devstack/services.py install
fi
if [ -z "$only" ] || [[ ,$only, == *,clients,* ]]; then
    install_packages "${CLIENT_PACKAGES[@]}"
fi

for step in "${STEPS[@]}"; do
    name=$(field 1 "$step")
    if [ -z "$only" ] || [[ ,$only, == *,$name,* ]]; then run_step "$step"; fi
done

if [ "$failed" != 0 ]; then say "failed: ${failures[*]}; logs are in $LOGS"; fi
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
