#!/bin/busybox sh
# The ramdisk's first process: devices, network, agent; a login for the user of a machine that is rescued.
# The kernel's argument ramdisk.shell opens a shell on the serial console beside the agent.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8

say() { echo "ramdisk: $* ($(cut -d' ' -f1 /proc/uptime) s)"; }

offer_login() { # [OPTION...] of agetty: on the kernel's console, again after each logout
    read -r console < /sys/class/tty/console/active
    while true; do setsid agetty "$@" --noclear --local-line "${console##* }" 115200 vt100; done
}

ask_for_address() { # CARD, which goes on asking, and renews its address, when this has ended
    ip link set "$1" up
    tries=20
    while [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" != 1 ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { say "$1: no cable" && return; }
        sleep 0.5
    done
    busybox udhcpc -i "$1" -s /etc/dhcp-event -b -S -t 10 -T 2
    [ -n "$(ip -4 address show dev "$1")" ] || say "$1: no address yet"
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /run /mnt/config
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/network
say started
[ ! -d /sys/firmware/efi ] || mount -t efivarfs efivarfs /sys/firmware/efi/efivars
busybox hostname ramdisk

/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add --type=subsystems
udevadm trigger --action=add --type=devices
udevadm settle --timeout=60
# A mirror of empty disks need not be copied before it is used: that is for the system that will run from it.
modprobe md_mod
modprobe -a button evdev
busybox acpid -c /etc/acpi -l /dev/null -p /run/acpid.pid
echo 0 > /proc/sys/dev/raid/speed_limit_min
echo 1000 > /proc/sys/dev/raid/speed_limit_max
say "devices are there"

ip link set lo up
# The node's network_data is on the medium that the machine was booted from. A disk may have a label of that name, too.
medium=$(lsblk --paths --noheadings --raw --output TYPE,LABEL,NAME | sed -n 's/^rom config-2 //p')
case " $(cat /proc/cmdline) " in
*" boot_method=vmedia "*) [ -z "$medium" ] || mount -o ro "$medium" /mnt/config ;;
esac
if [ -e /mnt/config/openstack/latest/network_data.json ]; then
    python3 -m glean --distro debian --no-dhcp-fallback
    ifup -a
    say "network is up as the node's network_data says"
else
    # All at once: most cards of a server lead nowhere.
    for card in /sys/class/net/*; do
        [ ! -e "$card/device" ] || ask_for_address "${card##*/}" &
    done
    wait
    say "network is up"
fi
! mountpoint -q /mnt/config || umount /mnt/config

case " $(cat /proc/cmdline) " in
*" ramdisk.shell "*) offer_login --autologin root & ;;
esac

if [ -s /root/.ssh/authorized_keys ]; then
    mkdir -p /run/sshd
    ssh-keygen -q -A
    # Modes are not asked for: the root directory of a ramdisk is often open to all users, of whom it has none.
    /usr/sbin/sshd -o StrictModes=no
    say "root may log in by SSH"
fi

mkdir -p /etc/ipa-rescue-config
while [ ! -e /etc/.rescued ]; do
    python3 -c 'from ironic_python_agent.cmd.agent import run; run()' --config-dir /etc/ironic-python-agent.d
    status=$?
    [ -e /etc/.rescued ] || { say "the agent ended with status $status, it is started again" && sleep 5; }
done

# The agent has left the machine to its user, who may do everything: there is no sudo.
useradd --key UID_MIN=0 --non-unique --uid 0 --gid 0 --home-dir /root --shell /bin/bash rescue
echo "rescue:$(cat /etc/ipa-rescue-config/ipa-rescue-password)" | chpasswd --encrypted
say "user rescue can log in"
offer_login
