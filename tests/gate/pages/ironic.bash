# Real Ironic on this server, as its operator has it: units, a database, three nodes; and Ingot, installed and not configured.
set -eu
export PIP_NO_INDEX=1 PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1
echo '127.0.0.1 localhost' >> /etc/hosts

python3 -m venv /opt/ironic
# The file has all that Ironic needs; redis asks for one more thing on Python 3.11.2, for what is not used.
/opt/ironic/bin/pip install --no-deps --find-links /mnt/ironic --requirement /mnt/ironic/ironic.txt
python3 -m venv /opt/baremetal
/opt/baremetal/bin/pip install --find-links /mnt/wheels python-ironicclient
ln --symbolic --target-directory=/usr/local/bin /opt/baremetal/bin/baremetal

mkdir -p /etc/ironic /var/lib/ironic/{tftp,images,master,instances,locks,http}
cat > /etc/ironic/ironic.conf << 'END'
[DEFAULT]
auth_strategy = noauth
host = localhost
my_ip = 127.0.0.1
rpc_transport = json-rpc
state_path = /var/lib/ironic
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_vendor_interfaces = fake,no-vendor
enabled_network_interfaces = noop,flat
default_network_interface = noop
minimum_memory_warning_only = true
[api]
host_ip = 127.0.0.1
public_endpoint = http://127.0.0.1:6385
[conductor]
automated_clean = false
[database]
connection = sqlite:////var/lib/ironic/ironic.sqlite
[deploy]
http_root = /var/lib/ironic/http
[dhcp]
dhcp_provider = none
[json_rpc]
auth_strategy = noauth
host_ip = 127.0.0.1
[oslo_concurrency]
lock_path = /var/lib/ironic/locks
[oslo_messaging_notifications]
driver = noop
[pxe]
tftp_root = /var/lib/ironic/tftp
images_path = /var/lib/ironic/images
tftp_master_path = /var/lib/ironic/master
instance_master_path = /var/lib/ironic/instances
END
cat > /opt/ironic/ironic_application.py << 'END'
import sys

sys.argv = ["ironic-api", "--config-file", "/etc/ironic/ironic.conf"]
from ironic.wsgi import application
END
/opt/ironic/bin/ironic-dbsync --config-file /etc/ironic/ironic.conf create_schema

unit() { # NAME COMMAND
    printf '[Service]\nExecStart=/opt/ironic/bin/%s\n[Install]\nWantedBy=multi-user.target\n' "$2" \
        > "/etc/systemd/system/$1.service"
}
unit ironic-api 'gunicorn --bind 127.0.0.1:6385 --worker-class gthread --threads 2 --timeout 120 --pythonpath /opt/ironic ironic_application:application'
unit ironic-conductor 'ironic-conductor --config-file /etc/ironic/ironic.conf'

python3 -m venv /opt/ingot
/opt/ingot/bin/pip install --find-links /mnt/wheels /root/ingot-*.whl
ln --symbolic --target-directory=/usr/local/bin /opt/ingot/bin/ingot*
cd /opt/ingot/share/ingot
install -D -m 0644 -t /etc/sysusers.d sysusers.d/ingot.conf
install -D -m 0644 -t /etc/tmpfiles.d tmpfiles.d/ingot.conf
install -D -m 0644 -t /etc/systemd/system systemd/*
systemd-sysusers
systemd-tmpfiles --create
systemctl daemon-reload
systemctl enable --quiet --now ironic-conductor ironic-api

# What the page has its reader do to a copy of the configuration.
cat > /usr/local/bin/move-configuration << 'END'
#!/bin/sh
sed -e 's|^enabled_network_interfaces = .*|enabled_network_interfaces = noop|' \
    -e 's|^state_path = .*|state_path = /var/lib/ingot|' \
    -e 's|^connection = .*|connection = sqlite:////var/lib/ingot/ingot.sqlite|' \
    -e 's|^rpc_transport = .*|transport_url = fake:/|' \
    /etc/ironic/ironic.conf > /etc/ingot/ingot.conf
systemd-tmpfiles --create
END
chmod 755 /usr/local/bin/move-configuration

export OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:6385
until baremetal conductor list -f value 2>/dev/null | grep -q True; do sleep 1; done
for name in enrolled managed active-node; do
    baremetal node create --driver fake-hardware --name "$name" --network-interface flat -f value -c uuid
done
baremetal node manage --wait 60 managed active-node
baremetal node provide --wait 60 active-node
baremetal node set active-node --instance-info image_source=http://127.0.0.1/image
baremetal node deploy --wait 60 active-node
