"""Boot scripts and configurations, rendered on request from what is in the database, and images, passed on from Glance:
nothing lies on any disk.

The conductor wrote into the node what the machine boots. A volume is read at each request, so that a portal that has
moved, or a new password, needs no deployment. Its script has a password in it, and a MAC address is not enough to get
that: the first script leads to it with a ticket.
"""

import hmac
import re
from collections.abc import Callable, Mapping

from oslo_log import log

from ingot.api.agents import boot_kernel, boot_scripts, discovery
from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors, iscsi, metrics
from ingot.db import boots, inventory, models, nodes, ports, volumes

LOG = log.getLogger(__name__)

_MAC = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}", re.ASCII | re.IGNORECASE)

# Never boots from the disk: what is on it is not what was deployed, and may be another user's.
_NO_VOLUME = "echo The volume cannot be started. The machine tries again in a minute.\nsleep 60\nreboot\n"
_NO_IMAGE = _NO_VOLUME.replace("volume", "image")

_ANOTHER_ADDRESS = (
    "echo The script for this volume was given to another address. Reboot the machine by Ingot.\nsleep 60\nreboot\n"
)


@operation(Param("arch", fields.parse_text), answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def ipxe(call: Call, mac: str) -> Reply:
    """Show the script for the machine that has a MAC address; unknown machines boot from their disk, or are discovered.

    iPXE says in ``arch`` what it was made for.
    """
    node = _find_node(call, mac)
    target = node.boot_config.get("target", "") if node is not None else ""
    if node is not None and target in _BY_IPXE:
        metrics.BOOT_SCRIPTS.labels("ipxe", target).inc()
        return Reply(_BY_IPXE[target](call, node))
    return _show(call, "ipxe", node, mac)


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def grub(call: Call, mac: str) -> Reply:
    """Show the configuration of GRUB for the machine that has a MAC address."""
    return _show_file(call, "grub", mac)


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def pxelinux(call: Call, mac: str) -> Reply:
    """Show the configuration of PXELINUX for the machine that has a MAC address."""
    return _show_file(call, "pxelinux", mac)


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def petitboot(call: Call, mac: str) -> Reply:
    """Show the configuration of Petitboot for the machine that has a MAC address."""
    return _show_file(call, "petitboot", mac)


def _find_node(call: Call, mac: str) -> models.Node | None:
    return ports.find_booting_node(call.db, _write_mac(mac)) if _MAC.fullmatch(mac) else None


def _write_mac(mac: str) -> str:
    return mac.replace("-", ":").lower()


def _show_file(call: Call, loader: str, mac: str) -> Reply:
    """
    :raises NotFound: the machine boots from a volume or an image, which the loader cannot start; its disk may be
        another user's.
    """
    node = _find_node(call, mac)
    target = node.boot_config.get("target", "") if node is not None else ""
    if node is not None and target in _BY_IPXE:
        LOG.warning(
            "Node %s: its machine, at %s, asks for a configuration of %s; it boots from its %s, which only iPXE can",
            *(node.uuid, call.where, loader, target),
        )
        raise errors.NotFound(f"There is no configuration here: the machine boots from its {target}, by iPXE only.")
    return _show(call, loader, node, mac)


def _show(call: Call, loader: str, node: models.Node | None, mac: str) -> Reply:
    """Show what a loader is to do: boot what the conductor has noted, or the machine's disk."""
    if node is None:
        return Reply(_show_unknown(call, loader, mac))
    config = node.boot_config
    boots.note_script(call.db, node)
    _log_script(call, node)
    target = config.get("target", "")
    if target not in ("ramdisk", "instance") or not config.get("kernel"):
        metrics.BOOT_SCRIPTS.labels(loader, "disk").inc()
        return Reply(boot_scripts.LOADERS[loader].disk)
    metrics.BOOT_SCRIPTS.labels(loader, target).inc()
    return Reply(boot_kernel.render(call.conf, loader, config, mac))


def _show_unknown(call: Call, loader: str, mac: str) -> str:
    """Return what a machine is to do that is no node's."""
    script = _render_discovery(call, loader, mac) if _MAC.fullmatch(mac) else None
    # A port of a node without pxe_enabled is known: its machine may have a user.
    if script is not None and not inventory.find_foreign_addresses(call.db, None, [_write_mac(mac)]):
        LOG.info("No port has MAC address %.40r: the machine at %s is discovered", mac, call.where)
        metrics.BOOT_SCRIPTS.labels(loader, "discovery").inc()
        return script
    LOG.info("No port with pxe_enabled has MAC address %.40r: the machine at %s boots from its disk", mac, call.where)
    metrics.BOOT_SCRIPTS.labels(loader, "unknown").inc()
    return boot_kernel.render_unknown(call.conf, loader)


def _render_discovery(call: Call, loader: str, mac: str) -> str | None:
    """Return what boots the agent that a machine is discovered by; None: it is not discovered.

    PXELINUX runs on PCs only. Petitboot does not say what it runs on, and GRUB finds out itself.
    """

    def render(architecture: str) -> str | None:
        found = discovery.choose(call.conf, architecture)
        return None if found is None else boot_kernel.render(call.conf, loader, found, mac)

    if loader == "petitboot":
        return None
    if loader != "grub":
        return render(call.query.get("arch", ""))
    return boot_scripts.choose_by_cpu(render(""), render("arm64"))


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


def _render_image(call: Call, node: models.Node) -> str:
    """Return a script that starts the image as a drive, from which the firmware boots.

    A node that was moved here from Ironic has no image before it is rebuilt: its machine waits.
    """
    boots.note_script(call.db, node)
    _log_script(call, node)
    image = node.boot_config.get("image")
    if image is None:
        LOG.warning("Node %s: its machine waits, as what it boots was in Ironic: rebuild the node", node.uuid)
        return f"#!ipxe\n{_NO_IMAGE}"
    return f"#!ipxe\nsanboot {image} || {_NO_IMAGE}"


_BY_IPXE: Mapping[str, Callable[[Call, models.Node], str]] = {"volume": _render_ticket, "image": _render_image}
"""How a machine is booted from what only iPXE can start."""
