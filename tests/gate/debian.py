"""A Debian with systemd in a container of its own, as a server on which an operator installs Ingot."""

import configparser
import contextlib
import fcntl
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence

import fixtures

from tests import patience
from tests.gate import environments

_SUITE = "bookworm"
_PYTHON = "3.11"
_PACKAGES = (
    *("ca-certificates", "cpio", "curl", "dbus", "dnsmasq-base", "grub-efi-amd64-signed", "iproute2", "ipxe"),
    *("logrotate", "mmdebstrap", "nftables", "openssh-client", "openssl", "procps", "python3", "python3-venv"),
    *("shim-signed", "sqlite3", "systemd-sysv", "zstd"),
)
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64", "manylinux_2_36_x86_64")
_EXTRAS = ("mysql", "postgresql")
_BUILDER = "setuptools>=69"
_BOOT_S = patience.seconds(60)
_BUILD_S = patience.seconds(600)

WHEELS = "/mnt/wheels"
"""Where a container finds Ingot's wheel and all that it requires."""


def cache() -> pathlib.Path:
    """Return the directory for what is built once."""
    usual = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ingot"
    place = pathlib.Path(os.environ.get("INGOT_CACHE") or usual)
    place.mkdir(parents=True, exist_ok=True)
    return place


def _build_once(place: pathlib.Path, build: Callable[[pathlib.Path], object]) -> pathlib.Path:
    """Have a file or a directory built, unless it is there already; of several at once one builds it."""
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            unfinished = place.with_name(f"{place.name}.new")
            environments.run("rm", "-rf", unfinished)
            build(unfinished)
            unfinished.rename(place)
    return place


def base() -> pathlib.Path:
    """Return the archive of a small Debian with systemd and Python."""
    digest = hashlib.sha256(" ".join((_SUITE, *_PACKAGES)).encode()).hexdigest()[:12]

    def build(unfinished: pathlib.Path) -> None:
        packages = f"--include={','.join(_PACKAGES)}"
        command = ("mmdebstrap", "--variant=minbase", "--format=tar", packages, _SUITE)
        environments.run(*command, unfinished, timeout=_BUILD_S)

    return _build_once(cache() / f"debian-{_SUITE}-{digest}.tar", build)


def wheels() -> pathlib.Path:
    """Return a directory with all that Ingot requires, as wheels for the Python of the container."""
    required = (environments.ROOT / "setup.cfg").read_bytes()
    digest = hashlib.sha256(required + _PYTHON.encode()).hexdigest()[:12]
    setup = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    setup.read_string(required.decode())
    lists = [setup["options"]["install_requires"], *(setup["options.extras_require"][name] for name in _EXTRAS)]
    names = [line.strip() for text in lists for line in text.splitlines() if line.strip()]
    return download([*names, _BUILDER], digest)


def download(names: Sequence[str], digest: str) -> pathlib.Path:
    """Return a directory with wheels of some requirements and all that they require.

    :param digest: part of its name.
    """

    def build(unfinished: pathlib.Path) -> None:
        options = ["--only-binary=:all:", "--python-version", _PYTHON]
        for platform in _PLATFORMS:
            options += ["--platform", platform]
        pip = (sys.executable, "-m", "pip", "download", "-q", "--dest", unfinished)
        environments.run(*pip, *options, *names, timeout=_BUILD_S)

    return _build_once(cache() / f"wheels-{digest}", build)


def find_in_package(package: str, path: str) -> pathlib.Path:
    """Return a file of a Debian package, which is not installed."""

    def build(unfinished: pathlib.Path) -> None:
        with tempfile.TemporaryDirectory(prefix="ingot-package-") as place:
            environments.run("apt-get", "download", "-q", package, timeout=_BUILD_S, cwd=place)
            (archive,) = pathlib.Path(place).glob("*.deb")
            environments.run("dpkg-deb", "--extract", archive, unfinished)

    return _build_once(cache() / f"package-{package}", build) / path


