"""Boot media: ISO images that BMCs fetch, made while they are sent, from what the conductor wrote into the node.

Nothing of an image lies on any disk, and every process of the API makes the same one, so that it does not matter which
of them a BMC asks, or which conductor takes care of the node. BMCs read block by block, with ranges.
"""

import collections
import hmac
import json
import threading
from collections.abc import Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_log import log
from werkzeug.datastructures import Headers, Range
from werkzeug.http import parse_range_header

from ingot.api.agents.media import iso, loaders, sources
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.api.web.streams import Reading
from ingot.common import errors
from ingot.common.json_types import MediaConfig
from ingot.db import boots, models, nodes

LOG = log.getLogger(__name__)

_WITH_METADATA, _WITHOUT = "config-2", "VMEDIA_BOOT_ISO"
"""Labels by which the agent, and what configures networks before it, finds the image that its machine booted from."""

_AUTHORITIES = "/etc/ironic-python-agent/ironic.crt"
_NETWORK_DATA = "/openstack/latest/network_data.json"
_KERNEL, _RAMDISK = "/boot/kernel", "/boot/ramdisk"
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%^[]!~")
_MOST_KEPT = 64

_guard = threading.Lock()
_images: collections.OrderedDict[str, "iso.Image | _Finished"] = collections.OrderedDict()


class _Finished:
    """An image that a user has made."""

    def __init__(self, source: sources.Source) -> None:
        self.read = source.read
        self.size = source.measure()


@operation(answer=Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/octet-stream"))
def image(call: Call, node: str, ticket: str) -> Reply:
    """Send the image from which the node's machine boots to its BMC, which has the link; a range of it on request.

    There is nothing at links that were taken back, or guessed.
    """
    found = _find(call, node, ticket)
    if found is None:
        raise errors.NotFound("There is no boot medium here: the link to it was taken back, or there never was one.")
    own = _prepare(call, found)
    headers = {"Accept-Ranges": "bytes"}
    asked = _read_range(call.headers)
    if asked is None:
        LOG.info("Node %s: its boot medium, %d bytes, is read from %s", found.uuid, own.size, call.where)
        return Reply(Reading(own.read(0, own.size)), 200, {**headers, "Content-Length": str(own.size)})
    place = asked.range_for_length(own.size)
    if place is None:
        nothing = {"Content-Range": f"bytes */{own.size}", "Content-Length": "0"}
        return Reply(Reading(iter(())), 416, headers | nothing)
    start, end = place
    part = {"Content-Range": f"bytes {start}-{end - 1}/{own.size}", "Content-Length": str(end - start)}
    return Reply(Reading(own.read(start, end - start)), 206, headers | part)


def _find(call: Call, node: str, ticket: str) -> models.Node | None:
    try:
        found = nodes.get(call.db, node, ("id", "uuid", "boot_config", "network_data"))
    except errors.NotFound:
        return None
    own = found.boot_config.get("media", {}).get("ticket", "")
    return found if own and hmac.compare_digest(own.encode(), ticket.encode()) else None


def _read_range(headers: Headers) -> Range | None:
    """Return the range that a request asks for; None: everything, as for those of a kind that there is not."""
    found = parse_range_header(headers.get("Range"))
    return found if found is not None and found.units == "bytes" and len(found.ranges) == 1 else None


def _prepare(call: Call, node: models.Node) -> "iso.Image | _Finished":
    """Return the image of a node, made anew if this process has not been asked for it lately.

    :raises ServiceUnavailable: it cannot be made.
    """
    config = node.boot_config["media"]
    with _guard:
        if known := _images.get(config["ticket"]):
            _images.move_to_end(config["ticket"])
            return known
    try:
        made = _make(call.conf, config, node.network_data)
    except errors.IngotError as exc:
        LOG.warning("Node %s: its boot medium cannot be made: %s", node.uuid, exc.message)
        raise errors.ServiceUnavailable(what="The boot medium", reason=exc.message) from exc
    if node.boot_config.get("target") != "trial":
        boots.note_script(call.db, node)
    with _guard:
        _images[config["ticket"]] = made
        while len(_images) > _MOST_KEPT:
            _images.popitem(last=False)
    return made


def _make(conf: cfg.ConfigOpts, config: MediaConfig, network_data: Mapping[str, object]) -> "iso.Image | _Finished":
    users = config.get("of_user", [])

    def find(name: str, given: str) -> sources.Source:
        return sources.find(conf, name, given, name in users)

    if given := config.get("image"):
        return _Finished(find("image", given))
    script = _write_configuration(config.get("arguments", "")).encode()
    files: dict[str, sources.Source] = {_KERNEL: find("kernel", config["kernel"])}
    files[_RAMDISK] = find("ramdisk", config["ramdisk"])
    files |= dict.fromkeys(loaders.CONFIGURATIONS, sources.Content(script))
    if network_data:
        files[_NETWORK_DATA] = sources.Content(json.dumps(network_data).encode())
    if conf.agent.api_ca_file:
        files[_AUTHORITIES] = sources.Content(_read_authorities(conf.agent.api_ca_file))
    loader = config.get("bootloader")
    esp = find("bootloader", loader) if loader else loaders.read_esp(conf, config.get("architecture", "x86_64"))
    return iso.lay_out(files, esp, _WITH_METADATA if network_data else _WITHOUT)


def _read_authorities(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise errors.ImageError(f"[agent] api_ca_file {path}: {exc.strerror}") from exc


def _write_configuration(arguments: str) -> str:
    """Return what tells GRUB to start the kernel at once."""
    quoted = " ".join(_quote(word) for word in arguments.split())
    return f"set timeout=0\nlinux {_KERNEL} {quoted}\ninitrd {_RAMDISK}\nboot\n"


def _quote(word: str) -> str:
    return word if _SAFE.issuperset(word) else "'" + word.replace("'", "'\\''") + "'"
