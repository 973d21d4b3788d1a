"""Images in registries of containers, ``oci://host/name:tag``: which one is the node's, and where it can be fetched.

An index lists manifests by architecture (``platform``) and by type of disk (annotation ``disktype``); the manifest of a
disk image has one layer, the image, whose digest is its checksum. All comes from a server that a user names: what is
read is bounded, and a manifest must have the digest by which it was asked for.
"""

import base64
import binascii
import dataclasses
import hashlib
import json
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from ingot.common import errors, fetching

SCHEME = "oci://"

_PORT = r"(?::\d{1,5})?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"oci://(?P<host>(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\]){_PORT})"
    rf"/(?P<name>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})))?",
    re.ASCII,
)
_DIGEST = re.compile(r"(sha256):([0-9a-f]{64})|(sha512):([0-9a-f]{128})")
_DOCKER = {"docker.io": "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}
_DOCKER_NAMES = ("registry-1.docker.io", *_DOCKER, "auth.docker.io", "https://index.docker.io/v1/")

_MOST = 4 * 1024 * 1024
"""Bytes of a manifest, as much as registries take."""

_MOST_REDIRECTS = 5

_MOST_REASONS = 10
_LONGEST = 40
"""Reasons that a message has why nothing in an index fits, and characters that each repeats of it."""

_EMPTY = "application/vnd.oci.empty.v1+json"
_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)

_DISK_TYPES: Mapping[str, str] = {
    "raw": "raw",
    "applehv": "raw",
    "qcow2": "qcow2",
    "qemu": "qcow2",
    "vmdk": "vmdk",
    "vdi": "vdi",
    "vhdx": "vhdx",
    "hyperv": "vhdx",
}
"""Values of the annotation ``disktype`` and the format that each stands for, best first: what needs no conversion is
written while it is fetched."""

_RANKS = {name: rank for rank, name in enumerate(_DISK_TYPES)}

_ARCHITECTURES = (("x86_64", "amd64"), ("aarch64", "arm64"))
_PACKED = re.compile(r"[.+/](zstd|gzip|xz|bzip2)$")

Json = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """What an ``oci://`` address names: a registry, a repository, and a tag or digest there."""

    host: str
    name: str
    version: str

    @property
    def hostname(self) -> str:
        """The host without a port."""
        return urllib.parse.urlsplit(f"//{self.host}").hostname or ""


@dataclasses.dataclass(frozen=True, slots=True)
class Blob:
    """A disk image that can be fetched.

    :ivar algorithm: sha256 or sha512; ``checksum`` is hexadecimal.
    :ivar disk_format: as the registry has it; None: it does not say.
    :ivar authorization: header with which it is fetched, None: none is needed.
    """

    url: str
    algorithm: str
    checksum: str
    size: int | None
    disk_format: str | None
    authorization: str | None = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """How a registry is asked.

    :ivar secret: user's, as :func:`read_secret` returns it. ``shared`` is the operator's.
    :ivar verify: what verifies it.
    :ivar falls_back: whether http is tried where https does not work.
    :ivar trusted: hosts and domains that get the registry's token, too.
    """

    secret: tuple[str, str] | None = dataclasses.field(repr=False)
    shared: tuple[str, str] | None = dataclasses.field(repr=False)
    verify: bool | str
    falls_back: bool
    trusted: Sequence[str]


def parse(source: str) -> Reference | None:
    """Return what an address names; None: it is not well-formed."""
    found = _REFERENCE.fullmatch(source)
    if found is None:
        return None
    host = _DOCKER.get(found["host"].lower(), found["host"])
    reference = Reference(host, found["name"], found["digest"] or found["tag"] or "latest")
    try:
        return reference if reference.hostname else None
    except ValueError:  # what is in brackets is no address
        return None


def read_secret(text: str) -> tuple[str, str]:
    """Return user and password of a secret: ``user:password``, the same in base64, or a token, which has no user."""
    if ":" not in text:
        try:
            decoded = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            decoded = ""
        if ":" not in decoded or not decoded.isprintable():
            return "", text
        text = decoded
    user, _, password = text.partition(":")
    return user, password


def find_shared_secret(path: str | None, host: str) -> tuple[str, str] | None:
    """Return the operator's secret for a registry, None if there is none.

    The registry's own name decides, not what it says of who gives it tokens: anyone can run a registry.

    :raises ImageError: the file cannot be used.
    """
    if not path:
        return None
    names = (host, f"https://{host}", *(_DOCKER_NAMES if host in _DOCKER_NAMES else ()))
    try:
        with open(path, "rb") as file:
            known = json.load(file)["auths"]
        found = next((known[name]["auth"] for name in names if name in known and known[name].get("auth")), None)
        return None if found is None else read_secret(str(found))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as exc:
        raise errors.ImageError(f"[oci] authentication_config {path} cannot be used: {type(exc).__name__}") from exc


