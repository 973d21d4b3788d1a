"""Options of [deploy], [agent], [pxe] and [ipmi]: how machines are booted and written."""

from oslo_config import cfg, types

from ingot.common import networks

DEPLOY: list[cfg.Opt] = [
    cfg.IntOpt(
        "erase_devices_priority",
        min=0,
        help="Priority of the clean step that erases disks completely. Unset: the agent's own priority; 0: never.",
    ),
    cfg.IntOpt(
        "erase_devices_metadata_priority",
        min=0,
        help="Priority of the clean step that erases partition tables and signatures. Unset: the agent's own; "
        "0: never.",
    ),
    cfg.IntOpt(
        "delete_configuration_priority",
        min=0,
        help="Priority of the clean step that deletes software RAID arrays. Unset: the agent's own priority; 0: only "
        "when it is requested.",
    ),
    cfg.IntOpt(
        "create_configuration_priority",
        min=0,
        help="Priority of the clean step that builds the arrays of target_raid_config. Unset: the agent's own "
        "priority; 0: only when it is requested. Lower than delete_configuration_priority, or what it builds is "
        "deleted again.",
    ),
    cfg.BoolOpt(
        "enable_ata_secure_erase",
        default=True,
        help="Erase SATA disks completely with their own secure erase, which is quick and reaches spare sectors.",
    ),
    cfg.BoolOpt(
        "enable_nvme_secure_erase",
        default=True,
        help="Erase NVMe disks completely with their own format command, cryptographically where they can.",
    ),
    cfg.BoolOpt(
        "continue_if_disk_secure_erase_fails",
        default=False,
        help="Shred a disk whose secure erase fails or is frozen by the firmware. Otherwise cleaning fails, so that an "
        "operator checks a disk that claims to erase itself and does not.",
    ),
    cfg.IntOpt(
        "shred_random_overwrite_iterations",
        default=1,
        min=0,
        help="How often a disk is overwritten with random data when it is shredded.",
    ),
    cfg.BoolOpt(
        "shred_final_overwrite_with_zeros",
        default=True,
        help="Overwrite a shredded disk with zeros at the end, which hides that it was shredded.",
    ),
    cfg.IntOpt(
        "disk_erasure_concurrency",
        default=4,
        min=1,
        help="How many disks of a machine are erased completely at the same time.",
    ),
    cfg.BoolOpt(
        "erase_skip_read_only",
        default=False,
        help="Leave out disks that cannot be written. Otherwise a complete erase of such a machine fails.",
    ),
    cfg.BoolOpt(
        "fast_track",
        default=False,
        help="Use an agent that is already running instead of rebooting the machine into a new one.",
    ),
    cfg.IntOpt(
        "fast_track_timeout",
        default=300,
        min=0,
        help="Seconds since its last heartbeat for which an agent counts as running.",
    ),
    cfg.StrOpt(
        "default_boot_mode",
        default="uefi",
        choices=["uefi", "bios"],
        help="Boot mode of machines that do not say theirs in properties.capabilities or instance_info.",
    ),
    cfg.StrOpt(
        "deploy_kernel",
        deprecated_group="conductor",
        help="Kernel of the agent's ramdisk, as URL or id in Glance, for nodes without driver_info.deploy_kernel.",
    ),
    cfg.StrOpt(
        "deploy_ramdisk",
        deprecated_group="conductor",
        help="Initial ramdisk of the agent, as URL or id in Glance, for nodes without driver_info.deploy_ramdisk.",
    ),
    cfg.DictOpt(
        "deploy_kernel_by_arch",
        default={},
        deprecated_group="conductor",
        help="The same for nodes of one architecture, which goes before deploy_kernel: pairs of properties.cpu_arch "
        "and URL, as x86_64:http://...,aarch64:http://...",
    ),
    cfg.DictOpt(
        "deploy_ramdisk_by_arch",
        default={},
        deprecated_group="conductor",
        help="The same for nodes of one architecture, which goes before deploy_ramdisk.",
    ),
    cfg.StrOpt(
        "rescue_kernel",
        deprecated_group="conductor",
        help="Kernel that rescues boot, for nodes without driver_info.rescue_kernel. Unset: as deployments.",
    ),
    cfg.StrOpt(
        "rescue_ramdisk",
        deprecated_group="conductor",
        help="Initial ramdisk that rescues boot, for nodes without driver_info.rescue_ramdisk. Unset: as deployments.",
    ),
    cfg.DictOpt(
        "rescue_kernel_by_arch",
        default={},
        deprecated_group="conductor",
        help="The same for nodes of one architecture, which goes before rescue_kernel.",
    ),
    cfg.DictOpt(
        "rescue_ramdisk_by_arch",
        default={},
        deprecated_group="conductor",
        help="The same for nodes of one architecture, which goes before rescue_ramdisk.",
    ),
    cfg.StrOpt(
        "bootloader",
        deprecated_group="conductor",
        help="URL (http, https, file), or id in Glance, of a file system image from which UEFI starts a boot loader; "
        "it is put on boot media of nodes without driver_info.bootloader. The loader reads its configuration from "
        "/EFI/BOOT/grub.cfg or /boot/grub/grub.cfg. Unset: made of Debian's signed shim and GRUB.",
    ),
    cfg.DictOpt(
        "bootloader_by_arch",
        default={},
        deprecated_group="conductor",
        help="The same for nodes of one architecture, which goes before bootloader.",
    ),
    cfg.StrOpt(
        "signed_loader_path",
        default="/usr/lib",
        help="Directory of each host of the API with the signed boot loaders of Debian's packages shim-signed and "
        "grub-efi-amd64-signed (or grub-efi-arm64-signed): below it are shim and grub.",
    ),
    cfg.URIOpt(
        "external_http_url",
        schemes=["http", "https"],
        help="Address of the API as BMCs reach it, which fetch boot media there; driver_info.external_http_url of a "
        "node goes before it. Unset: the address that agents call.",
    ),
    cfg.URIOpt(
        "external_callback_url",
        schemes=["http", "https"],
        help="Address of the API that agents call which were booted from media, where their machines reach it at "
        "another address than those in the provisioning network. Unset: the one that all agents call.",
    ),
    cfg.StrOpt(
        "ramdisk_image_download_source",
        default="local",
        choices=[("local", "from the API, which passes them on"), ("http", "from where they are, if that is a URL")],
        help="Where BMCs fetch finished images (deploy_iso, boot_iso) of nodes without "
        "driver_info.ramdisk_image_download_source.",
    ),
    cfg.StrOpt(
        "http_root",
        help="Directory that a web server of yours serves as http_url. Images given as file:// are linked there while "
        "a machine fetches them.",
    ),
    cfg.URIOpt(
        "http_url",
        schemes=["http", "https"],
        help="Address under which machines on the provisioning network reach what is in http_root.",
    ),
    cfg.ListOpt(
        "file_url_allowed_paths",
        deprecated_group="conductor",
        default=["/var/lib/ingot/images"],
        help="Directories that an image given as file:// may be in; all other files of the host stay private.",
    ),
    networks.build_option(
        "url_denied_networks",
        ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/128", "::1/128", "fe80::/10"],
        help="Where URLs of users (instance_info image_source and image_checksum, config drives) must not lead: "
        "networks separated by commas. By default this host itself and what is link-local, such as the metadata "
        "service of a cloud that it runs in. What a name stands for counts, and where redirects lead; of image_source, "
        "which machines fetch, only an address in the URL itself.",
    ),
    networks.build_option(
        "url_allowed_networks",
        [],
        help="The only networks that such URLs may lead to, without those in url_denied_networks. Empty: all others.",
    ),
    cfg.IntOpt(
        "max_image_size",
        default=65536,
        min=1,
        help="Largest disk in GiB that an image may make: a small file can unpack to any size. An inspected machine "
        "gets none that is larger than its largest disk.",
    ),
    cfg.IntOpt("configdrive_max_size", default=64, min=1, help="Largest config drive in MiB, after decoding."),
]

