"""Images of containers, built without an engine and without a registry: buildah, on the Debian of the gate."""

import pathlib

import fixtures

from tests import patience
from tests.gate import debian, environments

BUILD_S = patience.seconds(400)
_BASE = "localhost/debian"


class Store(fixtures.Fixture):  # type: ignore[misc]
    """Images and containers of one test class."""

    def _setUp(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._command = ["buildah", "--root", str(place / "images"), "--runroot", str(place / "run")]
        self._command += ["--storage-driver", "overlay"]
        self.addCleanup(environments.run, "rm", "-rf", place)
        self.addCleanup(self.run, "rm", "--all")

    def command(self, *words: str) -> list[str]:
        """Return a command of buildah."""
        return [*self._command, *words]

    def run(self, *words: str | pathlib.Path) -> str:
        """Return what a command of buildah prints."""
        return environments.run(*self._command, *words, timeout=BUILD_S).strip()

    def add_base(self) -> None:
        """Make the image that others begin with, of the Debian of the gate."""
        container = self.run("from", "scratch")
        self.run("add", container, debian.base(), "/")
        self.run("commit", "--quiet", "--rm", container, _BASE)

    def build(self, source: pathlib.Path, file: str, wheels: pathlib.Path, name: str) -> None:
        """Build an image from a directory.

        :param file: the container file there.
        :param wheels: what pip installs from.
        """
        arguments = {"BASE": _BASE, "PIP_OPTIONS": "--no-index --find-links=/wheels"}
        options = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
        options += ["--isolation", "chroot", "--format", "docker", "--volume", f"{wheels}:/wheels:ro"]
        self.run("bud", "--quiet", *options, "--file", source / file, "--tag", name, source)

    def create(self, image: str) -> str:
        """Return the name of a new container of an image."""
        return self.run("from", image)

    def mount(self, container: str) -> pathlib.Path:
        """Return the files of a container."""
        return pathlib.Path(self.run("mount", container))
