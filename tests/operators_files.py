"""What three widely used deployments of Ironic write into its file, as options and values.

Read in metal3-io/ironic-image db962c9, openstack/bifrost 1e5af6c and openstack/kolla-ansible 1a68181.
"""

from collections.abc import Mapping

Groups = Mapping[str, Mapping[str, str]]

_REDFISH = "no-bios,redfish,idrac-redfish"

IRONIC_IMAGE: Groups = {
    "DEFAULT": {
        "auth_strategy": "noauth",
        "debug": "true",
        "default_deploy_interface": "autodetect",
        "autodetect_deploy_interfaces": "ramdisk,bootc,direct",
        "default_inspect_interface": "agent",
        "default_network_interface": "noop",
        "enabled_bios_interfaces": _REDFISH,
        "enabled_boot_interfaces": "ipxe,pxe,fake,redfish-virtual-media,idrac-redfish-virtual-media,redfish-https",
        "enabled_deploy_interfaces": "autodetect,direct,fake,ramdisk,custom-agent,bootc",
        "enabled_firmware_interfaces": "no-firmware,fake,redfish",
        "enabled_hardware_types": "ipmi,idrac,fake-hardware,redfish,manual-management",
        "enabled_inspect_interfaces": "no-inspect,agent,fake,redfish,idrac-redfish",
        "enabled_management_interfaces": "ipmitool,fake,redfish,idrac-redfish,noop",
        "enabled_network_interfaces": "noop",
        "enabled_power_interfaces": "ipmitool,fake,redfish,idrac-redfish",
        "enabled_raid_interfaces": "no-raid,agent,fake,redfish,idrac-redfish",
        "enabled_vendor_interfaces": "no-vendor,ipmitool,idrac-redfish,redfish,fake",
        "rpc_transport": "none",
        "use_stderr": "true",
        "hash_ring_algorithm": "sha256",
        "my_ip": "192.0.2.5",
        "host": "192.0.2.5",
        "isolinux_bin": "/usr/share/syslinux/isolinux.bin",
        "grub_config_path": "EFI/centos/grub.cfg",
        "tempdir": "/shared/tmp",
    },
    "agent": {
        "deploy_logs_collect": "always",
        "deploy_logs_local_path": "/shared/log/ironic/deploy",
        "max_command_attempts": "30",
        "certificates_path": "/certs/ironic-agent",
    },
    "api": {"host_ip": "::", "port": "6385", "api_workers": "2"},
    "conductor": {
        "automated_clean": "true",
        "deploy_callback_timeout": "4800",
        "bootloader_by_arch": "x86_64:file:///templates/uefi_esp_x86_64.img",
        "verify_step_priority_override": "management.clear_job_queue:90",
        "node_history": "False",
        "power_state_change_timeout": "120",
        "deploy_kernel": "http://192.0.2.5:6180/images/ipa.kernel",
        "deploy_kernel_by_arch": "x86_64:http://192.0.2.5:6180/images/ipa_x86_64.kernel",
        "deploy_ramdisk": "http://192.0.2.5:6180/images/ipa.initramfs",
        "deploy_ramdisk_by_arch": "x86_64:http://192.0.2.5:6180/images/ipa_x86_64.initramfs",
        "disable_deep_image_inspection": "True",
        "file_url_allowed_paths": "/shared/html/images,/templates",
    },
    "database": {"connection": "sqlite:////var/lib/ironic/ironic.sqlite", "sqlite_synchronous": "False"},
    "deploy": {
        "default_boot_option": "local",
        "erase_devices_metadata_priority": "10",
        "erase_devices_priority": "0",
        "http_root": "/shared/html/",
        "http_url": "http://192.0.2.5:6180",
        "fast_track": "false",
        "iso_master_path": "/shared/html/master_iso_images",
        "ramdisk_image_download_source": "local",
        "external_http_url": "http://198.51.100.5:6180",
        "external_callback_url": "http://198.51.100.5:6385",
    },
    "dhcp": {"dhcp_provider": "none"},
    "inspector": {
        "require_managed_boot": "False",
        "power_off": "true",
        "extra_kernel_params": "ipa-inspection-collectors=default,logs ipa-enable-vlan-interfaces=all",
        "hooks": "$default_hooks,parse-lldp",
        "add_ports": "all",
        "keep_ports": "present",
        "force_dhcp": "false",
    },
    "auto_discovery": {"enabled": "false", "driver": "ipmi"},
    "ipmi": {
        "use_ipmitool_retries": "false",
        "min_command_interval": "5",
        "command_retry_timeout": "60",
        "cipher_suite_versions": "3,17",
    },
    "nova": {"send_power_notifications": "false"},
    "pxe": {
        "boot_retry_timeout": "1200",
        "images_path": "/shared/html/tmp",
        "instance_master_path": "/shared/html/master_images",
        "tftp_master_path": "/shared/tftpboot/master_images",
        "tftp_root": "/shared/tftpboot",
        "kernel_append_params": "nofb nomodeset vga=normal ipa-insecure=1",
        "enable_netboot_fallback": "true",
        "ipxe_fallback_script": "inspector.ipxe",
        "ipxe_config_template": "/conf/ironic/ipxe_config.template",
    },
    "redfish": {"use_swift": "false", "kernel_append_params": "nofb nomodeset vga=normal"},
    "service_catalog": {"endpoint_override": "http://192.0.2.5:6385"},
}

