"""Puts a result where machines or BMCs fetch it: all of it or nothing, also in place of an earlier one."""

import os
import shutil
import tempfile
from pathlib import Path

from ingot.image import manifest
from ingot.image.builds import BuildError


def check_place(place: Path) -> None:
    """Check that a result may be put somewhere.

    :raises BuildError: something else is there, or the directory cannot be written to.
    """
    if place.is_symlink():
        raise BuildError(f"{place} is a link; name a directory")
    if place.exists() and not place.is_dir():
        raise BuildError(f"{place} is a file; name a directory")
    if place.exists() and any(place.iterdir()):
        try:
            manifest.read(place)
        except BuildError as error:
            raise BuildError(
                f"{place} has files that ingot-image did not make, which it would remove: {error}"
            ) from error
    parent = next(folder for folder in place.absolute().parents if folder.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise BuildError(f"{place}: you may not write to {parent}")


def publish(result: Path, place: Path) -> None:
    """Copy a result to a directory, unless it is there; meanwhile machines fetch the earlier one, or the new one.

    :raises BuildError: something else is there. :raises OSError: there is no space.
    """
    check_place(place)
    if manifest.is_same(result, place):
        return
    place = place.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as scratch:
        fresh, earlier = Path(scratch, "fresh"), Path(scratch, "earlier")
        shutil.copytree(result, fresh)
        if place.exists():
            place.rename(earlier)
        fresh.rename(place)
