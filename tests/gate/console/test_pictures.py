"""The pictures of the guides are made from the console as it is now, and kept beside those of all screens."""

import pathlib
import shutil

import testtools

from tests.gate.console import pictures
from tests.gate.console.browser import SCREENSHOTS

_SOURCE = pictures.FOLDER.parent


class PicturesTest(testtools.TestCase):
    def test_those_of_the_guides_can_be_made_anew(self) -> None:
        made = SCREENSHOTS / "guides"
        shutil.rmtree(made, ignore_errors=True)
        pictures.make(made)
        self.assertEqual(_list(pictures.FOLDER), _list(made))

    def test_guides_show_all_of_them(self) -> None:
        text = "".join(page.read_text() for page in _SOURCE.rglob("*.rst"))
        self.assertEqual([], [name for name in _list(pictures.FOLDER) if f"images/{name}" not in text])


def _list(folder: pathlib.Path) -> list[str]:
    return sorted(place.name for place in folder.glob("console-*.png"))
