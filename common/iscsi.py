"""The iSCSI volume that a machine boots from, as its firmware attaches it (used by api and drivers).

It is described by rows of ``volume_targets`` and ``volume_connectors``. What a target's ``properties`` say are the keys
that block storage services hand out with a connection.
"""

import dataclasses
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any

from ingot.common import errors
from ingot.common.json_types import Json

PORT = 3260
"""The port of a portal that names none."""

IPXE_OPERATORS = frozenset(("||", "&&", ";"))
"""Words that stand between commands of one line of a boot script."""

PROTOCOL = "iscsi"
_INITIATOR = "iqn"
_NAME = re.compile(r"(iqn\.\d{4}-\d{2}\.|eui\.|naa\.)[a-zA-Z0-9._:-]+", re.ASCII)
_HOST = re.compile(r"[a-zA-Z0-9._:-]+", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class BootVolume:
    """What firmware needs to attach a volume.

    :param uri: where the volume is, as RFC 4173 writes it.
    :param initiator: the machine's own iSCSI name.
    :param username: of the CHAP authentication; None: the target needs none.
    """

    uri: str
    initiator: str
    username: str | None
    password: str | None = dataclasses.field(repr=False)


def boot_target(targets: Sequence[Any]) -> Any:
    """Return the row of the target that a machine boots from; None: it boots from its own disks."""
    return next((target for target in targets if target.boot_index == 0), None)


def boot_volume(target: Any, connectors: Sequence[Any]) -> BootVolume:
    """Return how firmware attaches the volume of a target.

    :param target: what :func:`boot_target` found.
    :param connectors: the rows of the node's connectors.
    :raises Invalid: something is missing or cannot be used; the message names it, and does not repeat secrets.
    """
    about = f"volume target {target.uuid}"
    if target.volume_type != PROTOCOL:
        allowed = f"Machines can boot from: {PROTOCOL}."
        raise errors.Invalid(field=f"volume_type of {about}", value=target.volume_type, allowed=allowed)
    initiators = [connector.connector_id for connector in connectors if connector.type == _INITIATOR]
    if not initiators:
        names = f"one of type {_INITIATOR}, with the iSCSI name by which the target knows the machine"
        raise errors.MissingParameter(where="volume connector of the node", names=names)
    properties = target.properties
    _require(("target_iqn", "target_portal"), properties, about)
    host, port = _parse_portal(properties["target_portal"])
    lun, name = _parse_lun(properties.get("target_lun")), _check_name("target_iqn", properties["target_iqn"])
    username, password = _credentials(properties, about)
    # Nothing between host and port: TCP.
    uri = f"iscsi:{host}::{port}:{lun:x}:{name}"
    return BootVolume(uri, _check_name("connector_id", initiators[0]), username, password)


def _require(keys: Sequence[str], properties: Json, about: str) -> None:
    if missing := [key for key in keys if not properties.get(key)]:
        raise errors.MissingParameter(where=f"properties of {about}", names=" and ".join(missing))


def _check_name(key: str, value: object) -> str:
    """Return the iSCSI name of an initiator or a target (RFC 3720)."""
    if not isinstance(value, str) or len(value) > 223 or not _NAME.fullmatch(value):
        allowed = "Expected an iSCSI name, like iqn.2026-01.org.example:volume1."
        raise errors.Invalid(field=key, value=value, allowed=allowed)
    return value


def _parse_portal(value: object) -> tuple[str, int]:
    try:
        parts = urllib.parse.urlsplit(f"//{value}")
        host, port = parts.hostname or "", parts.port or PORT
        is_portal = _HOST.fullmatch(host) is not None and parts.netloc == value and parts.username is None
    except ValueError:
        is_portal = False
    if not is_portal:
        allowed = "Expected HOST or HOST:PORT; IPv6 addresses stand in brackets."
        raise errors.Invalid(field="target_portal", value=value, allowed=allowed)
    return (f"[{host}]" if ":" in host else host), port


def _parse_lun(value: Any) -> int:
    try:
        lun = 0 if value is None else int(value)
    except (TypeError, ValueError):
        lun = -1
    if isinstance(value, bool) or not 0 <= lun <= 255:
        raise errors.Invalid(field="target_lun", value=value, allowed="Expected a number from 0 to 255.")
    return lun


def _credentials(properties: Json, about: str) -> tuple[str | None, str | None]:
    method = properties.get("auth_method")
    if method not in (None, "", "CHAP"):
        raise errors.Invalid(field="auth_method", value=method, allowed="Expected CHAP, or nothing.")
    keys = ("auth_username", "auth_password")
    if not method and not any(properties.get(key) for key in keys):
        return None, None
    _require(keys, properties, about)
    username, password = (_check_word(key, properties[key]) for key in keys)
    return username, password


def _check_word(key: str, value: object) -> str:
    """Return a credential as it may stand in a boot script, where nothing can be quoted."""
    is_word = isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value
    if not isinstance(value, str) or not is_word or "${" in value or value in IPXE_OPERATORS:
        allowed = "iPXE takes one word of printable ASCII characters without ${, and not ||, && or ;."
        raise errors.Invalid(field=key, value="(not shown)", allowed=allowed)
    return value
