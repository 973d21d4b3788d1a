"""What becomes of Ironic's options that Ingot has not, so that an operator who brings a file learns what it lacks.

Measured with Ironic 39. What Ingot has under the same name stands in no row: a row of an option that comes to Ingot is
never asked for, except in the groups of ``GROUPS``.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple


class Verdict(enum.StrEnum):
    """What becomes of an option that is not used as it stands; the worst comes first."""

    REFUSED = "refused"
    UNSAFE = "unsafe"
    UNKNOWN = "unknown"
    UNSUPPORTED = "not supported"
    DIFFERENT = "different"
    RENAMED = "renamed"
    IGNORED = "ignored"


MEANINGS: Mapping[Verdict, str] = {
    Verdict.REFUSED: "Ingot does not start before this is corrected",
    Verdict.UNSAFE: "works, and leaves a door open",
    Verdict.UNKNOWN: "neither Ingot nor Ironic has it, so it does nothing",
    Verdict.UNSUPPORTED: "Ironic does something that Ingot does not",
    Verdict.DIFFERENT: "works in another way than in Ironic: look whether it fits",
    Verdict.RENAMED: "works, under another name",
    Verdict.IGNORED: "does nothing, and nothing is lost",
}


class _Row(NamedTuple):
    """Options of a group, and what to say of them."""

    group: str
    names: str
    verdict: Verdict
    advice: str


_NO, _IGNORED = Verdict.UNSUPPORTED, Verdict.IGNORED

_FILES = "Ingot keeps no images on its disk: agents fetch them from where they are."
_MEDIA = "The API makes boot media while it sends them, with a boot loader for UEFI: see [deploy] bootloader."
_PXE = "Ingot renders what loaders read at /boot; ingot-boot serves loaders by TFTP, from [boot_services] directory."
_CONSOLE = "Ingot starts no program for consoles: ipmitool-sol serves them as websockets of the API."
_SWIFT = "Ingot stores nothing in Swift: config drives and logs are in the database. Images of Glance that are there "
_SWIFT += "are another matter, see [agent] image_download_source."
_NO_SWITCHES = (
    "Ingot has no service for networks: it connects machines by Neutron (network interfaces flat and neutron), by "
    "switches that [genericswitch:NAME] describes (switch), or not at all (noop). It knows no traits of networks."
)
_NO_RPC = "Ingot has no JSON RPC: several hosts share a database and RabbitMQ (rpc_transport = oslo)."
_IPMI = "Ingot speaks IPMI itself, without ipmitool."
_TLS_AGENT = "Agents make a certificate of their own at each boot, which Ingot pins."
_STATSD = "Ingot sends nothing to statsd: Prometheus reads its metrics, see [metrics] api_port and conductor_port."
_WORK = "Work that waits takes no thread in Ingot, and the database carries it."

GROUPS: Mapping[str, tuple[Verdict, str]] = {
    "agent_containers": (_NO, "Ingot tells the agent nothing of containers; set them in the agent's own file."),
    "anaconda": (_NO, "Ingot has no deploy interface anaconda."),
    "cifs": (_IGNORED, _MEDIA),
    "disk_utils": (_IGNORED, _FILES),
    "drac": (_IGNORED, "[redfish] raid_config_timeout and bios_settings_timeout limit the jobs of iDRACs, too."),
    "errors": (_IGNORED, "An option for Ironic's tests."),
    "fake": (_NO, "Ingot's fake interfaces take no time."),
    "inspection_rules": (_NO, "Rules are made through the API."),
    "inventory": (_IGNORED, "Ingot keeps inventories in its database."),
    "ironic_networking": (_NO, _NO_SWITCHES),
    "ironic_networking_json_rpc": (_NO, _NO_SWITCHES),
    "json_rpc": (_IGNORED, _NO_RPC),
    "mdns": (_NO, "Ingot does not announce itself by mDNS; ramdisks get its address as a kernel parameter."),
    "metrics_statsd": (_NO, _STATSD),
    "nfs": (_IGNORED, _MEDIA),
    "oslo_concurrency": (_IGNORED, "Ingot has no lock files."),
    "oslo_messaging_amqp": (_NO, "RabbitMQ is the only broker."),
    "oslo_messaging_kafka": (_NO, "RabbitMQ is the only broker."),
    "oslo_reports": (_NO, "Ingot writes no reports."),
    "oslo_versionedobjects": (_IGNORED, "Ingot has no versioned objects."),
    "profiler": (_NO, "Ingot has no osprofiler: traces go by OpenTelemetry, see [tracing]."),
    "pxe_filter": (_NO, "ingot-boot answers machines that are enrolled, see [boot_services] unknown_machines."),
    "swift": (_NO, _SWIFT),
    "vnc": (_NO, "Ingot has no graphical consoles."),
}
"""Groups of which Ingot has nothing."""

_CREDENTIALS = "auth_url auth_type auth_section"

_ROWS = (
    _Row("cinder", "retries", _IGNORED, "Write status_code_retries and status_code_retry_delay."),
    _Row("neutron", "retries", _IGNORED, "Write status_code_retries and status_code_retry_delay."),
    _Row("console", "terminal terminal_cert_dir terminal_pid_dir terminal_timeout kill_timeout", _IGNORED, _CONSOLE),
    _Row("console", "subprocess_checking_interval subprocess_timeout", _IGNORED, _CONSOLE),
    _Row("console", "socat_address port_range", _NO, _CONSOLE),
    # What a provisioner without Redfish and boot media does without
    _Row("DEFAULT", "isolinux_bin isolinux_config_template ldlinux_c32 grub_config_path esp_image", _IGNORED, _MEDIA),
    _Row("DEFAULT", "grub_config_template", _IGNORED, _MEDIA),
    _Row("DEFAULT", "tempdir force_raw_images image_download_concurrency parallel_image_downloads", _IGNORED, _FILES),
    _Row("DEFAULT", "raw_image_growth_factor minimum_memory_wait_retries minimum_memory_wait_time", _IGNORED, _FILES),
    _Row("DEFAULT", "minimum_memory_warning_only minimum_required_memory", _IGNORED, _FILES),
    _Row("DEFAULT", "hash_ring_algorithm use_rpc_for_database bindir pybasedir", _IGNORED, "Ingot has no use for it."),
    _Row("DEFAULT", "pecan_debug debug_tracebacks_in_api", _IGNORED, "Tracebacks go into the log only."),
    _Row("DEFAULT", "default_resource_class", _NO, "Nodes get the resource class that they are created with."),
    _Row("DEFAULT", "default_conductor_group", _NO, "Nodes get the conductor group that they are created with."),
    _Row("DEFAULT", "default_portgroup_mode", _NO, "Port groups get the mode that they are created with."),
    _Row("DEFAULT", "my_ipv6", _NO,
         "Write the IPv6 address as my_ip, or a URL as [service_catalog] endpoint_override."),
    _Row("DEFAULT", "allow_image_access_via_auth_token", _NO,
         "Images of Glance are read with Ingot's own credentials."),
    _Row("DEFAULT", "ignore_project_check_for_admin_tasks", _NO, "Images of Glance are read as their project may."),
    _Row("DEFAULT", "drain_shutdown_timeout", _NO, "ingot-conductor drain --wait is how conductors are drained."),
    _Row("DEFAULT", "log_in_db_max_size", _IGNORED, "Texts are as long as their columns."),
    _Row("DEFAULT", "webserver_tls_ciphers webserver_tls_minimum_version", _NO,
         "Ingot takes what this host's OpenSSL is configured for."),
    _Row("DEFAULT", "webserver_verify_timeout", _NO, "webserver_connection_timeout limits all that is fetched."),
    # Agents
    _Row("agent", "certificates_path", _IGNORED, "Certificates of agents are in the database."),
    _Row("agent", "verify_ca", _NO, _TLS_AGENT),
    _Row("agent", "tls_ciphers tls_minimum_version", _NO, "Ingot takes what this host's OpenSSL is configured for."),
    _Row("agent", "deploy_logs_storage_backend", _IGNORED,
         "Logs of agents are in the database (GET /ingot/v1/nodes/<node>/logs), and in files in "
         "deploy_logs_local_path."),
    _Row("agent", "deploy_logs_swift_container deploy_logs_swift_days_to_expire", _NO, _SWIFT),
    _Row("agent", "manage_agent_boot", _NO, "The agent is always booted by Ingot."),
    _Row("agent", "agent_api_version", _IGNORED, "Agents have v1 only."),
    _Row("agent", "memory_consumed_by_agent", _NO, "Ingot does not compare images with a machine's memory."),
    _Row("agent", "command_wait_attempts command_wait_interval", _IGNORED, _WORK),
    _Row("agent", "allow_md5_checksum", _NO, "Ingot has agents refuse MD5."),
    _Row("agent", "enable_bios_bootloader_install", _NO, "Agents do as is their default."),
    _Row("agent", "neutron_agent_poll_interval", _IGNORED,
         "A machine with a smart NIC stays on until the NIC's ports are ACTIVE: [neutron] port_active_timeout."),
    _Row("agent", "post_deploy_get_power_state_retries post_deploy_get_power_state_retry_interval", _NO,
         "[conductor] power_state_change_timeout limits it."),
    # API
    _Row("api", "enable_ramdisk_endpoints", _NO, "They are always served: lookup and heartbeat are for agents."),
    _Row("api", "middleware network_data_schema", _NO, "Ingot loads no files of Ironic."),
    _Row("api", "response_validation", _IGNORED, "Answers are made from their schemas."),
    _Row("api", "disallow_clean_steps disallow_deploy_steps disallow_service_steps disallowed_enrollment_boot_modes",
         _NO, "No step and no boot mode is refused by name: what users may do is the policy's."),
    # Conductors
    _Row("conductor", "rescue_password_hash_algorithm require_rescue_password_hashed", _NO,
         "Rescue passwords are always sent to the agent hashed, with SHA-512."),
    _Row("conductor", "node_history node_history_cleanup_batch_count node_history_cleanup_interval", _IGNORED,
         "The history is always kept: node_history_max_entries of it."),
    _Row("conductor", "log_step_flows_to_syslog record_step_flows_in_history", _IGNORED, "Step runs are always kept."),
    _Row("conductor", "max_concurrent_deploy max_concurrent_clean max_concurrent_per_conductor_group", _NO,
         "Ingot does not limit how many machines are deployed or cleaned at once."),
    _Row("conductor", "node_locked_retry_attempts node_locked_retry_interval", _NO,
         "Requests wait for a lock as long as [api] lock_wait_timeout says."),
    _Row("conductor", "max_conductor_wait_step_seconds check_provision_state_interval check_rescue_state_interval",
         _IGNORED, _WORK),
    _Row("conductor", "check_allocations_interval sync_local_state_interval", _IGNORED,
         "[conductor] sweep_interval is for all of it."),
    _Row("conductor", "conductor_cleanup_interval conductor_cleanup_batch_size conductor_cleanup_timeout", _NO,
         "Entries of conductors that are gone stay until ingot-conductor forget removes them."),
    _Row("conductor", "reserved_workers_pool_percentage", _IGNORED, _WORK),
    _Row("sensor_data", "enable_for_conductor", _IGNORED, "What a conductor does, its metrics say: see [metrics]."),
    _Row("oslo_messaging_notifications", "location", _NO,
         "ironic-prometheus-exporter is not needed: conductors show the same metrics themselves, see [metrics]."),
    _Row("conductor", "send_sensor_data send_sensor_data_interval send_sensor_data_wait_timeout "
         "send_sensor_data_workers send_sensor_data_types send_sensor_data_for_undeployed_nodes", _NO,
         "Write it in [sensor_data]: send_sensor_data, interval, wait_timeout, workers, data_types, "
         "enable_for_undeployed_nodes."),
    _Row("conductor", "soft_power_off_timeout", _NO, "power_state_change_timeout is for all changes of power."),
    _Row("conductor", "power_failure_recovery_interval", _IGNORED,
         "sync_power_state_interval is for these nodes, too."),
    _Row("conductor", "configdrive_swift_container configdrive_swift_temp_url_duration", _IGNORED, _SWIFT),
    _Row("conductor", "cache_clean_up_interval clear_image_cache_on_deploy_failure", _IGNORED, _FILES),
    _Row("conductor", "disable_configdrive_check disable_file_checksum disable_support_for_checksum_files "
         "disable_kernel_parameter_parsing disable_metadata_mtu_check disable_zstandard_decompression "
         "error_on_ramdisk_config_inconsistency", _NO, "Ingot has no such switch."),
    _Row("conductor", "enable_mdns", _NO, GROUPS["mdns"][1]),
    _Row("conductor", "enable_health_monitoring", _NO, "A node's health is what the reading of power states finds."),
    _Row("conductor", "automatic_lessee automatic_lessee_source", _NO, "Set a node's lessee before it is deployed."),
    _Row("conductor", "automated_cleaning_step_source automated_cleaning_runbook automated_cleaning_runbook_from_node "
         "automated_cleaning_runbook_by_resource_class automated_cleaning_runbook_validate_traits", _NO,
         "Automated cleaning runs the enabled clean steps."),
    _Row("conductor", "allow_deleting_available_nodes allow_provisioning_in_maintenance", _NO,
         "Available nodes may be deleted; nodes in maintenance are not provisioned."),
    _Row("conductor", "disallowed_deployment_boot_modes", _NO, "No boot mode is refused."),
    _Row("conductor", "poweroff_in_cleanfail poweroff_in_servicefail", _NO, "Machines stay on, so that you can look."),
    _Row("conductor", "permit_child_node_step_async_result", _IGNORED, "Steps of child nodes may take any time."),
    _Row("conductor", "enable_trait_based_networking trait_based_networking_config_file "
         "trait_based_networking_enable_default_trait trait_based_networking_raise_when_no_match", _NO, _NO_SWITCHES),
    _Row("database", "mysql_engine", _IGNORED, "Tables are InnoDB."),
    _Row("database", "sqlite_max_wait_for_retry sqlite_retries", _IGNORED, "Ingot waits for SQLite in any case."),
    # Deployments
    _Row("deploy", "default_boot_option", _IGNORED, "Ironic, too, knows it no more: machines boot from their disk."),
    _Row("deploy", "configdrive_use_object_store", _NO, _SWIFT),
    _Row("deploy", "iso_cache_size iso_cache_ttl iso_master_path", _IGNORED, _MEDIA),
    _Row("deploy", "http_image_subdir", _IGNORED, _FILES),
    _Row("deploy", "image_server_auth_strategy image_server_user image_server_password image_server_auth_hosts "
         "image_server_auth_permit_unknown_hosts", _NO, "Images are fetched without login."),
    _Row("deploy", "power_off_after_deploy_failure", _NO, "A machine whose deployment failed is always switched off."),
    # Inspection
    _Row("inspector", "pre_create_ports", _IGNORED, "BMCs that speak IPMI report no MAC addresses of ports."),
    _Row("ansible", "ansible_playbook_script", _NO, "ansible-playbook of Ingot's own environment is run."),
    _Row("ansible", "extra_memory", _IGNORED, "Ingot does not compare images with a machine's memory."),
    _Row("ansible", "post_deploy_get_power_state_retries post_deploy_get_power_state_retry_interval", _IGNORED,
         "A machine has a minute to switch itself off; then its BMC does it."),
    _Row("ipmi", "use_ipmitool_retries kill_on_timeout store_cred_in_env debug additional_retryable_ipmi_errors",
         _IGNORED, _IPMI),
    _Row("ipmi", "min_command_interval", _IGNORED, "A BMC gets one command at a time."),
    _Row("redfish", "use_swift swift_container swift_object_expiry_timeout", _NO, _SWIFT),
    _Row("redfish", "file_permission", _IGNORED, _MEDIA),
    _Row("redfish", "firmware_source", _NO, "BMCs fetch images of firmware themselves, by http or https."),
    _Row("redfish", "firmware_update_status_interval firmware_update_fail_interval "
         "firmware_update_wait_unresponsive_bmc firmware_update_required_successes "
         "firmware_update_validation_interval firmware_update_resource_validation_timeout "
         "firmware_update_bmc_timeout firmware_update_reboot_delay firmware_update_bmc_version_check_interval "
         "firmware_update_nic_starting_wait", _IGNORED,
         "[redfish] firmware_update_overall_timeout limits an update, bmc_restart_timeout the BMC's restart for it."),
    _Row("redfish", "raid_config_status_interval raid_config_fail_interval", _IGNORED,
         "[redfish] raid_config_timeout limits how long arrays may take."),
    _Row("redfish", "boot_mode_config_timeout", _IGNORED, "A boot mode is set for the next boot, and not waited for."),
    _Row("redfish", "default_inspection_hooks inspection_hooks", _NO, "[inspector] hooks are for all inspections."),
    _Row("redfish", "post_boot_retry_attempts post_boot_retry_delay power_on_conflict_retry_attempts "
         "power_on_conflict_retry_interval", _IGNORED, "A BMC that is busy is asked again until read_timeout is over."),
    _Row("redfish", "enable_vmedia_insert_polling vmedia_insert_timeout vmedia_insert_poll_interval", _IGNORED,
         "Media count as inserted when the BMC has accepted them."),
    # Network boot
    _Row("pxe", "tftp_root tftp_master_path pxe_config_subdir pxe_config_template uefi_pxe_config_template "
         "pxe_config_template_by_arch pxe_bootfile_name uefi_pxe_bootfile_name pxe_bootfile_name_by_arch "
         "ipxe_bootfile_name uefi_ipxe_bootfile_name ipxe_bootfile_name_by_arch ipxe_boot_script loader_file_paths "
         "initial_grub_template file_permission dir_permission", _NO, _PXE),
    _Row("pxe", "enable_insecure_template_override", _NO, "Templates are the operator's: nodes name none."),
    _Row("pxe", "enable_netboot_fallback", _IGNORED,
         "Machines that are to boot from their disk always get a script that does so."),
    _Row("pxe", "ipxe_timeout ip_version", _NO, "Boot scripts have no such parameter."),
    _Row("pxe", "images_path instance_master_path image_cache_size image_cache_ttl", _IGNORED, _FILES),
    _Row("pxe", "default_ephemeral_format", _NO, "Ingot makes no ephemeral partitions."),
    _Row("pxe", "ipxe_use_swift", _NO, _SWIFT),
    _Row("metrics", "backend prepend_host prepend_host_reverse prepend_uuid global_prefix", _NO, _STATSD),
    _Row("metrics", "agent_backend agent_prepend_host agent_prepend_host_reverse agent_prepend_uuid "
         "agent_global_prefix", _NO, "Agents are given no place to send metrics to."),
    _Row("healthcheck", "path", _IGNORED, "The path is /healthcheck, as in Ironic."),
    _Row("oslo_middleware", "max_request_body_size", _IGNORED,
         "Ironic does not use it either: [api] max_json_body_size limits bodies."),
    _Row("oslo_middleware", "secure_proxy_ssl_header", _IGNORED, "X-Forwarded-Proto is the header that is read."),
    # Other services
    _Row("glance", "swift_account_prefix", _IGNORED, "Write the whole name as swift_account."),
    _Row("glance", "allowed_direct_url_schemes num_retries interface", _NO,
         "Images of Glance are passed on by the API."),
    _Row("service_catalog", f"{_CREDENTIALS} username password project_name project_id project_domain_id "
         "project_domain_name user_domain_id user_domain_name region_name system_scope valid_interfaces cafile "
         "certfile "
         "keyfile insecure timeout service_type service_name interface connect_retries min_version max_version",
         _IGNORED, "Ingot asks no catalog for its own address: set endpoint_override, or [api] public_endpoint."),
)  # fmt: skip

_BY_OPTION = {(row.group, name): (row.verdict, row.advice) for row in _ROWS for name in row.names.split()}


_SWITCHES = frozenset(
    (
        *(("redfish", "use_swift"), ("pxe", "ipxe_use_swift"), ("deploy", "configdrive_use_object_store")),
        *(("conductor", "enable_mdns"), ("agent_containers", "allow_arbitrary_containers")),
    )
)
"""Options that switch on something that Ingot does not have."""

_OFF = ("false", "no", "off", "0")


def find(group: str, name: str, value: str = "") -> tuple[Verdict, str] | None:
    """Return what becomes of an option of Ironic, and what to write; None for one that Ironic has not."""
    key = (group, name.replace("-", "_"))
    if key in _SWITCHES and value.strip().lower() in _OFF:
        return Verdict.IGNORED, "It is so in any case."
    return _BY_OPTION.get(key) or GROUPS.get(group)
