"""Boot devices that a BMC was ordered, kept over power cuts and restarts of the rack."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class BootSetting:
    """A boot device as a BMC sets it; ``persistent`` ones stay, others hold for one boot."""

    device: str
    persistent: bool
    efi: bool


class Nvram:
    """Boot settings that survive power cuts and restarts of the rack, in a small JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.once = BootSetting(**stored["once"]) if stored.get("once") else None
        self.persistent = BootSetting(**stored["persistent"]) if stored.get("persistent") else None
        self.last_taken: BootSetting | None = None

    def store(self, setting: BootSetting) -> None:
        if setting.persistent:
            self.once, self.persistent = None, setting
        else:
            self.once = setting
        self._save()

    def take(self) -> BootSetting | None:
        """Return what this boot uses; a setting for one boot is used up by it."""
        self.last_taken = self.once or self.persistent
        if self.once:
            self.once = None
            self._save()
        return self.last_taken

    def _save(self) -> None:
        slots = {"once": self.once, "persistent": self.persistent}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({name: asdict(slot) if slot else None for name, slot in slots.items()}))
        fresh.replace(self._path)
