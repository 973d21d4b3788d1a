"""How Cinder knows a machine: its volume connectors, in the words of Cinder's drivers."""

from oslo_log import log
from oslo_utils import strutils

from ingot.common import errors, iscsi
from ingot.common.json_types import Json
from ingot.drivers.interfaces import boot
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

FIBRE_CHANNEL = "fibre_channel"

_KEYS = {"iqn": "initiator", "ip": "ip"}
"""Keys of what there is one of, by type of connector."""

_LISTS = {"wwpn": "wwpns", "wwnn": "wwnns"}
"""Keys of what there may be several of."""

_PROTOCOLS = {
    iscsi.PROTOCOL: ("iscsi_boot", ("iqn",)),
    FIBRE_CHANNEL: ("fibre_channel_boot", ("wwpn", "wwnn")),
}
"""By type of volume: the capability of machines that boot from such, and the types of connectors that reach them."""

_MOUNT_POINT = "ironic_mountpoint"
"""The device as which volumes are attached: Cinder shows it."""


def _find(task: Task) -> dict[str, list[str]]:
    """Return the ids of connectors by their type."""
    found: dict[str, list[str]] = {}
    for one in task.volume_connectors:
        if one.type in _KEYS or one.type in _LISTS:
            found.setdefault(one.type, []).append(one.connector_id)
        else:
            LOG.warning("Node %s: volume connector %s of type %s is not used", task.node.uuid, one.uuid, one.type)
    return found


def build(task: Task) -> Json:
    """Return the connector that Cinder is sent.

    :raises MissingParameter: nothing by which a volume could be reached.
    """
    found = _find(task)
    if not {"iqn", *_LISTS} & set(found):
        raise errors.MissingParameter(
            where="volume connector of the node",
            names="one of type iqn with the machine's iSCSI name, or of wwpn and wwnn with its Fibre Channel names",
        )
    connector: Json = {key: found[kind][0] for kind, key in _KEYS.items() if kind in found}
    connector |= {key: found[kind] for kind, key in _LISTS.items() if kind in found}
    if len(task.volume_connectors) > 1:
        connector["multipath"] = True
    return {**connector, "host": task.node.uuid, "mountpoint": _MOUNT_POINT}


def check(task: Task) -> None:
    """Refuse connectors, capabilities and targets that do not fit together.

    :raises Invalid: the message names the first that does not.
    """
    found = _find(task)
    _check_names(task, found)
    for kind, (capability, types) in _PROTOCOLS.items():
        boots = _reads_true(task, capability)
        missing = not set(types) & set(found)
        if boots and missing:
            raise errors.MissingParameter(
                where=f"volume connector of a node with the capability {capability}", names=_list_types(types)
            )
        for target in task.volume_targets:
            if target.volume_type != kind:
                continue
            if missing:
                raise errors.MissingParameter(
                    where=f"volume connector for volume target {target.uuid} of volume_type {kind}",
                    names=_list_types(types),
                )
            if target.boot_index == 0 and not boots:
                raise errors.MissingParameter(
                    where=f"properties.capabilities of the node, for volume target {target.uuid} with boot_index 0",
                    names=f"{capability}:true",
                )
    for target in task.volume_targets:
        _check_target(target.uuid, target.volume_id, target.volume_type)


def _list_types(types: tuple[str, ...]) -> str:
    return f"one of type {' or '.join(types)}"


def _check_names(task: Task, found: dict[str, list[str]]) -> None:
    names = found.get("iqn", [])
    if names and "ipxe" not in get_interface(task, BootInterface).name:
        raise errors.Invalid(
            field="boot_interface",
            value=get_interface(task, BootInterface).name,
            allowed="Machines reach iSCSI volumes (a volume connector of type iqn) with the boot interface ipxe.",
        )
    if len(names) > 1:
        LOG.warning("Node %s: of its iSCSI names, %s, only the first is used", task.node.uuid, ", ".join(names))
    counts = [len(found.get(kind, [])) for kind in _LISTS]
    if len(set(counts)) > 1:
        allowed = "Cinder takes Fibre Channel names in pairs: a connector of type wwnn for each of type wwpn."
        value = ", ".join(f"{count} {kind}" for kind, count in zip(_LISTS, counts, strict=True))
        raise errors.Invalid(field="volume connectors", value=value, allowed=allowed)


def _check_target(uuid: str, volume: str | None, kind: str | None) -> None:
    if not volume:
        raise errors.MissingParameter(where=f"volume target {uuid}", names="volume_id, of the volume in Cinder")
    if kind not in _PROTOCOLS:
        allowed = f"One of {', '.join(_PROTOCOLS)}."
        raise errors.Invalid(field=f"volume_type of volume target {uuid}", value=kind, allowed=allowed)


def _reads_true(task: Task, capability: str) -> bool:
    given = boot.read_capability(task.node.properties.get("capabilities"), capability)
    return bool(strutils.bool_from_string(given))
