#!/bin/bash
# A real machine but for the metal: QEMU boots the real ironic-python-agent, which Ingot has write a system that boots.
#
#   devstack/real-machine.sh               inspection, deployments in BIOS, and in UEFI on a RAID-1; prints a timeline
#   devstack/real-machine.sh --prepare     only install and build what they need
#   devstack/real-machine.sh TEST ...      only the tests whose names match, as in stestr
#
# Needs Debian or Ubuntu, and root or sudo: Debian packages are installed, and the deploy ramdisk is made from others.
# What was built stays in .gate/real-machine until its sources change; .gate/real-machine/runs has the logs.

set -euo pipefail
# shellcheck source=devstack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$CHECKOUT"

PLACE=$CHECKOUT/.gate/real-machine
PACKAGES=(
    qemu-system-x86 qemu-utils ipxe-qemu ovmf                 # the machine
    mmdebstrap debian-archive-keyring cpio zstd kmod          # its ramdisk
    mtools gdisk e2fsprogs syslinux syslinux-common systemd-boot-efi # its image
)

install_packages() {
    local package missing=()
    for package in "${PACKAGES[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
    done
    [ ${#missing[@]} != 0 ] || return 0
    say "installing ${missing[*]}"
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

prepare() {
    mkdir -p "$PLACE"
    install_packages > "$PLACE/packages.log" 2>&1 || { tail -n 20 "$PLACE/packages.log"; fail "no packages"; }
    make_environment "$CHECKOUT/.gate/venv" lint,mysql,postgresql,test > "$PLACE/environment.log" 2>&1 ||
        { tail -n 20 "$PLACE/environment.log"; fail "the environment could not be made"; }
    as_root env PYTHONPATH="$CHECKOUT/devstack" "$CHECKOUT/.gate/venv/bin/python" -P -m ramdisk "$PLACE"
}

began=$SECONDS
case ${1:-} in
    -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
esac
prepare
say "prepared in $((SECONDS - began)) s"
[ "${1:-}" != --prepare ] || exit 0
rm -rf "$PLACE/runs"
: > "$PLACE/story.txt"
status=0
PATH=$CHECKOUT/.gate/venv/bin:$PATH stestr --test-path ./tests/gate/real_machine run --serial "$@" \
    > "$PLACE/tests.log" 2>&1 < /dev/null &
tests=$!
trap 'kill $tests 2>/dev/null || true' EXIT
tail -n +1 --pid=$tests -f "$PLACE/story.txt"
wait $tests || status=$?
trap - EXIT
[ $status = 0 ] || tail -n 60 "$PLACE/tests.log"
grep -E '^ - (Passed|Failed):' "$PLACE/tests.log" || status=1
say "everything took $((SECONDS - began)) s; logs are in $PLACE/runs"
exit $status
