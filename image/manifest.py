"""The manifest of a result: what is in it, from what and when it was made; and the sums by which it is verified."""

import datetime
import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ingot.image.builds import BuildError, sha256

MANIFEST, SUMS = "manifest.json", "SHA256SUMS"

_FORMAT = 1


def write(directory: Path, facts: Mapping[str, object]) -> None:
    """Write manifest and sums of all files of a directory.

    :param facts: of the manifest, beside the files and the time.
    """
    files = {name: {"size": (directory / name).stat().st_size, "sha256": sha256(directory / name)} for name in
             _list_files(directory)}  # fmt: skip
    manifest = {
        "format": _FORMAT,
        "built_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "ingot": importlib.metadata.version("ingot"),
        **facts,
        "files": files,
    }
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    lines = [f"{sha256(directory / name)}  {name}\n" for name in sorted([*files, MANIFEST])]
    (directory / SUMS).write_text("".join(lines))


def read(directory: Path) -> dict[str, Any]:
    """Return the manifest of a result.

    :raises BuildError: it cannot be read, or is of another kind.
    """
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BuildError(f"{path} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT or not _has_files(manifest):
        raise BuildError(f"{path} is no manifest of ingot-image with format {_FORMAT}")
    return manifest


def _has_files(manifest: dict[str, Any]) -> bool:
    files = manifest.get("files")
    return isinstance(files, dict) and all(
        isinstance(facts, dict) and isinstance(facts.get("size"), int) and isinstance(facts.get("sha256"), str)
        for facts in files.values()
    )


def list_faults(directory: Path) -> list[str]:
    """Return what is wrong with a result: files that are missing, that differ, or that the manifest does not know.

    :raises BuildError: its manifest cannot be read.
    """
    known = read(directory)["files"]
    faults = [fault for name, facts in sorted(known.items()) for fault in _compare(directory / name, name, facts)]
    extra = sorted({*_list_files(directory)} - {*known, SUMS})
    return faults + [f"{name}: the manifest does not know it" for name in extra]


def is_same(result: Path, place: Path) -> bool:
    """Return whether a directory has a result, with all of its files as they should be."""
    sums = place / SUMS
    return sums.exists() and sums.read_bytes() == (result / SUMS).read_bytes() and not list_faults(place)


def _compare(path: Path, name: str, facts: dict[str, Any]) -> Iterable[str]:
    if not path.is_file():
        yield f"{name}: it is missing"
    elif (size := path.stat().st_size) != facts["size"]:
        yield f"{name}: it has {size} bytes, and should have {facts['size']}"
    elif (found := sha256(path)) != facts["sha256"]:
        yield f"{name}: its SHA-256 is {found}, and should be {facts['sha256']}"


def _list_files(directory: Path) -> list[str]:
    paths = (path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST)
    return sorted(str(path.relative_to(directory)) for path in paths)