class Registry:
    """Asks a registry; to be used inside of ``fetching.limit``."""

    def __init__(self, reference: Reference, access: Access) -> None:
        self._reference = reference
        self._access = access
        self._scheme = "https"
        self._session = fetching.open_session()
        self.authorization: str | None = None
        """Header for the registry, once it has asked for one."""

    def find_blob(self, architecture: str | None, requested: str | None) -> Blob:
        """Return the disk image for a machine.

        :param architecture: of the machine, as Linux calls it; None: any.
        :param requested: format that the user asks for; None: the best there is.
        :raises ImageError: the registry has none, or does not give it.
        :raises FetchError: it cannot be reached.
        """
        document = self._read_manifest(self._reference.version)
        if not isinstance(document.get("manifests"), list):
            return self._find_layer(document, read_disk_type(document))
        refused: dict[str, None] = {}  # each reason once
        listed = (one for one in document["manifests"] if isinstance(one, Mapping))
        for one in sorted(listed, key=_rank):
            try:
                _check_fits(one, architecture, requested)
                return self._find_layer(self._read_manifest(_check_digest(one.get("digest"))), read_disk_type(one))
            except _Unfit as exc:
                refused[exc.message] = None
        raise errors.ImageError(f"the index has no disk image for this machine: {_join(list(refused))}")

    def _find_layer(self, manifest: Json, disk_format: str | None) -> Blob:
        """Return the only layer of a manifest.

        :raises _Unfit: it is no disk image that an agent can write.
        """
        layers, config = manifest.get("layers"), manifest.get("config")
        is_artifact = manifest.get("artifactType") or (
            isinstance(config, Mapping) and config.get("mediaType") == _EMPTY
        )
        if disk_format is None and not is_artifact:
            raise _Unfit(
                "it is a container and no artifact with a disk image (bootable containers need the deploy interface "
                "bootc, which Ingot has not)"
            )
        if not isinstance(layers, list) or len(layers) != 1 or not isinstance(layers[0], Mapping):
            raise _Unfit("it has not exactly one layer, as a disk image has")
        layer = layers[0]
        if packed := _PACKED.search(str(layer.get("mediaType"))):
            raise _Unfit(f"it is compressed ({packed[1]}), and agents write what they fetch")
        digest, size = _check_digest(layer.get("digest")), layer.get("size")
        algorithm, _, checksum = digest.partition(":")
        url, size = self._url("blobs", digest), size if isinstance(size, int) and size >= 0 else None
        return Blob(url, algorithm, checksum, size, disk_format, self.authorization)

    def _url(self, kind: str, ident: str) -> str:
        return f"{self._scheme}://{self._reference.host}/v2/{self._reference.name}/{kind}/{ident}"

    # Asking

    def _read_manifest(self, version: str) -> Json:
        answer = self._ask("manifests", version)
        algorithm, _, expected = version.partition(":")
        if expected and hashlib.new(algorithm, answer.content).hexdigest() != expected:
            raise errors.ImageError(f"the registry's manifest has not the digest {version}")
        try:
            document = json.loads(answer.content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise errors.ImageError(f"the registry's answer is no manifest of {version}")
        return document

    def _ask(self, kind: str, ident: str) -> fetching.Answer:
        """Return what the registry has, with a token if it asks for one."""
        answer = self._send(kind, ident)
        if answer.status == requests.codes.unauthorized:
            self.authorization = self._log_in(answer.headers.get("WWW-Authenticate", ""))
            answer = self._send(kind, ident)
        if answer.status != requests.codes.ok:
            raise errors.ImageError(f"the registry {self._reference.host} {_explain(answer.status)}")
        return answer

    def _send(self, kind: str, ident: str) -> fetching.Answer:
        headers = {"Accept": _ACCEPT}
        try:
            return self._follow(self._url(kind, ident), headers)
        except requests.exceptions.SSLError:
            if not self._access.falls_back or self._scheme == "http":
                raise
        self._scheme = "http"
        return self._follow(self._url(kind, ident), headers)

    def _follow(self, url: str, headers: Mapping[str, str]) -> fetching.Answer:
        for _ in range(_MOST_REDIRECTS + 1):
            fetching.check_scheme(url)
            own = {"Authorization": self.authorization} if self.authorization and self._is_trusted(url) else {}
            answer = self._get(url, {**headers, **own})
            if not fetching.leads_on(answer.status, answer.headers):
                return answer
            url = urllib.parse.urljoin(url, answer.headers["Location"])
        raise errors.ImageError("the registry leads from one address to the next, and to nothing")

    def _get(self, url: str, headers: Mapping[str, str]) -> fetching.Answer:
        return fetching.request(self._session, "GET", url, _MOST, headers=dict(headers), verify=self._access.verify)

    def _is_trusted(self, url: str) -> bool:
        """Return whether a token for the registry may be sent to an address."""
        place = urllib.parse.urlsplit(url)
        if (place.scheme, place.netloc) == (self._scheme, self._reference.host):
            return True
        host = place.hostname or ""
        return place.scheme == "https" and any(host == one or host.endswith(f".{one}") for one in self._access.trusted)

    # Logging in

    def _log_in(self, challenge: str) -> str:
        """Return the header that a registry asks for.

        :raises ImageError: nothing is known that it would take.
        """
        schemes = {scheme.lower(): rest for scheme, rest in _CHALLENGE.findall(challenge)}
        if "bearer" in schemes:
            return f"Bearer {self._fetch_token(dict(_PARAMETER.findall(schemes['bearer'])))}"
        if "basic" in schemes:
            # The machine is given it, so it must be the user's own.
            if self._access.secret is None or not all(self._access.secret):
                raise errors.ImageError(
                    f"the registry {self._reference.host} wants a user and a password: instance_info.image_pull_secret "
                    "has to be user:password"
                )
            return _build_basic(self._access.secret)
        raise errors.ImageError(f"the registry {self._reference.host} asks for a login that Ingot does not know")

    def _fetch_token(self, challenge: Mapping[str, str]) -> str:
        realm = challenge.get("realm", "")
        if urllib.parse.urlsplit(realm).scheme != "https" and self._scheme == "https":
            raise errors.ImageError("the registry wants secrets sent without TLS")
        fetching.check_scheme(realm)
        asked = {"service": challenge.get("service", ""), "scope": f"repository:{self._reference.name}:pull"}
        secret = self._access.secret or self._access.shared
        url = f"{realm}{'&' if '?' in realm else '?'}{urllib.parse.urlencode({k: v for k, v in asked.items() if v})}"
        answer = self._get(url, {"Authorization": _build_basic(secret)} if secret else {})
        if answer.status != requests.codes.ok:
            raise errors.ImageError(f"the registry {self._reference.host} {_explain(answer.status)}, for a token")
        try:
            document = json.loads(answer.content)
            token = document.get("token") or document.get("access_token")
        except (ValueError, RecursionError, AttributeError):
            token = None
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise errors.ImageError(f"the registry {self._reference.host} gives no token that could be used")
        return token


class _Unfit(errors.ImageError):
    """A manifest is not that of a disk image that can be written."""


_CHALLENGE = re.compile(r'\b(bearer|basic)\b((?:[ ,]*\w{1,20}="[^"]{0,2000}")*)', re.IGNORECASE)
_PARAMETER = re.compile(r'(\w{1,20})="([^"]{0,2000})"')
_TOKEN = re.compile(r"[!-~]{1,16384}")


def _build_basic(secret: tuple[str, str]) -> str:
    return f"Basic {base64.b64encode(':'.join(secret).encode()).decode()}"


def _explain(status: int) -> str:
    if status in (requests.codes.unauthorized, requests.codes.forbidden):
        return "refuses it: check instance_info.image_pull_secret, or [oci] authentication_config"
    if status == requests.codes.not_found:
        return "has no such image"
    if status == requests.codes.too_many_requests:
        return "has answered too many requests lately (HTTP 429)"
    return f"answers HTTP {status}"


def _check_digest(value: object) -> str:
    """
    :raises ImageError: it is no digest of a kind that agents know.
    """
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise errors.ImageError("the registry's manifest has no digest of SHA-256 or SHA-512")
    return value


def read_disk_type(document: Json) -> str | None:
    """Return the format that a manifest's, or its descriptor's, annotation stands for."""
    named = _read_nested(document, "annotations", "disktype")
    return _DISK_TYPES.get(named) if isinstance(named, str) else None


def _read_nested(document: Json, place: str, key: str) -> object:
    inner = document.get(place)
    return inner.get(key) if isinstance(inner, Mapping) else None


def _rank(one: Json) -> int:
    """Return the place of a manifest of an index among those that may be the machine's: the best one is first."""
    return _RANKS.get(str(_read_nested(one, "annotations", "disktype")), len(_RANKS))


def _check_fits(one: Json, architecture: str | None, requested: str | None) -> None:
    """Check what an index says of one of its manifests; what it does not say may fit.

    :raises _Unfit: it is for other machines, or is no disk image of the requested format.
    """
    found, named = _read_nested(one, "platform", "architecture"), _read_nested(one, "annotations", "disktype")
    same = next((names for names in _ARCHITECTURES if architecture in names), (architecture,))
    if architecture and found and found not in same:
        raise _Unfit(f"one is for {str(found)[:_LONGEST]}")
    disk_format = read_disk_type(one)
    if named and disk_format is None:
        raise _Unfit(f"one is of disktype {str(named)[:_LONGEST]}")
    if disk_format and requested and not _fits(disk_format, requested):
        raise _Unfit(f"one is {disk_format}")


def _join(reasons: Sequence[str]) -> str:
    left = len(reasons) - _MOST_REASONS
    more = [f"and {left} other reasons"] if left > 0 else []
    return "; ".join([*reasons[:_MOST_REASONS], *more]) or "it is empty"


def _fits(disk_format: str, requested: str) -> bool:
    return disk_format == requested or (disk_format == "raw" and requested in ("gpt", "iso"))