IRONIC_IMAGE_VARIANTS: Mapping[str, Groups] = {
    "plain": {},
    "TLS and passwords": {
        "DEFAULT": {"auth_strategy": "http_basic", "http_basic_auth_user_file": "/conf/ironic/htpasswd"},
        "api": {"enable_ssl_api": "true"},
        "ssl": {"cert_file": "/certs/ironic/tls.crt", "key_file": "/certs/ironic/tls.key"},
        "service_catalog": {"endpoint_override": "https://192.0.2.5:6385"},
    },
    "behind httpd": {
        "api": {
            "unix_socket": "/shared/ironic.sock",
            "unix_socket_mode": "0666",
            "public_endpoint": "https://192.0.2.5:6385",
        },
    },
    "several hosts, with sensors": {
        "DEFAULT": {"rpc_transport": "json-rpc"},
        "json_rpc": {
            "auth_strategy": "http_basic",
            "http_basic_auth_user_file": "/conf/ironic/htpasswd-rpc",
            "host_ip": "::",
            "port": "6189",
            "username": "rpc",
            "password": "secret",
        },
        "auto_discovery": {"enabled": "true"},
        "sensor_data": {"send_sensor_data": "true", "interval": "160"},
        "oslo_messaging_notifications": {
            "driver": "prometheus_exporter",
            "location": "/shared/ironic_prometheus_exporter",
            "transport_url": "fake://",
        },
        "metrics": {"backend": "collector"},
        "redfish": {"verify_ca": "/certs/ca/bmc.crt"},
    },
}
"""What the environment of the container adds to that file."""

BIFROST: Groups = {
    "DEFAULT": {
        "debug": "True",
        "enabled_network_interfaces": "noop",
        "default_network_interface": "noop",
        "default_deploy_interface": "direct",
        "enabled_inspect_interfaces": "no-inspect,agent",
        "default_inspect_interface": "agent",
        "enabled_bios_interfaces": "no-bios,redfish",
        "enabled_boot_interfaces": "ipxe,redfish-virtual-media,pxe",
        "enabled_firmware_interfaces": "no-firmware,redfish",
        "enabled_management_interfaces": "ipmitool,redfish,noop",
        "enabled_power_interfaces": "ipmitool,redfish,agent",
        "enabled_deploy_interfaces": "direct,ramdisk",
        "enabled_raid_interfaces": "no-raid,agent,redfish",
        "enabled_vendor_interfaces": "ipmitool,redfish,no-vendor",
        "enabled_hardware_types": "ipmi,redfish,manual-management",
        "default_resource_class": "baremetal",
        "rpc_transport": "none",
        "auth_strategy": "http_basic",
        "http_basic_auth_user_file": "/etc/ironic/htpasswd",
        "isolinux_bin": "/usr/lib/ISOLINUX/isolinux.bin",
        "grub_config_path": "EFI/debian/grub.cfg",
    },
    "agent": {"deploy_logs_collect": "always", "deploy_logs_local_path": "/var/log/ironic/deploy"},
    "pxe": {
        "kernel_append_params": "systemd.journald.forward_to_console=yes",
        "tftp_server": "192.0.2.6",
        "tftp_root": "/var/lib/tftpboot",
        "ipxe_fallback_script": "pxelinux.cfg/default",
        "tftp_master_path": "/var/lib/ironic/master_images",
        "uefi_ipxe_bootfile_name": "snponly.efi",
        "enable_netboot_fallback": "true",
    },
    "deploy": {
        "http_url": "http://192.0.2.6:8080/",
        "http_root": "/var/lib/ironic/httpboot",
        "default_boot_option": "local",
        "default_boot_mode": "uefi",
        "fast_track": "True",
        "erase_devices_priority": "0",
        "erase_devices_metadata_priority": "10",
    },
    "conductor": {
        "automated_clean": "true",
        "deploy_kernel": "http://192.0.2.6:8080/ipa.kernel",
        "deploy_ramdisk": "http://192.0.2.6:8080/ipa.initramfs",
        "rescue_kernel": "http://192.0.2.6:8080/ipa.kernel",
        "rescue_ramdisk": "http://192.0.2.6:8080/ipa.initramfs",
        "bootloader": "http://192.0.2.6:8080/esp.img",
    },
    "database": {"connection": "mysql+pymysql://ironic:secret@localhost/ironic?charset=utf8"},
    "dhcp": {"dhcp_provider": "dnsmasq"},
    "dnsmasq": {
        "dhcp_hostsdir": "/etc/dnsmasq.d/bifrost.dhcp-hosts.d",
        "dhcp_optsdir": "/etc/dnsmasq.d/bifrost.dhcp-opts.d",
        "dhcp_leasefile": "/var/lib/misc/dnsmasq.leases",
    },
    "ipmi": {"debug": "False", "disable_boot_timeout": "True"},
    "redfish": {"use_swift": "False", "kernel_append_params": "systemd.journald.forward_to_console=yes"},
    "inspector": {
        "power_off": "False",
        "extra_kernel_params": "ipa-inspection-collectors=default,logs",
        "hooks": "$default_hooks",
        "require_managed_boot": "False",
        "force_dhcp": "False",
        "add_ports": "pxe",
        "keep_ports": "present",
    },
    "auto_discovery": {"enabled": "False", "driver": "ipmi"},
    "service_catalog": {
        "auth_type": "http_basic",
        "username": "admin",
        "password": "secret",
        "endpoint_override": "http://192.0.2.6:6385",
    },
    "oslo_messaging_notifications": {
        "driver": "prometheus_exporter",
        "transport_url": "fake://",
        "location": "/var/lib/ironic-metrics",
    },
}

