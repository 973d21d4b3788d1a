"""Reads what an operator adds to a ramdisk, and refuses what cannot be meant."""

import posixpath
import re
import urllib.parse
from argparse import ArgumentTypeError
from pathlib import Path

from cryptography import x509

from ingot.common import boot_files
from ingot.image.order import ExtraFile

AUTHORITIES = "/etc/ironic-python-agent/ca.crt"
SSH_KEYS = "/root/.ssh/authorized_keys"

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(?::[a-z0-9]+)?(?:=[A-Za-z0-9.+~:-]+)?")
_REMOTE, _LOCAL = ("http", "https"), ("file", "copy")
_SSH_KEY = re.compile(r"(?:[^\s#]+ )?(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\n]*)?")
_LARGEST = 512 * 2**20
"""Bytes of a file that is added: all of them are in a machine's memory."""


def parse_package(text: str) -> str:
    """Return the name of a package of Debian, with a version if one is given."""
    if not _PACKAGE.fullmatch(text):
        raise ArgumentTypeError(f"{text!r}: name a package of Debian, such as ledmon or ledmon=0.96-1")
    return text


def parse_file(text: str) -> ExtraFile:
    """Return a file from ``SOURCE:DESTINATION``; it keeps whether it may be executed."""
    source, colon, place = text.rpartition(":")
    plain = posixpath.normpath(place) == place and place.startswith("/") and not place.startswith("//")
    if not colon or not source or not plain or place == "/" or not place.isprintable():
        raise ArgumentTypeError(
            f"{text!r}: SOURCE:DESTINATION, and the destination is a file's absolute path, without .."
        )
    path = Path(source)
    content = _read(path)
    return ExtraFile(place, content, 0o755 if path.stat().st_mode & 0o100 else 0o644)


def read_authorities(text: str) -> tuple[ExtraFile, ...]:
    """Return certificates for the agent to trust, and what has the agent use them.

    The name of the configuration sorts before that of what Ingot gives a machine on virtual media, which goes before.
    """
    content = _read(Path(text))
    try:
        x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise ArgumentTypeError(f"{text}: it has no certificates in PEM: {error}") from error
    if b"PRIVATE KEY" in content:
        raise ArgumentTypeError(f"{text}: it has a private key, which is for no ramdisk; name the certificates alone")
    options = f"[DEFAULT]\ncafile = {AUTHORITIES}\n".encode()
    return ExtraFile(AUTHORITIES, content), ExtraFile("/etc/ironic-python-agent.d/ca.conf", options)


def read_ssh_keys(text: str) -> ExtraFile:
    """Return public keys of those who may log in as root."""
    content = _read(Path(text))
    lines = [line.strip() for line in content.decode(errors="replace").splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys or not all(_SSH_KEY.fullmatch(key) for key in keys):
        raise ArgumentTypeError(f"{text}: each line is to be a public key of OpenSSH, such as id_ed25519.pub has")
    return ExtraFile(SSH_KEYS, "".join(f"{key}\n" for key in keys).encode(), 0o600)


def parse_mirror(text: str) -> str:
    """Return where packages come from: a URL, or a line as in sources.list."""
    parts = urllib.parse.urlsplit(text)
    is_remote = parts.scheme in _REMOTE and parts.netloc
    is_local = parts.scheme in _LOCAL and parts.path.startswith("/")
    is_url = (is_remote or is_local) and " " not in text
    if not text.isprintable() or not (is_url or (text.startswith("deb ") and len(text.split()) >= 4)):
        raise ArgumentTypeError(
            f"{text!r}: a URL of {', '.join(_REMOTE + _LOCAL)}, such as http://deb.debian.org/debian, or a line like "
            "'deb http://deb.debian.org/debian-security bookworm-security main'"
        )
    return text


def parse_arguments(text: str) -> str:
    """Return kernel arguments that GRUB hands on as they are."""
    if not text.isprintable() or not boot_files.suits_grub(text):
        raise ArgumentTypeError(
            f"{text!r}: GRUB hands on neither apostrophes nor backslashes, and quotation marks come in pairs"
        )
    return text


def _read(path: Path) -> bytes:
    try:
        if path.is_file() and path.stat().st_size > _LARGEST:
            raise ArgumentTypeError(f"{path}: it has {path.stat().st_size} bytes; at most {_LARGEST} are added")
        return path.read_bytes()
    except OSError as error:
        raise ArgumentTypeError(f"{path}: {error.strerror}") from error