class Debian(fixtures.Fixture):  # type: ignore[misc]
    """A container with systemd as its first process, a network of its own without any neighbor, and files of its own.

    :param root: its files, which it changes; by default those of a fresh one.
    :ivar root: its files.
    """

    def __init__(self, root: pathlib.Path | None = None) -> None:
        super().__init__()
        self._given = root

    def _setUp(self) -> None:
        self._place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.root = self._given or self._make_root()
        self._boot()

    def _make_root(self) -> pathlib.Path:
        root = self._place / "root"
        root.mkdir()
        self._place.chmod(0o755)
        self.addCleanup(environments.run, "rm", "-rf", root)
        environments.run("tar", "-C", root, "-xf", base())
        (root / "etc" / "apt" / "sources.list").unlink()  # no archive is reached: what pages install is there
        return root

    def offer(self, wheel: pathlib.Path) -> None:
        """Put a wheel of Ingot, and what it requires, into :data:`WHEELS` there, and the wheel into root's home."""
        self.copy([wheel, *wheels().iterdir()], WHEELS)
        environments.run("cp", wheel, self.root / "root")

    def offer_agent(self) -> None:
        """Put the agent for servers where ``ingot-image`` finds it: the gate has built it once, which takes minutes.

        :raises AssertionError: it is not built.
        """
        built = max((cache() / "agent-images").glob("server-*"), key=lambda path: path.stat().st_mtime, default=None)
        assert built is not None, "no agent for servers is built: devstack/machine-room.sh --prepare"
        self.copy([built], "/root/.cache/ingot/agent-images")

    def _boot(self) -> None:
        name = f"ingot-{os.getpid()}-{id(self) % 100_000}"
        command = [
            *_in_cgroup(self.useFixture(_Cgroup(name)).places),
            "systemd-nspawn",
            "--quiet",
            f"--directory={self.root}",
            f"--machine={name}",
            "--private-network",
        ]
        command += ["--register=no", "--keep-unit", "--console=pipe", "--boot"]
        console = self._place / "console.log"
        log = console.open("wb")
        self.addCleanup(log.close)
        self._container = subprocess.Popen(
            [*command, "systemd.mask=getty.target", "systemd.mask=console-getty.service"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self.addCleanup(self._stop)
        until = time.monotonic() + _BOOT_S
        while self.ask("systemctl", "is-system-running").strip() not in ("running", "degraded"):
            if time.monotonic() > until or self._container.poll() is not None:
                raise AssertionError(f"the container does not boot:\n{console.read_text(errors='replace')[-3000:]}")
            time.sleep(0.2)

    def _stop(self) -> None:
        self._container.terminate()  # an orderly power off
        try:
            self._container.wait(patience.seconds(30))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(AssertionError, ProcessLookupError):  # with it all of the container ends
                os.kill(int(self._first_process()), signal.SIGKILL)
            self._container.kill()
            self._container.wait()

    def enter(self) -> list[str]:
        """Return the words before a command that have it run in the container, as root.

        :raises AssertionError: it has no process.
        """
        return ["nsenter", "--target", self._first_process(), "--all", "--", "env", "--chdir=/root", "-i", *_VARIABLES]

    def enter_network(self) -> list[str]:
        """Return the words before a command of this computer that have it run in the container's network.

        :raises AssertionError: it has no process.
        """
        return ["nsenter", "--target", self._first_process(), "--net", "--"]

    def _first_process(self) -> str:
        with contextlib.suppress(OSError):
            children = pathlib.Path(f"/proc/{self._container.pid}/task/{self._container.pid}/children").read_text()
            if pids := children.split():
                return pids[-1]
        raise AssertionError("the container does not run")

    def ask(self, *command: str | pathlib.Path) -> str:
        """Return what a command prints in the container, whether or not it succeeds."""
        try:
            words = [*self.enter(), *map(str, command)]
        except AssertionError:
            return ""
        return subprocess.run(words, capture_output=True, text=True, timeout=_BOOT_S, check=False).stdout

    def run(self, *command: str | pathlib.Path, timeout: float = _BOOT_S) -> str:
        """Return the standard output of a command in the container that must succeed."""
        try:
            return environments.run(*self.enter(), *command, timeout=timeout)
        except AssertionError as exc:
            log = self.ask("journalctl", "--no-pager", "--lines=60", "--output=cat")
            raise AssertionError(f"{exc}\n{log}") from exc

    def copy(self, files: Iterable[pathlib.Path], directory: str) -> None:
        """Copy files or directories of this computer into a directory of the container."""
        place = self.root / directory.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        environments.run("cp", "--recursive", "--dereference", *files, place)

    def write(self, path: str, content: str, mode: int = 0o644) -> None:
        """Write a file in the container."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
        place.chmod(mode)

    def read(self, path: str) -> str:
        """Return the text of a file of the container."""
        return (self.root / path.lstrip("/")).read_text()


class _Cgroup(fixtures.Fixture):  # type: ignore[misc]
    """A place for the processes of one container, in each hierarchy that systemd uses.

    :ivar places: the files that a process writes itself into.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def _setUp(self) -> None:
        folders = [folder / self._name for folder in _CGROUPS if (folder / "cgroup.procs").exists()]
        for folder in folders:
            folder.mkdir()
            self.addCleanup(_remove_cgroup, folder)
        self.places = [folder / "cgroup.procs" for folder in folders]


def _remove_cgroup(folder: pathlib.Path) -> None:
    """Remove a place and those below it; the kernel may still count processes that have just ended."""
    until = time.monotonic() + patience.seconds(10)
    for place in [*sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True), folder]:
        while True:
            try:
                place.rmdir()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)


def _in_cgroup(places: list[pathlib.Path]) -> list[str]:
    """Return the words before a command that have it run in a place."""
    enter = " && ".join(f"echo $$ > {place}" for place in places)
    return ["sh", "-c", f'{enter} && exec "$@"', "sh"]


_CGROUPS = tuple(pathlib.Path("/sys/fs/cgroup", name) for name in ("", "systemd", "unified"))
_VARIABLES = ("HOME=/root", "LC_ALL=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
