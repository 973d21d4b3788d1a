#!/bin/busybox sh
# What the machine's power button does, which a soft power off presses.
echo "ramdisk: power button" > /dev/console
busybox sync
exec busybox poweroff -f