AGENT: list[cfg.Opt] = [
    cfg.StrOpt(
        "image_download_source",
        default="http",
        choices=[
            ("http", "from where they are; those of Glance from the API, by links that end"),
            ("local", "as http"),
            ("swift", "those of Glance from Swift, by signed URLs: see [glance] swift_temp_url_key"),
        ],
        help="From where agents download images of instances, for nodes whose driver_info has no "
        "image_download_source.",
    ),
    cfg.StrOpt(
        "api_ca_file",
        help="File of each host of the API with the authorities that verify the API; boot media carry it to the agent, "
        "which finds it at /etc/ironic-python-agent/ironic.crt.",
    ),
    cfg.BoolOpt(
        "require_tls",
        default=True,
        help="Refuse agents that do not serve https. Their certificate is the one that they send with the first "
        "heartbeat of a boot, which holds until the next boot, or one of an authority that this host trusts.",
    ),
    cfg.IntOpt(
        "token_reissue_timeout",
        default=300,
        min=0,
        help="Seconds for which the network address that got the token of a boot gets it again, until the first "
        "heartbeat: the answer may have been lost, and agents ask for five minutes. All others never get it. 0: "
        "never.",
    ),
    cfg.IntOpt(
        "connect_timeout",
        default=5,
        min=1,
        help="Seconds an agent has to accept a connection: for so long an unresponsive machine occupies a worker.",
    ),
    cfg.IntOpt("command_timeout", default=60, min=1, help="Seconds an agent has to answer a request."),
    cfg.IntOpt(
        "max_command_attempts",
        default=3,
        min=1,
        help="For how many times command_timeout an agent that sends heartbeats but cannot be reached is asked again "
        "about its command, at growing intervals; one that does not call any more either is asked for one "
        "command_timeout. No worker waits meanwhile.",
    ),
    cfg.IntOpt(
        "neutron_agent_max_attempts",
        default=100,
        min=1,
        help="How often Neutron is asked at most whether its agent on a smart NIC runs, before ports are moved.",
    ),
    cfg.IntOpt(
        "neutron_agent_status_retry_interval",
        default=10,
        min=1,
        help="Seconds between two such questions. No thread of the conductor waits meanwhile.",
    ),
    cfg.BoolOpt(
        "stream_raw_images",
        default=True,
        help="Let agents write raw images to disk while downloading them, instead of keeping them in memory.",
    ),
    cfg.StrOpt(
        "deploy_logs_collect",
        default="on_failure",
        choices=[
            ("always", "of every run whose agent still runs at its end"),
            ("on_failure", "of runs that fail"),
            ("never", "of no run"),
        ],
        help="Whose agent's logs are kept in the database, to be read at /ingot/v1/nodes/<node>/logs.",
    ),
    cfg.IntOpt(
        "deploy_logs_max_size",
        default=4 * 1024**2,  # twice that fits into what MariaDB accepts by default, 16 MiB
        min=1,
        help="Largest archive of logs, in bytes, that is kept; of a larger one the node's history tells the size. The "
        "largest packet of MariaDB and MySQL (max_allowed_packet) must be more than twice as large, because archives "
        "travel as hexadecimal digits.",
    ),
    cfg.IntOpt(
        "deploy_logs_max_per_node",
        default=3,
        min=1,
        help="How many archives of logs a node keeps, in the database and in deploy_logs_local_path.",
    ),
    cfg.StrOpt(
        "deploy_logs_local_path",
        help="Directory into which each conductor writes the logs of agents, too, as files of tar.gz: the names begin "
        "with the node's UUID and end with flow and time. Files of nodes that were deleted stay. Unset: they are in "
        "the database only.",
    ),
]

