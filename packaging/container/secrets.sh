#!/bin/sh
# Makes the passwords and the key of compose.yaml, once, below secrets/ beside this file.
#
#   ./secrets.sh mariadb | postgresql
#
# With Docker as root; for rootless podman as the user whose containers they are.
set -eu
umask 077

case ${1:-} in
    mariadb) scheme=mysql+pymysql options=?charset=utf8mb4 ;;
    postgresql) scheme=postgresql+psycopg options= ;;
    *) echo "usage: $0 mariadb | postgresql" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)/secrets
image=${INGOT_IMAGE:-localhost/ingot:latest}
engine=${ENGINE:-$(command -v podman || command -v docker)}
[ ! -e "$here" ] || { echo "$here exists: its passwords are in use" >&2; exit 1; }

password() { od -An -N18 -tx1 /dev/urandom | tr -d ' \n'; }
in_image() { "$engine" run --rm --interactive --entrypoint /opt/ingot/bin/python "$image" -I -c "$1"; }

mkdir "$here"
database=$(password) broker=$(password) admin=$(password)
printf '%s' "$database" > "$here/database_password"
printf '[database]\nconnection = %s://ingot:%s@database/ingot%s\n' "$scheme" "$database" "$options" > "$here/database.conf"
printf '[DEFAULT]\ntransport_url = rabbit://ingot:%s@broker:5672/\n' "$broker" > "$here/broker.conf"
printf 'default_user = ingot\ndefault_pass = %s\n' "$broker" > "$here/rabbitmq.conf"
printf '%s' "$admin" > "$here/admin_password"
printf 'admin:%s\n' "$(printf '%s' "$admin" | in_image \
    'import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.buffer.read(), bcrypt.gensalt()).decode())')" > "$here/htpasswd"
in_image 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())' > "$here/secrets.key"

# The directory keeps other users of the host out. In containers, services run as users of their own, who read these files.
chmod 0444 "$here"/*
chmod 0400 "$here/secrets.key"
if [ "$(id -u)" = 0 ]; then chown 42385:42385 "$here/secrets.key"; else podman unshare chown 42385:42385 "$here/secrets.key"; fi
echo "The password of the user admin is in $here/admin_password."
