"""Boot media: ISO images that BMCs fetch, made while they are sent, from what the conductor wrote into the node.

Nothing of an image lies on any disk, and every process of the API makes the same one, so that it does not matter which
of them a BMC asks, or which conductor takes care of the node. BMCs read block by block, with ranges.
"""

import asyncio
import base64
import collections
import contextlib
import gzip
import hmac
import threading
from collections.abc import Callable, Iterator

from oslo_config import cfg
from oslo_log import log
from werkzeug.datastructures import Headers, Range
from werkzeug.http import parse_range_header

from ingot.api.agents.media import settings, signed_loader, sources
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.api.web.streams import Reading
from ingot.common import errors
from ingot.common.json_types import Json, MediaConfig
from ingot.common.media import boot_medium, fat, iso
from ingot.common.media.content import Content, Source
from ingot.db import boots, models, nodes

LOG = log.getLogger(__name__)

_BOOT_LABEL, _SECOND_LABEL = "VMEDIA_BOOT_ISO", "ir-vfd-dev"
"""Labels by which the agent finds media that have no network_data."""

_MOST_KEPT = 64
_LARGEST_KEPT = 4 * 1024 * 1024
"""Bytes of a second medium: a larger one is unpacked again for each request."""

_MOST_MAKING = 2

_guard = threading.Lock()
_making: collections.Counter[str] = collections.Counter()


class _Medium:
    """A medium as it is read.

    :ivar turn: of its readers: a slow server of its files keeps one thread from others, however many read.
    """

    def __init__(self, read: Callable[[int, int], Iterator[bytes]], size: int) -> None:
        self.read = read
        self.size = size
        self.turn = asyncio.Lock()


_images: collections.OrderedDict[tuple[str, str], _Medium] = collections.OrderedDict()