PXE: list[cfg.Opt] = [
    cfg.StrOpt(
        "kernel_append_params",
        default="nofb vga=normal",
        help="Kernel parameters of every network boot. A node's driver_info.kernel_append_params replaces them; "
        "%default% there stands for this value.",
    ),
    cfg.BoolOpt(
        "check_boot_files",
        default=True,
        help="Ask, before a machine boots the agent, for the first byte of kernel and ramdisk. Where their server "
        "answers 404 or 410, the flow fails at once. False where machines get another answer than conductors.",
    ),
    cfg.StrOpt(
        "tftp_server",
        default="$my_ip",
        sample_default="the value of my_ip",
        help="With [dhcp] dhcp_provider = neutron: address of the TFTP server that has the boot loaders, such as "
        "ingot-boot.",
    ),
    cfg.StrOpt(
        "ipxe_config_template",
        help="File of each host of the API with a template of Jinja for the scripts by which iPXE boots a kernel. It "
        "gets pxe_options with deployment_aki_path, deployment_ari_path, pxe_append_params and other names that "
        "templates of Ironic use. Scripts for disks, volumes and images are not made by it. Unset: Ingot's own.",
    ),
    cfg.StrOpt(
        "ipxe_fallback_script",
        help="What machines boot that are no node's and are not discovered: URL of a script of iPXE, or name of a file "
        "in [deploy] http_root. Unset: their disk.",
    ),
    cfg.IntOpt(
        "boot_retry_timeout",
        min=60,
        help="Seconds after which a machine is restarted that was to boot the agent from the network, and whose agent "
        "has not called. Unset: never; the flow fails when its time is over.",
    ),
    cfg.IntOpt(
        "boot_retry_check_interval",
        default=90,
        min=1,
        help="Seconds between two searches for such machines.",
    ),
]

IPMI: list[cfg.Opt] = [
    cfg.IntOpt(
        "command_retry_timeout",
        default=20,
        min=1,
        help="Seconds after which a BMC that does not answer counts as unreachable.",
    ),
    cfg.ListOpt(
        "cipher_suite_versions",
        item_type=types.Integer(),
        default=[],
        help="Cipher suites of nodes without driver_info.ipmi_cipher_suite. Of these, Ingot uses 17 and 3, in this "
        "order; empty: both.",
    ),
    cfg.BoolOpt(
        "disable_boot_timeout",
        default=True,
        help="Ask BMCs of nodes without driver_info.ipmi_disable_boot_timeout to keep a boot device for longer than "
        "60 s.",
    ),
    cfg.IntOpt(
        "bmc_restart_timeout",
        default=600,
        min=1,
        help="Seconds within which a BMC must answer again after the step reset_bmc.",
    ),
    cfg.IntOpt(
        "serial_reconnect_timeout",
        default=300,
        min=0,
        help="Seconds for which the serial console of a BMC that has stopped answering is opened again and again.",
    ),
]
