#!/bin/busybox sh
# What udhcpc found out becomes the network card's configuration.
# shellcheck disable=SC2154 # its variables come from udhcpc
case $1 in
deconfig)
    ip address flush dev "$interface"
    ip link set "$interface" up
    ;;
bound)
    ip address replace "$ip/$mask" dev "$interface"
    for gateway in $router; do ip route append default via "$gateway" dev "$interface"; done
    for server in $dns; do echo "nameserver $server"; done >> /etc/resolv.conf
    ;;
renew) ip address replace "$ip/$mask" dev "$interface" ;;
esac
