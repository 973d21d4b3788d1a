"""What an image is, found out from its first bytes, and whether it may be given to a machine.

Formats that hold more than bytes of a disk can name other files, or grow to any size when they are unpacked: what does
is refused here, before anything is written. Agents look into images that they convert themselves; these checks are the
same and more, and come before the machine is booted.
"""

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from oslo_config import cfg
from oslo_utils import units

from ingot.common import errors, later

if TYPE_CHECKING:
    from oslo_utils.imageutils import format_inspector
else:
    format_inspector = later.Module("oslo_utils.imageutils.format_inspector")

MOST = 8 * units.Mi
"""Bytes of an image that are read at most: where the tools that write images put what describes them."""

COPIED = frozenset(("raw", "gpt", "iso"))
"""Formats that are written as they are: nothing in them is understood by whatever writes them."""

CONVERTED: Mapping[str, str] = {name: name for name in ("qcow2", "vmdk", "vdi", "vhdx")}
"""Formats that agents convert, and what qemu-img calls them."""

_NOT_CONVERTED = {
    "vhd": "agents cannot convert VHD, which their qemu-img knows by another name: convert it to qcow2 or VHDX",
    "qed": "QED is out of use and not converted: convert it to qcow2",
    "luks": "encrypted images cannot be written",
}

_COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2"}

_QCOW2_ENCRYPTION = slice(32, 36)
"""Bytes of the header of qcow2, all zero in images that are not encrypted."""

_CANNOT_TELL = (LookupError, ValueError, AttributeError, struct.error)
"""What the library's inspectors raise for content that is made to confuse them, besides their own errors."""


class Content(NamedTuple):
    """An image that can be read from its beginning.

    :param chunks: its bytes, in order.
    :param size: bytes of it; None: not known.
    :param read_end: returns so many of its last bytes; fewer if they cannot be had.
    """

    chunks: Iterator[bytes]
    size: int | None
    read_end: Callable[[int], bytes]


class Found(NamedTuple):
    """What an image is.

    :param formats: names as oslo.utils has them: more than one for a hybrid that is written as it is.
    :param size: bytes on the disk; None: not known.
    """

    formats: tuple[str, ...]
    size: int | None

    @property
    def is_copied(self) -> bool:
        """Whether it is written as it is."""
        return set(self.formats) <= COPIED

    @property
    def written_as(self) -> str:
        """What whatever writes it is to call it, as qemu-img does."""
        return "raw" if self.is_copied else CONVERTED[self.formats[0]]


def identify(content: Content) -> Found:
    """Find out what an image is.

    :raises ImageError: it cannot be found out, or it is not safe; without a name of the image.
    :raises FetchError: it cannot be read.
    """
    first = next(content.chunks, b"")
    if not first:
        raise errors.ImageError("it is empty")
    if packed := next((name for magic, name in _COMPRESSED.items() if first.startswith(magic)), None):
        raise errors.ImageError(f"it is compressed ({packed}), and agents write what they fetch: unpack it")
    try:
        matches = _inspect(itertools.chain([first], content.chunks))
        formats = tuple(sorted(map(str, matches)))
        if set(formats) <= COPIED:
            return Found(formats, content.size)
        if len(matches) > 1:
            raise errors.ImageError(f"it looks like {' and '.join(formats)} at once: one could hide in another")
        return Found(formats, _check(matches[0], content))
    except (format_inspector.ImageFormatError, *_CANNOT_TELL) as exc:
        raise errors.ImageError(f"what it is cannot be found out: {str(exc) or type(exc).__name__}") from exc


def _inspect(chunks: Iterator[bytes]) -> "list[format_inspector.FileInspector]":
    """Return the formats that content has, as soon as they are known."""
    # Of a file it would take nothing but the next chunk, too.
    wrapper, seen = format_inspector.InspectWrapper(cast("IO[bytes]", chunks)), 0
    for chunk in wrapper:
        seen += len(chunk)
        if (formats := wrapper.formats) is not None:
            return formats
        if seen >= MOST:
            break
    wrapper.close()
    return wrapper.formats or []


