"""Virtual environments for the tests of the gate, and the commands that run in them."""

import configparser
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence

from tests import patience

ROOT = pathlib.Path(__file__).parents[2]
COMMAND_TIMEOUT_S = patience.seconds(60)
BUILD_TIMEOUT_S = patience.seconds(240)

UV = (sys.executable, ROOT / "devstack" / "uv.py")
"""The words before those of uv."""

TIED = ("setpriv", "--pdeathsig", "TERM")
"""The words before those of a server that is to end with the test worker, also when that is killed."""

_CACHE = ROOT / ".gate"
_RELEASES = pathlib.Path(__file__).parent / "releases"
_MARK = ".made-from"

MAY_SAY: Mapping[str, str] = {
    "^Could not load 'oslo_cache.memcache_pool'": "Nova tries each cache before it logs to its file",
    "^Function .* run outlasted interval": "the machine is slow",
    "^The python binding code in neutronclient is deprecated": "Nova asks Neutron with that",
}
"""What a client that succeeds may write to its standard error: pattern of a line, and why it is not Ingot's doing."""


def run(*command: str | pathlib.Path, timeout: float = COMMAND_TIMEOUT_S, **options: object) -> str:
    """Return the standard output of a command that must succeed; its error message becomes the test's.

    :param options: of ``subprocess.run``.
    """
    outcome = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False, **options
    )  # type: ignore[call-overload]
    if outcome.returncode:
        raise AssertionError(f"{command} ended with {outcome.returncode}:\n{outcome.stdout}\n{outcome.stderr}")
    return str(outcome.stdout)


def read_output(outcome: subprocess.CompletedProcess[str], more: str = "") -> str:
    """Return the output of a client that must have succeeded, without any complaint.

    :param more: what to show beside its output if it has not.
    """
    if outcome.returncode:
        ended = f"{outcome.args} ended with {outcome.returncode}"
        raise AssertionError(f"{ended}:\n{outcome.stdout}\n{outcome.stderr}{more}")
    check_silent(outcome.args, outcome.stderr)
    return outcome.stdout


def check_silent(command: object, complaints: str) -> None:
    """Check that what a client that has succeeded wrote to its standard error is nothing, or may be there."""
    lines = [line for line in complaints.splitlines() if not any(re.search(may, line) for may in MAY_SAY)]
    if lines:
        raise AssertionError("\n".join([f"{command} succeeded, but complained:", *lines]))


def make(place: pathlib.Path, *requirements: str | pathlib.Path) -> pathlib.Path:
    """Make an environment with what uv is given to install; remove what was there before. It has no pip.

    :returns: the directory of its programs.
    """
    venv.create(place, clear=True, with_pip=False)
    run(*UV, "pip", "install", "-q", "--python", place, *requirements, timeout=BUILD_TIMEOUT_S)
    return place / "bin"


def _keep(name: str, content: str, build: Callable[[pathlib.Path], object]) -> pathlib.Path:
    """Return a directory of the gate's that stays, and is built again when its content is to be another.

    Of several test workers that want it at once, one builds it. Those of root build here, too: a lock is only read.

    :param content: what it is built from.
    """
    place = _CACHE / name
    _CACHE.mkdir(exist_ok=True)
    lock = os.open(place.with_name(f"{name}.lock"), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = place / _MARK
        if not mark.is_file() or mark.read_text() != content:
            build(place)
            mark.write_text(content)
    finally:
        os.close(lock)
    return place


def cached(name: str, *requirements: str) -> pathlib.Path:
    """Make an environment as :func:`make` does, in the gate's directory, where it stays.

    It is made again when the requirements, a wheel's content or the Python changed, or when making it did not finish.
    """
    content = "\n".join([sys.version, sys.base_prefix, *map(_identify, requirements)])
    return _keep(name, content, lambda place: make(place, *requirements)) / "bin"


def _identify(requirement: str) -> str:
    """Return a requirement, with the hash of its content when it is a file."""
    file = pathlib.Path(requirement.partition("[")[0])
    return f"{requirement} {hashlib.sha256(file.read_bytes()).hexdigest()}" if file.is_file() else requirement


def tracked_files() -> list[pathlib.PurePosixPath]:
    """Return what git tracks and the checkout still has, relative to the root."""
    names = run("git", "-C", ROOT, "ls-files", "-z").split("\0")
    return [pathlib.PurePosixPath(name) for name in names if name and os.path.lexists(ROOT / name)]


def wheel() -> pathlib.Path:
    """Return Ingot's wheel: built from a source distribution, itself made from a copy of all that git tracks.

    It is built once for all tests, until a file changes.
    """
    names = tracked_files()
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode())
        digest.update(_read(ROOT / name))
    (built,) = _keep(f"wheel-{digest.hexdigest()[:12]}", "", lambda place: _build_wheel(place, names)).glob("*.whl")
    return built


def _read(path: pathlib.Path) -> bytes:
    return os.readlink(path).encode() if path.is_symlink() else path.read_bytes()


def _build_wheel(place: pathlib.Path, names: Sequence[pathlib.PurePosixPath]) -> None:
    with tempfile.TemporaryDirectory(prefix="ingot-source-") as source:
        for name in names:
            copy = pathlib.Path(source, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy, follow_symlinks=False)
        run(*UV, "build", "-q", "--python", sys.executable, "--out-dir", place, source, timeout=BUILD_TIMEOUT_S)


def previous_wheel() -> pathlib.Path:
    """Return the wheel of the release before this one."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg")
    major, minor, _patch = map(int, config["metadata"]["version"].split("."))
    (wheel,) = _RELEASES.glob(f"ingot-{major}.{minor - 1}.*.whl")
    return wheel


def previous_release() -> pathlib.Path:
    """Return the programs of the release before this one."""
    wheel = previous_wheel()
    major, minor, _patch = wheel.name.split("-")[1].split(".")
    return cached(f"release-{major}.{minor}", f"{wheel}[mysql,postgresql]")


def go_program(sources: Sequence[pathlib.Path], libraries: pathlib.Path) -> pathlib.Path:
    """Build the program of some Go files in the gate's directory; nothing is downloaded.

    :param sources: the first gives its name.
    :param libraries: a GOPATH, where the packages are that the files import.
    """
    program = _CACHE / "go" / sources[0].stem
    settings = {"GO111MODULE": "off", "GOPATH": str(libraries), "GOCACHE": str(_CACHE / "go" / "cache")}
    run("go", "build", "-o", program, *sources, timeout=BUILD_TIMEOUT_S, env={**os.environ, **settings})
    return program
