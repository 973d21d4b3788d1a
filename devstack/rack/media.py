"""Virtual media of a machine: what its BMC was given to insert, and how the image comes to the machine.

The image is fetched when the machine starts from it, as a BMC does that streams it, so a URL that is gone by then
shows as a boot that finds nothing.
"""

import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import requests

FETCH_TIMEOUT = 30.0
MAX_IMAGE = 8 * 2**30
_PIECE = 2**20


class MediaError(Exception):
    """An image cannot be had; the text says from where and why."""


@dataclass(frozen=True)
class Medium:
    """An image in a virtual drive; ``kind`` is ``cd`` or ``usb``. The password is sent to the image's server only."""

    image: str
    kind: str = "cd"
    write_protected: bool = True
    username: str | None = None
    password: str | None = None

    def public(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "password"}


class Media:
    """The virtual drives of a machine, by name; they survive power cuts and restarts of the rack."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "media.json"
        stored = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.inserted = {name: Medium(**medium) for name, medium in stored.items()}
        self.on_change: Callable[[], None] = lambda: None

    def insert(self, drive: str, medium: Medium) -> None:
        self.inserted[drive] = medium
        self._save()

    def eject(self, drive: str) -> None:
        self.inserted.pop(drive, None)
        self._save()

    def bootable(self) -> Medium | None:
        """Return the image that a machine starts from; None: no drive has one. A CD comes before a stick."""
        return min(self.inserted.values(), key=lambda medium: medium.kind, default=None)

    def stick(self) -> Medium | None:
        """Return the image in a drive that is none for CDs."""
        return next((medium for medium in self.inserted.values() if medium.kind == "usb"), None)

    def public(self) -> dict[str, Any]:
        return {name: medium.public() for name, medium in self.inserted.items()}

    def _save(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps({name: asdict(medium) for name, medium in self.inserted.items()}))
        fresh.replace(self._path)
        self.on_change()


def fetch(medium: Medium, target: Path, ca_file: str | None) -> None:
    """Write an image to ``target``.

    :raises MediaError: it cannot be fetched, or is larger than a BMC takes.
    """
    login = (medium.username, medium.password or "") if medium.username else None
    try:
        with contextlib.ExitStack() as open_files:
            answer = open_files.enter_context(
                requests.get(medium.image, timeout=FETCH_TIMEOUT, stream=True, auth=login, verify=ca_file or False)
            )
            if answer.status_code != requests.codes.ok:
                raise MediaError(f"{medium.image}: HTTP {answer.status_code}")
            image = open_files.enter_context(target.open("wb"))
            for piece in answer.iter_content(_PIECE):
                image.write(piece)
                if image.tell() > MAX_IMAGE:
                    raise MediaError(f"{medium.image}: more than {MAX_IMAGE} bytes")
    except (requests.RequestException, ValueError) as error:
        raise MediaError(f"{medium.image}: {error}") from error
