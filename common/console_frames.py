"""How the serial console of a machine comes from its conductor to the API, over TLS (used by both).

The API sends one frame with a ticket. After that, each frame is what is said or typed, or a message.

=====  =========================================================================
bytes  of a frame
=====  =========================================================================
1      :class:`Kind`
4      how many bytes follow, the most significant first
...    bytes of the serial line, or JSON
=====  =========================================================================
"""

import asyncio
import enum
import struct
from typing import Literal, NamedTuple, TypedDict

import orjson

from ingot.common.json_types import Json

_HEAD = struct.Struct(">BI")

LARGEST = 2**16
"""Bytes of a frame at most, without its head."""

State = Literal["connecting", "open", "lost", "taken", "closed"]


class Kind(enum.IntEnum):
    BYTES = 0
    """What the machine says, or is typed."""

    MESSAGE = 1
    """A :class:`Status` for the reader, or a request: ``{"type": "break"}``."""

    END = 2
    """``{"code": close code of the websocket, "reason": why}``: the last frame."""

    TICKET = 3
    """``{"ticket": ...}``: the first frame of the API."""


class Status(TypedDict):
    """What readers learn of a console.

    :ivar reason: why it is in this state, or what was refused.
    :ivar mode: what this reader may do: read or write.
    :ivar writer: who may type now.
    """

    type: Literal["status"]
    state: State
    reason: str | None
    mode: str
    writer: str | None
    readers: int


class End(enum.IntEnum):
    """Why a console ends: close codes of the websocket; from 4000 on they are Ingot's own."""

    DONE = 1000
    STOPS = 1012
    """The conductor or the API stops, or the node has moved: come back."""

    FAILED = 4500
    """The BMC refuses, or does not answer."""

    TAKEN = 4409
    """Another one has it: come back with take_over=true, or read only."""

    SLOW = 4408
    EXPIRED = 4401
    """Log in again."""

    RELEASED = 4410
    """The console was switched off, or the instance is gone."""


class Place(TypedDict):
    """Where a conductor serves a console.

    :ivar fingerprint: SHA-256 of its certificate, in hexadecimal digits.
    :ivar ticket: what opens it, once.
    """

    host: str
    port: int
    fingerprint: str
    ticket: str


class Frame(NamedTuple):
    kind: Kind
    content: bytes


class BadFrame(Exception):
    """What comes is not of this form."""


def pack(kind: Kind, content: bytes) -> bytes:
    """Return a frame, or several if it is larger than one may be."""
    parts = range(0, max(len(content), 1), LARGEST)
    return b"".join(_HEAD.pack(kind, len(part := content[at : at + LARGEST])) + part for at in parts)


def pack_message(kind: Kind, message: Json | Status) -> bytes:
    return pack(kind, orjson.dumps(message))


def read_end(content: bytes) -> tuple[int, str]:
    """Return what a frame of kind END says.

    :raises BadFrame: it is not of that form.
    """
    try:
        end = orjson.loads(content)
        return int(end["code"]), str(end["reason"])
    except (ValueError, KeyError, TypeError) as exc:
        raise BadFrame(f"an end without code and reason: {content[:80]!r}") from exc


async def read(stream: asyncio.StreamReader) -> Frame | None:
    """Return the next frame; None: the other side is gone.

    :raises BadFrame: that is none.
    """
    try:
        number, length = _HEAD.unpack(await stream.readexactly(_HEAD.size))
        if length > LARGEST or number not in [*Kind]:
            raise BadFrame(f"a frame of kind {number} with {length} bytes")
        return Frame(Kind(number), await stream.readexactly(length))
    except (asyncio.IncompleteReadError, OSError):
        return None
