"""Options of [ansible]: how deploy interface ``ansible`` runs playbooks on machines."""

from oslo_config import cfg

ANSIBLE: list[cfg.Opt] = [
    cfg.StrOpt(
        "playbooks_path",
        default="",
        help="Directory of playbooks, with their roles and a folder library. driver_info.ansible_playbooks_path may "
        "name one in it, and nothing outside of it. Empty: those that come with Ingot.",
    ),
    cfg.StrOpt("default_deploy_playbook", default="deploy.yaml", help="The playbook in it that deploys."),
    cfg.StrOpt(
        "default_shutdown_playbook",
        default="shutdown.yaml",
        help="The playbook that switches a machine off from inside after a deployment. If it fails, the BMC does it.",
    ),
    cfg.StrOpt("default_clean_playbook", default="clean.yaml", help="The playbook that clean steps are parts of."),
    cfg.StrOpt("default_clean_steps_config", default="clean_steps.yaml", help="The file that lists clean steps."),
    cfg.StrOpt(
        "default_username",
        default="ansible",
        help="The user of the ramdisk that logs in, unless driver_info.ansible_username names another. Extension ssh "
        "of the agent makes one that may do everything.",
    ),
    cfg.StrOpt(
        "default_key_file",
        help="File with the private key, without a passphrase, of nodes without driver_info.ansible_key_file. Unset: a "
        "key is made for each playbook, which extension ssh of the agent lets in.",
    ),
    cfg.StrOpt(
        "default_python_interpreter",
        help="Path of Python in the ramdisk for nodes without driver_info.ansible_python_interpreter. Unset: Ansible "
        "looks for it.",
    ),
    cfg.StrOpt(
        "known_hosts_file",
        help="File of OpenSSH with the host keys of ramdisks that do not have extension ssh of the agent; such agents "
        "need it, and a key file. A host whose key is not known is never trusted.",
    ),
    cfg.PortOpt("ssh_port", default=22, help="The port at which machines are reached by SSH."),
    cfg.IntOpt(
        "playbook_timeout",
        default=3600,
        min=1,
        help="Seconds that a playbook may take. One that takes longer is killed, and its step fails.",
    ),
    cfg.IntOpt(
        "memory_limit", default=2048, min=256, help="MiB of address space for each process of a playbook on this host."
    ),
    cfg.StrOpt("ansible_extra_args", default="", help="Further words for each command line of ansible-playbook."),
    cfg.IntOpt(
        "verbosity",
        default=0,
        min=0,
        max=4,
        help="How much Ansible says: -v so many times. It is logged at level INFO if this is above 0, else DEBUG.",
    ),
    cfg.StrOpt("config_file_path", default="", help="A configuration file for Ansible. Empty: none is read."),
    cfg.BoolOpt(
        "image_store_insecure",
        default=False,
        help="Whether machines take images from servers whose certificate is not verified.",
    ),
    cfg.StrOpt("image_store_cafile", help="File in the ramdisk that verifies these. Unset: the ramdisk's own."),
    cfg.StrOpt("image_store_certfile", help="File in the ramdisk with a client certificate for servers of images."),
    cfg.StrOpt("image_store_keyfile", help="File in the ramdisk with the key of image_store_certfile."),
]
