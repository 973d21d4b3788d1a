"""How disks are to be erased: the operator's options, under the names by which the agent looks for them."""

from typing import Any

from oslo_config import cfg

_OPTIONS = {
    "agent_continue_if_secure_erase_failed": "continue_if_disk_secure_erase_fails",
    "agent_enable_ata_secure_erase": "enable_ata_secure_erase",
    "agent_enable_nvme_secure_erase": "enable_nvme_secure_erase",
    "agent_erase_devices_iterations": "shred_random_overwrite_iterations",
    "agent_erase_devices_zeroize": "shred_final_overwrite_with_zeros",
    "agent_erase_skip_read_only": "erase_skip_read_only",
    "disk_erasure_concurrency": "disk_erasure_concurrency",
}
"""Key of the node's driver_internal_info, as agents read it -> option of [deploy]."""


def wishes(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """What goes to the agent with the node's driver_internal_info.

    It is read from the configuration for each command and not kept with the node, so a changed option holds from the
    next step on.
    """
    return {key: conf.deploy[option] for key, option in _OPTIONS.items()}