_USER = {
    "auth_url": "http://192.0.2.7:5000",
    "auth_type": "password",
    "project_domain_id": "default",
    "user_domain_id": "default",
    "project_name": "service",
    "username": "ironic",
    "password": "secret",
    "region_name": "RegionOne",
    "valid_interfaces": "internal",
    "cafile": "/etc/ssl/certs/ca-certificates.crt",
}

KOLLA_ANSIBLE: Groups = {
    "DEFAULT": {
        "debug": "False",
        "tempdir": "/var/lib/ironic/tmp",
        "transport_url": "rabbit://openstack:secret@192.0.2.7:5672//",
        "my_ip": "192.0.2.7",
        "notification_level": "info",
        "rbac_service_role_elevated_access": "true",
    },
    "oslo_messaging_notifications": {
        "transport_url": "rabbit://openstack:secret@192.0.2.7:5672//",
        "driver": "messagingv2",
        "topics": "notifications",
    },
    "oslo_messaging_rabbit": {
        "use_queue_manager": "true",
        "processname": "ironic-conductor",
        "heartbeat_in_pthread": "False",
        "rabbit_quorum_queue": "true",
        "rabbit_stream_fanout": "true",
        "rabbit_qos_prefetch_count": "1",
        "rabbit_transient_quorum_queue": "true",
    },
    "conductor": {
        "automated_clean": "false",
        "send_sensor_data": "true",
        "send_sensor_data_for_undeployed_nodes": "true",
        "send_sensor_data_interval": "30",
    },
    "metrics": {"backend": "collector"},
    "database": {
        "connection": "mysql+pymysql://ironic:secret@192.0.2.7:3306/ironic",
        "connection_recycle_time": "10",
        "max_pool_size": "1",
        "max_retries": "-1",
    },
    "keystone_authtoken": {
        "service_type": "baremetal",
        "www_authenticate_uri": "http://192.0.2.7:5000",
        "memcache_security_strategy": "ENCRYPT",
        "memcache_secret_key": "secret",
        "memcached_servers": "192.0.2.7:11211",
        **_USER,
    },
    "cinder": _USER,
    "glance": _USER,
    "neutron": {"cleaning_network": "public1", **_USER},
    "nova": _USER,
    "service_catalog": _USER,
    "agent": {
        "deploy_logs_local_path": "/var/log/kolla/ironic",
        "deploy_logs_storage_backend": "local",
        "deploy_logs_collect": "always",
    },
    "pxe": {
        "kernel_append_params": "nofb vga=normal console=tty0",
        "ipxe_bootfile_name_by_arch": "x86_64:snponly.efi",
        "tftp_root": "/var/lib/ironic/tftpboot",
        "tftp_master_path": "/var/lib/ironic/master_images",
        "tftp_server": "192.0.2.7",
    },
    "deploy": {"http_root": "/var/lib/ironic/httpboot", "http_url": "http://192.0.2.7:8089"},
    "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
    "oslo_concurrency": {"lock_path": "/var/lib/ironic/tmp"},
    "pxe_filter": {"dhcp_hostsdir": "/etc/dnsmasq/dhcp-hostsdir"},
}


def merge(groups: Groups, more: Groups) -> Groups:
    """Return a file with further options, or other values."""
    return {name: {**groups.get(name, {}), **more.get(name, {})} for name in {**groups, **more}}


def render(groups: Groups) -> str:
    """Return a configuration file."""
    return "".join(
        f"[{group}]\n{''.join(f'{name} = {value}' + chr(10) for name, value in options.items())}"
        for group, options in groups.items()
    )
