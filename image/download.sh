# shellcheck shell=sh
# Runs in a new system: downloads packages into the directory $1, verified by its apt. They are not installed: the kernel,
# of which $2 is the package that depends on the newest, would bring the tools that make another ramdisk, and start them;
# loaders would want a disk.
mkdir -p "$1"
cd "$1"
kernel=$(apt-cache depends --important "$2" | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p')
shift 2
apt-get -q -o APT::Sandbox::User=root download "$kernel" "$@"
