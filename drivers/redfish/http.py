"""HTTP to one BMC, for as long as one operation lasts: connections of the loop of BMCs, bounded in time and size.

The caller sets the deadline (``asyncio.timeout``), which ends each wait here, also that for a BMC that sends a byte now
and then. A connection serves the requests of one operation and is closed after it: BMCs have few.
"""

import asyncio
import json
import math
import os
import re
import ssl
import zlib
from collections.abc import Mapping
from typing import Any

import httptools
from urllib3 import HTTPHeaderDict

from ingot.common import errors
from ingot.drivers.redfish.address import Address, Trust

LARGEST = 2**20
"""Bytes of an answer, unless the caller expects more: resources have some thousand."""

_LARGEST_FRAME = 2**16  # bytes that are not of the body: the head, and what is between the parts of the body
_CHUNK = 2**16
_GZIP = 16 + zlib.MAX_WBITS

_SAFE = frozenset(("GET", "HEAD"))

_LONGEST_NUMBER = 20  # digits: 64 bits
_NO_TEXT = re.compile(rb"\\u(?:0000|d[89a-f])", re.IGNORECASE)
"""What a document has if a text may have NUL or half of a surrogate pair, which databases refuse."""


class Dropped(Exception):
    """The BMC closed the connection before it had answered.

    :ivar reused: whether the connection had served a request before, so that this one may not have been read at all.
    """

    def __init__(self, reused: bool) -> None:
        super().__init__("it closed the connection without an answer")
        self.reused = reused


class NotHttp(Exception):
    """What the BMC sent is not HTTP, or too much of it."""


class Response:
    """An answer, with the attributes that sushy knows from another library."""

    def __init__(self, status_code: int, headers: "HTTPHeaderDict", content: bytes) -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content
        self._document: Any = None

    def json(self, **_options: object) -> Any:
        """Return the document of the answer; all that it has can be written as JSON again, and kept in a database.

        :raises ValueError: it is not JSON.
        """
        if self._document is None:
            self._document = _parse(self.content)
        return self._document

    def read_object(self) -> dict[str, Any]:
        """Return the JSON object of the answer; an empty one if it has none."""
        try:
            document = self.json()
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


def _parse(content: bytes) -> Any:
    try:
        text = content.decode("utf-8-sig")  # json itself would take other encodings, and halves of surrogate pairs
        document = json.loads(text, parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_refuse)
        return _clean(document) if _NO_TEXT.search(content) else document
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _parse_integer(digits: str) -> int:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else _refuse(f"a number of {len(digits)} digits")


def _parse_float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits[:_LONGEST_NUMBER])


def _refuse(what: str) -> Any:
    raise ValueError(f"it has {what}")


