"""The program that writes an image to a disk that a machine exports by iSCSI; it runs beside a conductor.

    python -m ingot.drivers.images.disk_writer < job

The job is a :class:`Job` as JSON. The image is fetched, or read where it is on this host. It is compared with its
checksum, and looked into, before a byte is written. Then qemu-img, which speaks iSCSI itself, writes it: that needs
neither root nor a device of this host, on which a hostile machine's disk would appear. What is said are lines of JSON:
``{"doing": ..., "percent": ...}`` and, in the end, ``{"written": ...}`` or ``{"failed": ...}``.
"""

import ctypes
import dataclasses
import hashlib
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import requests

from ingot.common import errors, fetching
from ingot.common.networks import Networks
from ingot.drivers.images import contents, formats

_CHUNK = 1024 * 1024
_RESERVE = 512 * _CHUNK
"""Bytes that are left free where images are kept: a host whose disk is full is worse than a deployment that fails."""

_PAUSE = 60.0
"""Seconds at most between two bytes of an image."""

_QEMU_IMG = "qemu-img"


class WriteError(Exception):
    """The image cannot be written; the message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """What is written where.

    :param urls: of the image, one. :param path: where it is on this host, if it is.
    :param scratch: the directory that an image is fetched to.
    :param disk_format: as qemu-img calls it; None: it is found out.
    :param authorization: header with which the image is fetched.
    :param verify: what verifies servers of images. :param denied, allowed: networks they may not, and may, be in.
    :param portal: host and port, as a URL has them. :param target, initiator: names (IQN).
    :param sparse: whether zeros of the image are left out, so that there is on the disk what was there before.
    :param attempts: to connect to the portal, a second apart.
    """

    urls: list[str]
    path: str
    scratch: str
    disk_format: str | None
    algorithm: str
    checksum: str
    authorization: str | None = dataclasses.field(repr=False)
    verify: bool | str
    denied: list[str]
    allowed: list[str]
    portal: str
    target: str
    initiator: str
    username: str
    password: str = dataclasses.field(repr=False)
    sparse: bool
    attempts: int


def main() -> int:
    """Do what the job on the standard input says. Exit code 1 and a reason if that fails."""
    job = Job(**json.load(sys.stdin))
    try:
        path = Path(job.path or f"{job.scratch}/image")
        digest = _read(path, job.algorithm) if job.path else _fetch(job, path)
        if job.checksum and digest != job.checksum:
            raise WriteError(f"the {job.algorithm} of the image is {digest}; instance_info says {job.checksum}")
        disk_format = _check(path, job.disk_format)
        _connect(job)
        _write(path, disk_format, job)
    except (WriteError, errors.IngotError, OSError, MemoryError) as exc:
        _say(failed=str(exc) or type(exc).__name__)
        return 1
    _say(written=job.target)
    return 0


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)  # noqa: T201 - the conductor reads it


class _Progress:
    """Tells now and then how far something is."""

    def __init__(self, doing: str, whole: int) -> None:
        self._doing, self._whole, self._said = doing, whole, -1

    def tell(self, done: float) -> None:
        percent = int(100 * done / self._whole) if self._whole else 0
        if percent > self._said:
            self._said = percent
            _say(doing=self._doing, percent=min(percent, 100))


def _read(path: Path, algorithm: str) -> str:
    """Return the checksum of a file."""
    digest, progress = hashlib.new(algorithm), _Progress("reads the image", path.stat().st_size)
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            digest.update(data)
            progress.tell(file.tell())
    return digest.hexdigest()


def _fetch(job: Job, path: Path) -> str:
    """Fetch the image and return its checksum."""
    denied, allowed = ([ipaddress.ip_network(one) for one in listed] for listed in (job.denied, job.allowed))
    networks = Networks(denied, allowed)
    headers = {"Accept-Encoding": "identity", **({"Authorization": job.authorization} if job.authorization else {})}
    answer = fetching.open_stream(job.urls[0], _PAUSE, networks, job.verify, headers)
    with answer, path.open("wb") as file:
        if answer.status_code != requests.codes.ok:
            raise WriteError(f"the image cannot be fetched: HTTP {answer.status_code}")
        digest, done = hashlib.new(job.algorithm), 0
        progress = _Progress("fetches the image", contents.read_size(answer.status_code, answer.headers) or 0)
        for data in fetching.read_on(answer):
            if done % (64 * _CHUNK) < len(data) and shutil.disk_usage(job.scratch).free < _RESERVE + len(data):
                raise WriteError(f"there is no room for the image at {path.parent.parent} ([iscsi] images_path)")
            digest.update(data)
            file.write(data)
            done += len(data)
            progress.tell(done)
    return digest.hexdigest()


def _check(path: Path, disk_format: str | None) -> str:
    """Return as what qemu-img is to read an image; refuse one that is not what it is called, or that is not safe."""
    if disk_format == "raw":
        return "raw"  # it is written as it is, whatever it may look like
    with contents.open_file(path) as content:
        name = formats.identify(content).written_as
    if disk_format not in (None, name):
        raise WriteError(f"the image is {name}; image_disk_format says {disk_format}")
    return name


def _connect(job: Job) -> None:
    """Wait until the portal accepts connections."""
    host, _, port = job.portal.rpartition(":")
    for attempt in range(job.attempts):
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError as exc:
            reason = exc
        else:
            return
        if attempt + 1 < job.attempts:
            time.sleep(1)
    raise WriteError(f"{job.portal} does not accept iSCSI connections: {reason}")


def _write(path: Path, disk_format: str, job: Job) -> None:
    secret, given = os.pipe()
    os.write(given, job.password.encode())
    os.close(given)
    options = {
        "driver": "raw",
        "file.driver": "iscsi",
        "file.transport": "tcp",
        "file.portal": job.portal,
        "file.target": job.target,
        "file.lun": "1",
        "file.initiator-name": job.initiator,
        "file.user": job.username,
        "file.password-secret": "password",
        "file.timeout": "30",
    }
    command = [
        *(_QEMU_IMG, "convert", "-p", "-n", "-t", "writeback", "-f", disk_format),
        *(("--target-is-zero",) if job.sparse else ()),
        *("--object", f"secret,id=password,file=/dev/fd/{secret}", "--target-image-opts"),
        *(str(path), ",".join(f"{key}={value}" for key, value in options.items())),
    ]
    try:
        process = subprocess.Popen(  # noqa: S603 - of values that were checked, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[secret],
            preexec_fn=_end_with_parent,
        )
    except FileNotFoundError:
        raise WriteError(
            f"{_QEMU_IMG} is not installed on this conductor's host (qemu-utils, qemu-block-extra)"
        ) from None
    said = _follow(process)
    if process.wait() != 0:
        raise WriteError(f"qemu-img failed: {said or f'exit code {process.returncode}'}")


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _follow(process: "subprocess.Popen[bytes]") -> str:
    """Tell qemu-img's progress, which ends in carriage returns; return what else it says, its end."""
    said, rest, progress = "", b"", _Progress("writes the image", 100)
    while process.stdout and (data := os.read(process.stdout.fileno(), 4096)):
        *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in (line.strip().decode(errors="replace") for line in lines):
            if line.startswith("(") and line.endswith("/100%)"):
                progress.tell(float(line[1:-6]))
            elif line:
                said = f"{said} {line}"[-2000:].strip()
        rest = rest[-4096:]
    return f"{said} {rest.decode(errors='replace')}".strip()


if __name__ == "__main__":
    sys.exit(main())
