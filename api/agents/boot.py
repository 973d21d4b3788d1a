"""Boot scripts, rendered on request from what is in the database, and images, passed on from Glance: nothing lies on
any disk.

The conductor wrote into the node what the machine boots. A volume is read at each request, so that a portal that has
moved, or a new password, needs no deployment. Its script has a password in it, and a MAC address is not enough to get
that: the first script leads to it with a ticket.
"""

import hmac
import posixpath
import re
import urllib.parse

from oslo_log import log

from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import errors, iscsi
from ingot.common.json_types import BootConfig
from ingot.db import boots, models, nodes, ports, volumes

LOG = log.getLogger(__name__)

_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.ASCII | re.IGNORECASE)

# A firmware that cannot start the disk itself gets it back with exit, and tries its next boot device.
LOCAL_DISK = "#!ipxe\nsanboot --no-describe --drive 0x80 || exit\n"

# Never boots from the disk: what is on it is not what was deployed, and may be another user's.
_NO_VOLUME = "echo The volume cannot be started. The machine tries again in a minute.\nsleep 60\nreboot\n"

_ANOTHER_ADDRESS = (
    "echo The script for this volume was given to another address. Reboot the machine by Ingot.\nsleep 60\nreboot\n"
)


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def ipxe(call: Call, mac: str) -> Reply:
    """Show the script for the machine that has a MAC address; unknown machines boot from their disk."""
    node = ports.find_booting_node(call.db, mac.replace("-", ":").lower()) if _MAC.fullmatch(mac) else None
    if node is None:
        LOG.info(
            "No port with pxe_enabled has MAC address %.40r: the machine at %s boots from its disk", mac, call.where
        )
        return Reply(LOCAL_DISK)
    config = node.boot_config
    if config.get("target") == "volume":
        return Reply(_render_ticket(call, node))
    boots.note_script(call.db, node)
    _log_script(call, node)
    if config.get("target") not in ("ramdisk", "instance") or not config.get("kernel"):
        return Reply(LOCAL_DISK)
    return Reply(_render_script(config))


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def volume(call: Call, node: str, ticket: str) -> Reply:
    """Show the script for the machine that boots from a volume, for its ticket, which is good once."""
    uuid = fields.parse_uuid("node", node)
    found = boots.redeem_ticket(call.db, uuid, ticket, _bound_address(call))
    if found is None or found.boot_config.get("target") != "volume":
        LOG.warning("Node %s: a ticket for the script of its volume, used at %s, is not good", uuid, call.where)
        raise errors.NotFound("There is no boot script here: its ticket was used, or there never was one.")
    return Reply(_render_volume_script(call, found))


@operation(answer=Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/octet-stream"))
def image(call: Call, node: str, ticket: str, image: str) -> Reply:
    """Send an image of Glance to the machine: it has the link that the conductor has written into the node.

    There is nothing at links that were taken back, or guessed.
    """
    try:
        links = nodes.get(call.db, node, ("boot_config",)).boot_config.get("links", {})
    except errors.NotFound:
        links = {}
    given = f"{ticket}/{image}".encode()
    if not any(hmac.compare_digest(link.encode(), given) for link in links.values()):
        raise errors.NotFound("There is no image here: the link to it was taken back, or there never was one.")
    download = call.downloads.open(image, call.headers)
    return Reply(download, download.status, download.headers)


def _log_script(call: Call, node: models.Node) -> None:
    target = node.boot_config.get("target", "disk")
    LOG.info("Node %s: its machine, at %s, has fetched its boot script: %s", node.uuid, call.where, target)


def _bound_address(call: Call) -> str | None:
    """Return the network address that a ticket is for; None: any."""
    return call.address if call.conf.api.check_volume_address else None


def _render_ticket(call: Call, node: models.Node) -> str:
    """Return a script that leads to that of the volume."""
    ticket = boots.issue_ticket(call.db, node, _bound_address(call))
    if ticket is not None:
        _log_script(call, node)
        # By way of the address that this script came from.
        return f"#!ipxe\nchain ../volumes/{node.uuid}/{ticket} || {_NO_VOLUME}"
    LOG.warning(
        "Node %s: the boot script of its volume is not given to %s, because %s had it since Ingot last booted the "
        "machine. If the machine has another address now, reboot it by Ingot, or see [api] check_volume_address",
        *(node.uuid, call.where, node.boot_address or "another address"),
    )
    return f"#!ipxe\n{_ANOTHER_ADDRESS}"


def _render_volume_script(call: Call, node: models.Node) -> str:
    """Return a script with secrets in it, for this machine only."""
    try:
        target = iscsi.boot_target(volumes.TARGETS.list_of_node(call.db, node.id))
        if target is None:
            raise errors.MissingParameter(where="volume target of the node", names="one with boot_index 0")
        volume = iscsi.boot_volume(target, volumes.CONNECTORS.list_of_node(call.db, node.id))
    except errors.Invalid as exc:
        LOG.warning("Node %s cannot boot from its volume: %s", node.uuid, exc.message)
        return f"#!ipxe\n{_NO_VOLUME}"
    settings = {"initiator-iqn": volume.initiator, "username": volume.username, "password": volume.password}
    lines = [f"set {name} {value}" for name, value in settings.items() if value is not None]
    return "\n".join(["#!ipxe", *lines, f"sanboot --drive 0x80 {volume.uri} || {_NO_VOLUME}"])


def _render_script(config: BootConfig) -> str:
    initrd = _strip(config.get("initrd") or "")
    # A line break in the arguments would end the command.
    command = ["kernel", _strip(config["kernel"]), *(config.get("kernel_args") or "").split()]
    if initrd:
        # UEFI kernels find their initial ramdisk by its name.
        command.append(f"initrd={posixpath.basename(urllib.parse.urlsplit(initrd).path)}")
    return "\n".join(["#!ipxe", " ".join(command), *([f"initrd {initrd}"] if initrd else ()), "boot", ""])


def _strip(url: str) -> str:
    return "".join(url.split())