@operation(answer=Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/octet-stream"))
def image(call: Call, node: str, ticket: str) -> Reply:
    """Send the image from which the node's machine boots to its BMC, which has the link; a range of it on request.

    There is nothing at links that were taken back, or guessed.
    """
    found = _find(call, node, ticket)
    return _send(call, found, "boot medium", _prepare(call, found))


@operation(answer=Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/octet-stream"))
def second(call: Call, node: str, ticket: str) -> Reply:
    """Send what a BMC inserts beside the boot medium: settings of the agent, or the node's config drive."""
    found = _find(call, node, ticket, ("configdrive",))
    if "second" not in found.boot_config["media"]:
        raise _not_there_error()
    return _send(call, found, "second boot medium", _prepare_second(call, found))


def _send(call: Call, found: models.Node, what: str, own: _Medium) -> Reply:
    headers = {"Accept-Ranges": "bytes"}
    asked = _read_range(call.headers)
    if asked is None:
        LOG.info("Node %s: its %s, %d bytes, is read from %s", found.uuid, what, own.size, call.where)
        return Reply(Reading(own.read(0, own.size), own.turn), 200, {**headers, "Content-Length": str(own.size)})
    place = asked.range_for_length(own.size)
    if place is None:
        nothing = {"Content-Range": f"bytes */{own.size}", "Content-Length": "0"}
        return Reply(Reading(iter(()), own.turn), 416, headers | nothing)
    start, end = place
    part = {"Content-Range": f"bytes {start}-{end - 1}/{own.size}", "Content-Length": str(end - start)}
    return Reply(Reading(own.read(start, end - start), own.turn), 206, headers | part)


def _not_there_error() -> errors.NotFound:
    return errors.NotFound("There is no boot medium here: the link to it was taken back, or there never was one.")


def _find(call: Call, node: str, ticket: str, more: tuple[str, ...] = ()) -> models.Node:
    """Return the node whose link it is.

    :param more: columns to read beside those of every medium.
    """
    try:
        found = nodes.get(call.db, node, ("id", "uuid", "boot_config", "network_data", *more))
    except errors.NotFound:
        raise _not_there_error() from None
    own = found.boot_config.get("media", {}).get("ticket", "")
    if not own or not hmac.compare_digest(own.encode(), ticket.encode()):
        raise _not_there_error()
    return found


def _read_range(headers: Headers) -> Range | None:
    """Return the range that a request asks for; None: everything, as for those of a kind that there is not."""
    found = parse_range_header(headers.get("Range"))
    return found if found is not None and found.units == "bytes" and len(found.ranges) == 1 else None


def _prepare(call: Call, node: models.Node) -> _Medium:
    """Return the image of a node, made anew if this process has not been asked for it lately.

    :raises ServiceUnavailable: it cannot be made.
    """
    config = node.boot_config["media"]
    if known := _recall(config, "boot"):
        return known
    with _limit_making(config["ticket"]):
        try:
            made = _make(call.conf, node)
        except errors.IngotError as exc:
            LOG.warning("Node %s: its boot medium cannot be made: %s", node.uuid, exc.message)
            raise errors.ServiceUnavailable(what="The boot medium", reason=exc.message) from exc
    if node.boot_config.get("target") != "trial":
        boots.note_script(call.db, node)
    _keep(config, "boot", made)
    return made


@contextlib.contextmanager
def _limit_making(ticket: str) -> Iterator[None]:
    """Make a medium in a few threads at most, although all that have its link may ask for it at once.

    :raises ServiceUnavailable: so many make it already.
    """
    with _guard:
        if _making[ticket] >= _MOST_MAKING:
            raise errors.ServiceUnavailable(what="The boot medium", reason=f"{_MOST_MAKING} others wait for it already")
        _making[ticket] += 1
    try:
        yield
    finally:
        with _guard:
            _making[ticket] -= 1
            if not _making[ticket]:
                del _making[ticket]


def _prepare_second(call: Call, node: models.Node) -> _Medium:
    config = node.boot_config["media"]
    if known := _recall(config, "second"):
        return known
    if config["second"] == "configdrive":
        content = gzip.decompress(base64.b64decode(node.configdrive or ""))
    else:
        network_data = _read_network_data(node)
        label = settings.WITH_METADATA if network_data else _SECOND_LABEL
        words = f"{config.get('arguments', '')} {_write_token(config)}"
        files = settings.build(call.conf, network_data, words)
        content = fat.build({**files, settings.PARAMETERS: "\n".join(words.split()).encode()}, label)
    made = _Medium(Content(content).read, len(content))
    if made.size <= _LARGEST_KEPT:
        _keep(config, "second", made)
    return made


def _recall(config: MediaConfig, which: str) -> _Medium | None:
    with _guard:
        key = config["ticket"], which
        if key in _images:
            _images.move_to_end(key)
        return _images.get(key)


def _keep(config: MediaConfig, which: str, made: _Medium) -> None:
    with _guard:
        _images[config["ticket"], which] = made
        while len(_images) > _MOST_KEPT:
            _images.popitem(last=False)


def _make(conf: cfg.ConfigOpts, node: models.Node) -> _Medium:
    config = node.boot_config["media"]
    users = config.get("of_user", [])

    def find(name: str, given: str) -> Source:
        return sources.find(conf, name, given, name in users)

    if given := config.get("image"):
        source = find("image", given)
        return _Medium(source.read, source.measure())
    kernel, ramdisk = find("kernel", config["kernel"]), find("ramdisk", config["ramdisk"])
    files = boot_medium.list_files(kernel, ramdisk, config.get("arguments", ""))
    network_data = _read_network_data(node)
    own = settings.build(conf, network_data, _write_token(config))
    files |= {f"/{path}": Content(content) for path, content in own.items()}
    loader = config.get("bootloader")
    esp = find("bootloader", loader) if loader else signed_loader.read_esp(conf, config.get("architecture", "x86_64"))
    laid_out = iso.lay_out(files, esp, settings.WITH_METADATA if network_data else _BOOT_LABEL)
    return _Medium(laid_out.read, laid_out.size)


def _read_network_data(node: models.Node) -> Json:
    """Return what configures the networks of what boots; nothing where it is to ask for its addresses."""
    media = node.boot_config["media"]
    return {} if media.get("without_network_data") else media.get("network_data") or node.network_data


def _write_token(config: MediaConfig) -> str:
    """Return the agent's token as a kernel argument, which it is not: kernels show theirs on consoles and in logs."""
    return f"ipa-agent-token={config['token']}" if "token" in config else ""
