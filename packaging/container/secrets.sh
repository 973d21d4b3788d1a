#!/bin/sh
# Makes the passwords and the key of compose.yaml, once, below secrets/ beside this file.
#
#   ./secrets.sh mariadb | postgresql
#
# With Docker as root; for rootless podman as the user whose containers they are.
set -eu
umask 077

case ${1:-} in
    mariadb) scheme=mysql+pymysql options='?charset=utf8mb4' ;;
    postgresql) scheme=postgresql+psycopg options= ;;
    *) echo "usage: $0 mariadb | postgresql" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)/secrets
image=${INGOT_IMAGE:-localhost/ingot:latest}
engine=${ENGINE:-$(command -v podman || command -v docker)}
[ ! -e "$here" ] || { echo "$here exists: its passwords are in use" >&2; exit 1; }

password() { od -An -N18 -tx1 /dev/urandom | tr -d ' \n'; }
in_image() { "$engine" run --rm --interactive --entrypoint /opt/ingot/bin/python "$image" -I -c "$1"; }

# They have their name when all of them are there: what was begun in vain is not in the way.
new=$here.new
trap 'rm -rf "$new"' EXIT
rm -rf "$new"
mkdir "$new"
database=$(password) broker=$(password) admin=$(password)
hash=$(printf '%s' "$admin" | in_image \
    'import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt()).decode())')
key=$(in_image 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())')
printf '%s' "$database" > "$new/database_password"
printf '[database]\nconnection = %s://ingot:%s@database/ingot%s\n' "$scheme" "$database" "$options" > "$new/database.conf"
printf '[DEFAULT]\ntransport_url = rabbit://ingot:%s@broker:5672/\n' "$broker" > "$new/broker.conf"
printf 'default_user = ingot\ndefault_pass = %s\n' "$broker" > "$new/rabbitmq.conf"
printf '%s' "$admin" > "$new/admin_password"
printf 'admin:%s\n' "$hash" > "$new/htpasswd"
printf '%s\n' "$key" > "$new/secrets.key"

# The directory keeps other users of the host out. In containers, services run as users of their own, who read these files.
chmod 0444 "$new"/*
chmod 0400 "$new/secrets.key"
if [ "$(id -u)" = 0 ]; then chown 42385:42385 "$new/secrets.key"; else podman unshare chown 42385:42385 "$new/secrets.key"; fi
mv "$new" "$here"
echo "The password of the user admin is in $here/admin_password."
