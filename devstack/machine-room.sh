#!/bin/bash
# A machine room: machines without any setting in their firmware boot on a network that only Ingot serves.
#
#   devstack/machine-room.sh              all of it
#   devstack/machine-room.sh --prepare    only install and build what it needs
#
# Four machines go from their first boot to a system on their disks, discovered, accepted, cleaned and deployed: by UEFI
# (this one inspected, too), by BIOS, by UEFI HTTP boot, and with secure boot by the signed shim and GRUB. ingot-boot
# answers DHCP and TFTP with loaders of Debian. Network, bridge and cards are in a namespace that ends with the run.
#
# The last machine is at a port of an Open vSwitch, whose VLANs Ingot changes: it is discovered, cleaned and deployed on
# one VLAN each, and its system is on that of its user.
#
# Needs Debian or Ubuntu, and root or sudo. Takes ramdisk and image from devstack/real-machine.sh, which keeps them.
# .gate/real-machine/runs/room has the logs.

set -euo pipefail
# shellcheck source=devstack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$CHECKOUT"

PACKAGES=(
    dnsmasq-base ipxe iproute2 util-linux
    openvswitch-switch openssh-server ethtool # a switch, how one logs in to it, and its cable
)
BRIDGE=machines
MACHINES=4
SWITCHED=3 # the number of the machine at the switch

# inside COMMAND...: run it where there is a bridge with a card of each machine but one, and no other network. That one's
# cable ends where a switch may have its port, "port$SWITCHED".
inside() {
    ip link set lo up
    ip link add "$BRIDGE" type bridge
    ip addr add 10.77.0.1/24 dev "$BRIDGE"
    ip link set "$BRIDGE" up
    for ((number = 0; number < MACHINES; number++)); do
        ip tuntap add "machine$number-0" mode tap
        ip link set "machine$number-0" master "$BRIDGE" up
    done
    add_cable "machine$SWITCHED-0" "port$SWITCHED"
    exec "$@"
}

# add_cable CARD PORT: connect them, and the card with nothing else. Machines leave checksums to the card by which a frame
# leaves this computer: a switch would pass them on unfinished.
add_cable() {
    ip link add cable type bridge
    ip link add plug master cable type veth peer name "$2"
    ethtool --offload plug tx off > /dev/null
    ip link set "$1" master cable
    for name in cable plug "$2"; do ip link set "$name" up; done
}

case ${1:-} in
    --inside) shift; inside "$@" ;;
    "" | --prepare) ;;
    -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) fail "unknown: $1; see --help" ;;
esac
devstack/real-machine.sh --prepare
install_packages "${PACKAGES[@]}"
if [ "${1:-}" = --prepare ]; then exit; fi
"$CHECKOUT/.gate/venv/bin/python" -c 'from tests.gate import switches; switches.prepare()' # there is no network inside
as_root env PATH="$CHECKOUT/.gate/venv/bin:$PATH" INGOT_TEST_PATIENCE="${INGOT_TEST_PATIENCE:-1}" \
    unshare --net "$CHECKOUT/devstack/machine-room.sh" --inside \
    python -m testtools.run tests.gate.machine_room.test_machine_room
say "the machine room took $SECONDS s; logs are in $CHECKOUT/.gate/real-machine/runs/room"
