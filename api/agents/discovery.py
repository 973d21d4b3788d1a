"""What machines boot that are no node's, where an operator wants to know of them ([auto_discovery] enabled)."""

from collections.abc import Mapping

from oslo_config import cfg
from oslo_log import log

from ingot.common import boot_files
from ingot.common.conf import opts
from ingot.common.json_types import BootConfig

LOG = log.getLogger(__name__)

_ARCHITECTURES: Mapping[str, str] = {"arm64": "aarch64", "arm32": "arm", "loong64": "loongarch64", "riscv64": "riscv64"}
"""What iPXE calls architectures, as ``cpu_arch`` of nodes names them. That of a PC's BIOS is i386 on all of them."""

_PC = "x86_64"


def choose(conf: cfg.ConfigOpts, architecture: str) -> BootConfig | None:
    """Return how a machine boots the agent that sends its inventory to the inbox; None: it is not to.

    :param architecture: as iPXE says it; empty for a PC.
    """
    if not conf.auto_discovery.enabled:
        return None
    name = _ARCHITECTURES.get(architecture, _PC)
    options = conf.deploy
    kernel = options.deploy_kernel_by_arch.get(name) or options.deploy_kernel or ""
    ramdisk = options.deploy_ramdisk_by_arch.get(name) or options.deploy_ramdisk or ""
    if not boot_files.parse_url(kernel) or not boot_files.parse_url(ramdisk):
        LOG.warning(
            "[auto_discovery] enabled is set, but machines of %s have no agent to boot: [deploy] deploy_kernel and "
            "deploy_ramdisk, or the options by architecture, must be URLs",
            name,
        )
        return None
    return {"target": "ramdisk", "kernel": kernel, "initrd": ramdisk, "kernel_args": " ".join(_list_arguments(conf))}


def _list_arguments(conf: cfg.ConfigOpts) -> list[str]:
    api = opts.agent_api_url(conf)
    own = {
        "ipa-api-url": api,
        "ipa-inspection-callback-url": f"{api}/v1/continue_inspection",
        "ipa-inspection-collectors": ",".join(conf.inspector.collectors),
        "BOOTIF": f"01-{boot_files.OWN_MAC}",
    }
    return [conf.pxe.kernel_append_params or "", *(f"{name}={value}" for name, value in own.items())]