def _check(inspector: "format_inspector.FileInspector", content: Content) -> int:
    """Return the size of a disk in a format that is converted.

    :raises ImageError: it could do more than fill a disk.
    """
    name = str(inspector)
    if reason := _NOT_CONVERTED.get(name):
        raise errors.ImageError(reason)
    try:
        if isinstance(inspector, format_inspector.VMDKInspector):
            _check_vmdk(inspector, content)
        elif inspector.complete:
            inspector.safety_check()
    except (format_inspector.SafetyCheckFailed, format_inspector.SafetyViolation) as exc:
        failures = getattr(exc, "failures", {"": exc})
        raise errors.ImageError(
            f"it is {name}, and not safe: {'; '.join(str(reason) for reason in failures.values())}"
        ) from exc
    if not inspector.complete:
        raise errors.ImageError(f"it is cut off, or what describes it is not in its first {MOST // units.Mi} MiB")
    if name == "qcow2" and any(inspector.region("header").data[_QCOW2_ENCRYPTION]):
        raise errors.ImageError("it is qcow2, and encrypted: agents have no key")
    if not inspector.virtual_size:
        raise errors.ImageError(f"it is {name}, and says nothing of its size")
    return int(inspector.virtual_size)


def _check_vmdk(inspector: "format_inspector.VMDKInspector", content: Content) -> None:
    """Refuse what makes qemu-img open another file, by whatever name.

    :raises SafetyViolation: the library refuses it, too.
    """
    if not inspector.has_region("header"):
        raise errors.ImageError("it is vmdk, and has no data: it describes a disk in other files")
    inspector.check_descriptor()
    lines = [line.split() for line in str(inspector.desc_text).split("\n")]
    if any("parentfilenamehint" in word for line in lines for word in line):
        raise errors.ImageError("it is vmdk, and not safe: it has a parent, which is another file")
    extents = [line for line in lines if line[:1] in (["rw"], ["rdonly"], ["noaccess"])]
    if [line[2:3] for line in extents] != [["sparse"]]:
        raise errors.ImageError("it is vmdk, and not safe: its descriptor names other files")
    if inspector.has_region("footer"):
        _check_footer(inspector, content)


def _check_footer(inspector: "format_inspector.VMDKInspector", content: Content) -> None:
    """Check the end of an image, which may contradict its beginning.

    Where the end cannot be read, agents check it when they have the whole image.
    """
    footer = inspector.region("footer")
    end = content.read_end(footer.length)
    if len(end) == footer.length:
        footer.data = end
        inspector.check_footer()
    else:
        inspector.delete_region("footer")


def choose_format(conf: cfg.ConfigOpts, found: Found, declared: str | None) -> str:
    """Return as what an agent is to write an image.

    :param declared: what the user, or the image's source, calls its format; None: nothing.
    :raises ImageError: it is something else, may not be used, or is too large.
    """
    names = " and ".join(found.formats)
    if denied := [name for name in found.formats if name not in list_permitted(conf)]:
        permitted = ", ".join(conf.conductor.permitted_image_formats)
        raise errors.ImageError(f"it is {denied[0]}; [conductor] permitted_image_formats has {permitted}")
    if declared and declared not in found.formats and not (declared == "raw" and found.is_copied):
        raise errors.ImageError(f"it is {names}, and is called {declared} (image_disk_format)")
    most = conf.deploy.max_image_size
    if found.size is not None and found.size > most * units.Gi:
        raise errors.ImageError(
            f"it is {names} of {found.size / units.Gi:.0f} GiB on a disk; [deploy] max_image_size allows {most}"
        )
    return found.written_as


def list_permitted(conf: cfg.ConfigOpts) -> frozenset[str]:
    """Return the formats that images may have; raw ones may have partitions."""
    permitted = frozenset(conf.conductor.permitted_image_formats)
    return permitted | {"gpt"} if "raw" in permitted else permitted
