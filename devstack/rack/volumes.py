"""Booting from a volume: what ``sanboot`` is given of an iSCSI target.

The rack has no storage network. Its machines check what they are given, as the firmware's initiator would before it
logs in, and are then taken for started; the volume they started from is in their description.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_URI = re.compile(
    r"iscsi:(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:]+):6?:(?P<port>\d*):(?P<lun>[0-9a-fA-F-]*):(?P<target>(iqn|eui|naa)\..+)"
)


class VolumeError(ValueError):
    """The machine cannot use what the script gave it."""


@dataclass(frozen=True)
class Volume:
    """``username`` is of the CHAP login; None: there was none. The password is checked for being there, not kept."""

    uri: str
    target: str
    portal: str
    initiator: str
    username: str | None


class StartVolume(Exception):
    """The script starts from a volume."""

    def __init__(self, volume: Volume) -> None:
        super().__init__(volume.uri)
        self.volume = volume


def volume(uri: str, settings: Mapping[str, str]) -> Volume:
    """Return what a URI of RFC 4173 means, with iPXE's settings for its initiator.

    :raises VolumeError: when the initiator could not log in with that.
    """
    found = _URI.fullmatch(uri)
    if found is None:
        raise VolumeError(f"{uri}: not iscsi:HOST:[6]:PORT:LUN:TARGET")
    initiator = settings.get("initiator-iqn", "")
    if not initiator.startswith("iqn."):
        raise VolumeError(f"{uri}: initiator-iqn is {initiator!r}")
    username, password = settings.get("username"), settings.get("password")
    if bool(username) != bool(password):
        raise VolumeError(f"{uri}: username and password belong together")
    portal = f"{found['host']}:{found['port'] or 3260}"
    return Volume(uri, found["target"], portal, initiator, username or None)
