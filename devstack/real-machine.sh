#!/bin/bash
# A real machine but for the metal: QEMU boots the real ironic-python-agent, which Ingot has write a system that boots.
#
#   devstack/real-machine.sh               in UEFI: inspection, cleaning, a deployment on a RAID-1, cleaning again
#   devstack/real-machine.sh --media       by Redfish virtual media: no DHCP, no iPXE, secure boot from first to last
#   devstack/real-machine.sh --server      a machine with a server's hardware boots what ingot-image builds for servers
#   devstack/real-machine.sh --all         all and, beside them, in BIOS: failures, a deployment on one disk, a rescue; PXELINUX
#                                          and the serial console in the web console
#   devstack/real-machine.sh --record      records what the agent says, for tests/functional/agent_contract
#   devstack/real-machine.sh --prepare     only install and build what they need
#
# Tells the timeline and what the deployed system says on its serial console: marker, root, members of the RAID.
#
# Needs Debian or Ubuntu, and root or sudo: Debian packages are installed, and the deploy ramdisk is made from others.
# Ramdisks and image are kept until their sources change: in $INGOT_CACHE, by default ~/.cache/ingot.
# .gate/real-machine/runs has the logs.

set -euo pipefail
# shellcheck source=devstack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$CHECKOUT"

PLACE=$CHECKOUT/.gate/real-machine
CACHE=${INGOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ingot}
PACKAGES=(
    qemu-system-x86 qemu-utils ipxe-qemu ovmf                 # the machine
    qemu-block-extra openssh-client                           # what writes to it
    mmdebstrap debian-archive-keyring cpio zstd kmod          # its ramdisk
    mtools gdisk e2fsprogs syslinux syslinux-common           # its image; the loader for UEFI is fetched with the ramdisk
    pxelinux                                                  # a loader that TFTP gives it; those for UEFI are fetched
    chromium                                                  # types on its serial console
    tgt                                                       # exports its volume
)

quietly() { # LOG COMMAND...: of a command that fails, the end of its log is shown
    local log=$PLACE/$1.log
    shift
    "$@" > "$log" 2>&1 || {
        tail -n 20 "$log"
        fail "$* failed; the log is $log"
    }
}

# One at a time: steps of the gate that run beside each other all prepare.
prepare() { # [server]: what the tests need; with an argument, what the server boots, too
    mkdir -p "$PLACE"
    {
        flock 9
        quietly packages install_packages "${PACKAGES[@]}"
        quietly environment make_environment "$CHECKOUT/.gate/venv" "$GATE_EXTRAS"
        as_root env PYTHONPATH="$CHECKOUT/devstack" "$CHECKOUT/.gate/venv/bin/python" -P -m ramdisk "$PLACE" \
            --cache "$CACHE/real-machine"
        [ -z "${1:-}" ] || as_root env INGOT_CACHE="$CACHE" "$CHECKOUT/.gate/venv/bin/ingot-image" \
            build --profile server --output "$PLACE/server"
    } 9> "$PLACE/prepare.lock"
    say "prepared in $SECONDS s"
}

what=test_uefi
case ${1:-} in
    "") ;;
    --media) what=test_virtual_media ;;
    --server) what=test_server ;;
    --all) what=. ;;
    --prepare) prepare server; exit ;;
    --record) prepare; PATH=$CHECKOUT/.gate/venv/bin:$PATH exec python -m testtools.run tests.gate.real_machine.recording ;;
    -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) fail "unknown: $1; see --help" ;;
esac
case $what in
    test_server | .) prepare server ;;
    *) prepare ;;
esac
rm -rf "$PLACE/runs"
: > "$PLACE/story.txt"
status=0
# A worker for each module: two machines keep two processors busy.
PATH=$CHECKOUT/.gate/venv/bin:$PATH stestr --test-path ./tests/gate/real_machine run --concurrency 3 "$what" \
    > "$PLACE/tests.log" 2>&1 < /dev/null &
tests=$!
trap 'kill $tests 2>/dev/null || true' EXIT
tail -n +1 --pid=$tests -f "$PLACE/story.txt"
wait $tests || status=$?
trap - EXIT
[ $status = 0 ] || tail -n 60 "$PLACE/tests.log"
grep -E '^ - (Passed|Failed):' "$PLACE/tests.log" || status=1
say "everything took $SECONDS s; logs are in $PLACE/runs"
[ $what = test_server ] || {
    say "the deployed systems said:"
    grep -E ' (root=|array=|config=)' "$PLACE/story.txt" || status=1
}
exit $status