def _clean(value: Any) -> Any:
    """Return a value of a document with replacements for what is no text."""
    if isinstance(value, dict):
        return {_clean(name): _clean(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return value


class KeptDocument(Response):
    """An answer that was not asked for: the document is known."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(200, HTTPHeaderDict(), b"{}")
        self._document = document


class _Reader:
    """Collects one answer; the names of its methods are those of httptools.

    :param largest: bytes that its body may have.
    """

    def __init__(self, largest: int) -> None:
        self.headers = HTTPHeaderDict()
        self.body = bytearray()
        self.status = 0
        self.complete = False
        self.keeps_alive = False
        self._largest = largest
        self._received = 0
        self._answers = 0
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """
        :raises NotHttp: it is no HTTP, or too much.
        """
        if data:
            self._parse(data)
        elif self.status and not {"content-length", "transfer-encoding"} & {name.lower() for name in self.headers}:
            self.complete = True  # the end of the connection is the end of the answer
        else:
            raise Dropped(reused=False)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            raise NotHttp(f"its answer is not HTTP as it was asked for ({exc})") from None
        self._received += len(data)
        # Parts of a body, of a byte each, come with five bytes between them.
        if len(self.body) > self._largest or self._received > _LARGEST_FRAME + 8 * len(self.body):
            raise NotHttp(f"its answer is longer than {self._largest // 1024} KiB, or has too long a head")
        if self._answers > 1:
            raise NotHttp("it sends more than one answer")

    def read_body(self) -> bytes:
        """Return the body as it was before it was compressed, which some do unasked.

        :raises NotHttp: that is not possible, or it gets too long.
        """
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity" or not self.body:
            return bytes(self.body)
        if encoding not in ("gzip", "x-gzip"):
            raise NotHttp(f"its answer is encoded as {encoding:.40}")
        unpacking = zlib.decompressobj(_GZIP)
        try:
            content = unpacking.decompress(bytes(self.body), self._largest)
        except zlib.error as exc:
            raise NotHttp(f"its answer cannot be unpacked ({exc})") from None
        if not unpacking.eof:
            raise NotHttp(f"its answer is longer than {self._largest // 1024} KiB, or not whole")
        return content

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if self.status < 200:  # an interim answer; the real one follows
            self.headers, self.status = HTTPHeaderDict(), 0
            return
        self.keeps_alive = self._parser.should_keep_alive()
        self.complete = True
        self._answers += 1


_contexts: dict[tuple[Trust, float], ssl.SSLContext] = {}
"""By what is trusted and when its file was changed: to load authorities takes 20 ms. Of the loop's thread only."""


def _find_context(trust: Trust) -> ssl.SSLContext:
    place = trust.authorities
    key = trust, os.stat(place).st_mtime if isinstance(place, str) else 0.0
    if key not in _contexts:
        for known in [known for known in _contexts if known[0] == trust]:
            del _contexts[known]
        _contexts[key] = trust.build_context()
    return _contexts[key]


class Connection:
    """Requests to a BMC, one after the other.

    :param connect_timeout: seconds for TCP and TLS.
    """

    def __init__(self, address: Address, connect_timeout: float) -> None:
        self._address = address
        self._connect_timeout = connect_timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, largest: int = LARGEST
    ) -> Response:
        """Send one request and return the answer, whatever its status.

        :param largest: bytes of the answer.
        :raises HardwareUnreachable: there is no connection to be had.
        :raises HardwareError: the BMC's certificate is refused.
        :raises Dropped: it closed the connection before it answered.
        :raises NotHttp: something else than HTTP came back.
        """
        if method not in _SAFE:
            self.close()  # a kept connection may break under the request, which must not be sent twice then
        try:
            return await self._exchange(self._build_request(method, path, headers, body), largest)
        except Dropped as exc:
            if not exc.reused:
                raise
            return await self._exchange(self._build_request(method, path, headers, body), largest)

    async def _exchange(self, request: bytes, largest: int) -> Response:
        reused = self._streams is not None
        reader, writer = self._streams = self._streams or await self._connect()
        answer, keeps = _Reader(largest), False
        try:
            writer.write(request)
            while not answer.complete:
                answer.feed(await reader.read(_CHUNK))
            keeps = answer.keeps_alive
        except (ConnectionError, Dropped, ssl.SSLError):
            raise Dropped(reused and not answer.status) from None
        finally:
            if not keeps:
                self.close()
        return Response(answer.status, answer.headers, answer.read_body())

    def _build_request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        lines = {"Host": self._address.authority, "Accept": "application/json", "Accept-Encoding": "identity"}
        lines |= {"OData-Version": "4.0", **headers}
        if body is not None or method not in _SAFE:
            lines["Content-Length"] = str(len(body or b""))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1", "replace") + (body or b"")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address, bmc = self._address, f"BMC {self._address.where}"
        try:
            context = _find_context(address.trust) if address.scheme == "https" else None
        except OSError as exc:
            reason = f"the certificates that verify it cannot be used ({exc}); check driver_info redfish_verify_ca"
            raise errors.HardwareError(what=f"Calling {bmc}", reason=reason) from None
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await asyncio.open_connection(address.host, address.port, ssl=context)
        except ssl.SSLCertVerificationError as exc:
            reason = f"its certificate is refused ({exc.verify_message}); check driver_info redfish_verify_ca"
            raise errors.HardwareError(what=f"Calling {bmc}", reason=reason) from None
        except ssl.SSLError as exc:
            reason = f"TLS could not be agreed on ({exc.reason or exc}); is the port one of https?"
            raise errors.HardwareError(what=f"Calling {bmc}", reason=reason) from None
        except TimeoutError:
            reason = f"no connection within {self._connect_timeout:g} s ([redfish] connect_timeout)"
            raise errors.HardwareUnreachable(what=bmc, reason=f"{reason}; check driver_info redfish_address") from None
        except OSError as exc:
            reason = exc.strerror or str(exc) or "it closed the connection at once"
            reason += "; check driver_info redfish_address, and the network between"
            raise errors.HardwareUnreachable(what=bmc, reason=reason) from None

    def close(self) -> None:
        """Close the connection, if there is one. Safe to repeat."""
        if self._streams is not None:
            self._streams[1].transport.abort()  # nothing is left to send, and no BMC is waited for
            self._streams = None
