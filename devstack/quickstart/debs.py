"""Files out of Debian packages that are not installed: found and checked by apt, unpacked here, never configured.

Nothing of this needs root. When the system's package lists are missing (a fresh container has none) or do not name a
package, private ones are fetched into a directory of ours.
"""

import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class PackageError(Exception):
    """A package cannot be had; the message says which and why."""


class PackageSource:
    """The Debian packages that the sources of this system offer.

    :param directory: where packages and, if need be, package lists are kept.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._options: list[str] = []

    def first_known(self, names: Sequence[str]) -> str:
        """Return the first of the names that is a package here.

        :raises PackageError: none is, even after the lists were fetched anew.
        """
        for refresh in (False, True):
            if refresh:
                self._refresh()
            for name in names:
                if self._fields(name):
                    return name
        raise PackageError(f"no package named {' or '.join(names)} in the sources of this system (/etc/apt)")

    def dependency(self, name: str, prefix: str) -> str:
        """Return the first package that ``name`` depends on whose name begins with ``prefix``.

        :raises PackageError: there is none.
        """
        for line in self._fields(name):
            key, _, value = line.partition(":")
            names = [part.split()[0] for part in value.split(",") if part.strip()]
            for dependency in names if key == "Depends" else ():
                if dependency.startswith(prefix):
                    return dependency
        raise PackageError(f"package {name} does not depend on any {prefix}*")

    def download(self, names: Sequence[str]) -> dict[str, Path]:
        """Return the packages' files by name, fetched now; apt checks them against the signed lists.

        :raises PackageError: with what apt said.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        self._apt("apt-get", "-qq", "download", *names)
        found = {name: next(self._directory.glob(f"{name}_*.deb"), None) for name in names}
        missing = [name for name, path in found.items() if path is None]
        if missing:
            raise PackageError(f"apt-get download said nothing, but did not bring {', '.join(missing)}")
        return {name: path for name, path in found.items() if path}

    def _fields(self, name: str) -> list[str]:
        done = self._run("apt-cache", "show", "--no-all-versions", name)
        return done.stdout.splitlines() if done.returncode == 0 else []

    def _refresh(self) -> None:
        """Fetch package lists of our own, which needs no root and leaves the system's alone."""
        state = self._directory / "apt"
        for part in ("lists/partial", "archives/partial"):
            (state / part).mkdir(parents=True, exist_ok=True)
        self._options = ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}"]
        self._apt("apt-get", "-qq", "update")

    def _apt(self, *command: str) -> None:
        done = self._run(*command)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip()
            raise PackageError(f"{' '.join(command)} failed with status {done.returncode}: {reason}")

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # apt's own account could not write into a directory of ours.
        command = [program, *self._options, "-o", "APT::Sandbox::User=", *arguments]
        try:
            return subprocess.run(
                command, cwd=self._directory.parent if program == "apt-cache" else self._directory,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise PackageError(f"{program} not found: this needs Debian, Ubuntu or a relative of theirs") from error


def unpack(package: Path, target: Path) -> None:
    """Unpack all files of a package below ``target``; nothing in it is run.

    :raises PackageError: the package is damaged.
    """
    done = subprocess.run(["dpkg-deb", "-x", str(package), str(target)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackageError(f"{package.name}: {done.stderr.strip()}")


def read_first(package: Path, prefix: str) -> bytes:
    """Return the content of the first file in a package whose path begins with ``prefix``, such as ``./boot/vmlinuz-``.

    The package is read only that far, which spares unpacking a kernel's modules.

    :raises PackageError: no such file.
    """
    with _archive(package) as archive:
        for member in archive:
            if member.isfile() and member.name.startswith(prefix):
                content = archive.extractfile(member)
                return content.read() if content else b""
    raise PackageError(f"{package.name} has no file {prefix}*")


@contextmanager
def _archive(package: Path) -> Iterator[tarfile.TarFile]:
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                yield archive
        except tarfile.TarError as error:
            raise PackageError(f"{package.name} cannot be read: {error}") from error
        finally:
            process.kill()
