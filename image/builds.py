"""Builds that are kept: a result is found again by the hash of everything that it was made from."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

EPOCH = 1_700_000_000
"""The time of every file that was made later, so that the same inputs give the same bytes."""


KEPT_UNUSED_S = 30 * 24 * 3600
"""How long an unused result is kept."""


class BuildError(Exception):
    """Something cannot be built; the message says what failed and how."""


def sources(directory: Path, *patterns: str) -> list[Path]:
    """Return a directory's files that match, in a fixed order."""
    return sorted(path for pattern in patterns for path in directory.glob(pattern) if path.is_file())


def fingerprint(files: Iterable[Path], *words: str) -> str:
    """Return a short hash of the files' names and contents, and of further words."""
    digest = hashlib.sha256()
    for part in [*words, *(f"{path.name}\n{sha256(path)}" for path in files)]:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_once(result: Path, build: Callable[[Path, Path], None], again: bool = False) -> Path:
    """Return the directory ``result``, made by ``build(scratch, fresh)`` unless it is there already.

    A build that fails, or is killed, leaves no result.

    :param build: gets a scratch directory that is gone afterwards, and the empty directory for the result.
    :param again: whether it replaces what is there.
    """
    if result.exists() and not again:
        os.utime(result)
        return result
    result.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=result.parent, prefix="building-") as scratch:
        fresh = Path(scratch, "result")
        fresh.mkdir(mode=0o755)
        build(Path(scratch), fresh)
        if again and result.exists():
            result.rename(Path(scratch, "earlier"))
        if not result.exists():
            fresh.rename(result)
    return result


def forget_unused(directory: Path, *patterns: str) -> None:
    """Remove the results in a directory that have not been used in a long time."""
    for result in (path for pattern in patterns for path in directory.glob(pattern)):
        if time.time() - result.lstat().st_mtime > KEPT_UNUSED_S:
            shutil.rmtree(result)


def run(
    *command: str | Path, content: bytes = b"", env: Mapping[str, str] | None = None, output: Path | None = None
) -> str:
    """Return the standard output of a command.

    :param content: its standard input. :param env: variables besides ours.
    :param output: the file that its standard output goes to instead.
    :raises BuildError: it failed, with the end of what it said; or it is not installed.
    """
    words = [str(word) for word in command]
    environment = {**os.environ, "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(EPOCH), "PATH": search_path(), **(env or {})}
    try:
        with output.open("wb") if output else contextlib.nullcontext(subprocess.PIPE) as stream:
            process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=stream, stderr=subprocess.PIPE, env=environment
            )
            said, complained = _communicate(process, content)
    except FileNotFoundError as error:
        raise BuildError(f"{words[0]} is not installed") from error
    if process.returncode:
        reason = (complained or said or b"").decode(errors="replace").strip()[-2000:]
        raise BuildError(f"{' '.join(words)[:300]} failed with status {process.returncode}:\n{reason}")
    return (said or b"").decode(errors="replace")


def _communicate(process: subprocess.Popen[bytes], content: bytes) -> tuple[bytes | None, bytes]:
    """Return the output of a process. One that is not awaited to its end is stopped, and may tidy up."""
    try:
        return process.communicate(content)
    except BaseException:
        process.terminate()
        process.communicate()
        raise


def search_path() -> str:
    """Return where programs are: also in ``/usr/sbin``, which users without privileges have not in their path."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def settle_times(tree: Path) -> None:
    """Give every file that is newer than ``EPOCH`` that time."""
    for folder, folders, files in os.walk(tree, topdown=False):
        for name in [*folders, *files, ""]:
            path = os.path.join(folder, name)
            if os.lstat(path).st_mtime > EPOCH:
                os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def pack(tree: Path, archive: Path) -> None:
    """Write a tree into an initial ramdisk (cpio, compressed with zstd); the same tree gives the same bytes."""
    settle_times(tree)
    script = (
        'set -o pipefail; cd "$1"; find . -mindepth 1 -printf "%P\\0" | LC_ALL=C sort -z | '
        'cpio --quiet --null --create --format=newc --owner=0:0 --reproducible | zstd -q -T0 -9 -o "$2"'
    )
    run("bash", "-c", script, "pack", tree, archive)
