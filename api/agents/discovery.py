"""Machines that are no node's, where an operator wants to know of them ([auto_discovery] enabled): what they boot, and
what becomes of what they send.
"""

from collections.abc import Mapping

import orjson
from oslo_config import cfg
from oslo_log import log

from ingot.api.agents import inventories
from ingot.api.web.call import Call
from ingot.common import boot_files, errors, metrics
from ingot.common.conf import opts
from ingot.common.json_types import BootConfig, Json
from ingot.db import inbox
from ingot.db import inventory as inventory_rows

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


_LOGS = "logs"
_KIB = 1024


def receive(call: Call, body: Json, addresses: tuple[str, ...]) -> str:
    """Keep what an agent found in a machine that is not enrolled, for an operator; return the uuid of the entry.

    :param addresses: MAC addresses of the machine's cards.
    :raises Invalid: it is larger than an entry may be.
    :raises NotFound: nodes have ports with these addresses, several of them.
    :raises Conflict: the inbox is full.
    """
    if known := inventory_rows.find_foreign_addresses(call.db, None, addresses):
        raise errors.NotFound(f"Machines of the inbox are no node's; nodes have ports with {', '.join(sorted(known))}.")
    options, inventory = call.conf.auto_discovery, body["inventory"]
    rest = {name: value for name, value in body.items() if name not in ("inventory", _LOGS)}
    size = len(orjson.dumps([inventory, rest]))
    if size > options.max_entry_size * _KIB:
        allowed = f"{options.max_entry_size * _KIB} bytes at most, without logs ([auto_discovery] max_entry_size)."
        raise errors.Invalid(field="size of the inventory", value=size, allowed=allowed)
    found = {
        "client_address": call.address[:64],
        "facts": inventories.read_facts(inventory, inventories.find_boot_address(inventory, addresses), addresses),
        "inventory": inventory,
        "plugin_data": rest,
    }
    try:
        uuid = inbox.record(call.db, addresses, found, options.max_entries)
    except errors.Conflict as exc:
        LOG.warning("A machine at %s, with MAC address %s, is not kept: %s", call.where, addresses[0], exc.message)
        metrics.DISCOVERED.labels("refused").inc()
        raise
    metrics.DISCOVERED.labels("kept").inc()
    LOG.info("Inbox: the machine at %s, with MAC address %s, is entry %s", call.where, addresses[0], uuid)
    return uuid
