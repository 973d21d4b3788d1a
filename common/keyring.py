"""The keys that secrets are encrypted with where they are kept: a file, one key a line.

The first key encrypts, all of them decrypt. So keys are rotated by adding one, moving it to the top once all hosts have
it, and removing the old one once nothing is left that it encrypted. The file is read again when it changes.
"""

import base64
import dataclasses
import functools
import hashlib
import logging
import os
import pathlib
import re
import stat
from typing import Any, NamedTuple

import orjson
from cryptography import fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf import hkdf
from oslo_config import cfg

from ingot.common import errors, masking

LOG = logging.getLogger(__name__)

_OPTION = "[secrets] key_file"

MARK = "$sealed$"
"""What every encrypted value begins with."""

_SEALED = re.compile(r"\$sealed\$([0-9a-f]{8})\$([A-Za-z0-9_-]+=*)")
"""An encrypted value: the key's fingerprint, and the token."""

_PLAIN_RELEASES = frozenset(("0.0", "0.1", "0.2"))
"""Releases whose services cannot read what is encrypted."""


class SecretUnreadable(errors.IngotError):
    """A secret is encrypted with a key that is not there."""

    code = 503
    template = (
        "A secret cannot be decrypted: {reason}. Nothing is lost: put the key that it was encrypted with back into "
        f"{_OPTION} of this host, or write the secret anew."
    )


@dataclasses.dataclass(frozen=True)
class Keyring:
    """Encrypts and decrypts values.

    :param path: the file with the keys.
    :param seals: whether new values are encrypted; those that are can be read in any case.
    """

    path: pathlib.Path
    seals: bool

    @classmethod
    def of(cls, conf: cfg.ConfigOpts) -> "Keyring":
        """Return the keyring that the configuration describes.

        While services are pinned to a release that cannot decrypt, nothing is encrypted.
        """
        path = conf.secrets.key_file or pathlib.Path(conf.state_path) / "secrets.key"
        return cls(pathlib.Path(path), conf.secrets.encrypt and conf.pin_release_version not in _PLAIN_RELEASES)

    @property
    def mark(self) -> str:
        """What every value begins with that was encrypted with the first key."""
        return f"{MARK}{self._keys().first}$"

    def seal(self, value: Any) -> Any:
        """Return a JSON value in the form that is kept: its secrets encrypted, unless that is switched off.

        What is encrypted already stays as it is, or, with another key than the first, is encrypted anew if it can be.
        """
        return self._seal(value, is_secret=False)

    def _seal(self, value: Any, is_secret: bool) -> Any:
        if isinstance(value, dict):
            return {key: self._seal(inner, is_secret or masking.is_secret(str(key))) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._seal(inner, is_secret) for inner in value]
        if isinstance(value, Sealed):
            return self._seal_again(value)
        # A text of a client that looks encrypted must not be taken for it when it is read.
        hides = (is_secret and value not in (None, "")) or (isinstance(value, str) and value.startswith(MARK))
        if not hides or not self.seals:
            return value
        keys = self._keys_of_request()
        token = keys.fernet.encrypt(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)).decode()
        return f"{MARK}{keys.first}${token}"

    def _seal_again(self, value: "Sealed") -> Any:
        if self.seals and value.text.startswith(f"{MARK}{self._keys_of_request().first}$"):
            return value.text
        try:
            return self._seal(value.open(), is_secret=True)
        except SecretUnreadable:
            return value.text  # its key may be found again

    def wrap(self, value: Any) -> Any:
        """Return a value as it was kept, with all that is encrypted in it as :class:`Sealed`."""
        if isinstance(value, dict):
            return {key: self.wrap(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.wrap(inner) for inner in value]
        return Sealed(value, self) if isinstance(value, str) and _SEALED.fullmatch(value) else value

    def open(self, text: str) -> Any:
        """Return the value of which :meth:`seal` has made a text.

        :raises SecretUnreadable: its key is not in the file.
        """
        found = _SEALED.fullmatch(text)
        key = found[1] if found else "?"
        try:
            return orjson.loads(self._keys().fernet.decrypt(found[2] if found else ""))
        except fernet.InvalidToken as exc:
            reason = f"{self.path} has no key {key}, or what was encrypted with it has been changed"
            raise SecretUnreadable(reason=reason) from exc
        except errors.ConfigurationError as exc:
            raise SecretUnreadable(reason=exc.message.rstrip(".")) from exc

    def issue(self, value: Any) -> str:
        """Return a token that holds a value, which only services with the same keys can read or make.

        It is encrypted with keys that are made of those for secrets: neither opens what the other has closed.

        :raises ServiceUnavailable: there are no keys that can be used.
        """
        return self._keys_of_request().tokens.encrypt(orjson.dumps(value)).decode()

    def redeem(self, token: str) -> Any:
        """Return the value that a token of :meth:`issue` holds; None if it is none.

        :raises ServiceUnavailable: there are no keys that can be used.
        """
        try:
            return orjson.loads(self._keys_of_request().tokens.decrypt(token.encode()))
        except fernet.InvalidToken:
            return None

    def check(self) -> None:
        """Refuse a file that cannot be used.

        :raises ConfigurationError: it is missing, unreadable, no list of keys, or readable for all users.
        """
        self._keys()

    def exists(self) -> bool:
        """Return whether there is a file, readable or not."""
        return self.path.exists()

    def add_key(self) -> None:
        """Add a new key as the last one; it becomes the only one of a file that is not there yet.

        :raises ConfigurationError: the file cannot be written.
        """
        line = fernet.Fernet.generate_key() + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            target = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(target, "wb") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise self._error(f"The file cannot be written ({exc.strerror}). Name another one.") from exc

    def _keys_of_request(self) -> "_Keys":
        try:
            return self._keys()
        except errors.ConfigurationError as exc:
            LOG.error("Secrets cannot be encrypted: %s", exc.message)  # noqa: TRY400 - the cause is in the text
            raise errors.ServiceUnavailable(what="The key for secrets", reason=errors.SEE_LOG) from exc

    def _keys(self) -> "_Keys":
        try:
            found = self.path.stat()
            keys = _read(self.path, found.st_mtime_ns, found.st_size)
        except FileNotFoundError as exc:
            raise self._error(
                "There is no such file. Passwords of BMCs are encrypted with what is in it: copy it from another host "
                "of this installation, or restore it from a backup. If nothing was ever encrypted, make one with "
                "ingot-dbsync add_key, and copy it to all hosts. With [secrets] encrypt = false no file is needed, and "
                "secrets can be read in the database."
            ) from exc
        except OSError as exc:
            raise self._error(f"The file cannot be read ({exc.strerror}). Its owner must be this service.") from exc
        except ValueError as exc:
            raise self._error(
                f"{exc} is no key: 44 characters that ingot-dbsync add_key has made. Lines with # are comments."
            ) from exc
        if stat.S_IMODE(found.st_mode) & stat.S_IRWXO:
            raise self._error("All users of this host may read or write it: chmod 600 the file.")
        return keys

    def _error(self, allowed: str) -> errors.ConfigurationError:
        return errors.ConfigurationError(option=_OPTION, value=str(self.path), allowed=allowed)


class Sealed(masking.Hidden):
    """An encrypted value, as it was read: never shown, written again as it is, and opened where it is used.

    :ivar text: as it is kept.
    """

    __slots__ = ("_keyring", "text")

    def __init__(self, text: str, keyring: Keyring) -> None:
        self.text = text
        self._keyring = keyring

    def open(self) -> Any:
        """Return the value.

        :raises SecretUnreadable: its key is not there.
        """
        return self._keyring.open(self.text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sealed) and self.text == other.text:
            return True
        if other is None or other in ("", masking.MASK):  # for which code looks; none of them is encrypted
            return False
        try:
            return bool(self.open() == (other.open() if isinstance(other, Sealed) else other))
        except SecretUnreadable:
            return False

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> "Sealed":
        return self

    def __deepcopy__(self, _memory: object) -> "Sealed":
        return self


def open_all(value: Any) -> Any:
    """Return a value with all that is encrypted in it decrypted.

    :raises SecretUnreadable: a key is not there.
    """
    if isinstance(value, dict):
        return {key: open_all(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [open_all(inner) for inner in value]
    return value.open() if isinstance(value, Sealed) else value


class _Keys(NamedTuple):
    """The keys of a file.

    :param first: fingerprint of the one that encrypts.
    :param tokens: keys made of these, for tokens.
    """

    first: str
    fernet: fernet.MultiFernet
    tokens: fernet.MultiFernet


@functools.lru_cache(maxsize=16)
def _read(path: pathlib.Path, _changed_at: int, _size: int) -> _Keys:
    """Return the keys.

    :raises ValueError: a line is none; the message names it by its number, for a part of a key is a secret, too.
    """
    lines = enumerate(map(str.strip, path.read_text("ascii", "replace").splitlines()), 1)
    keys, tokens = {}, {}
    for number, line in lines:
        if line and not line.startswith("#"):
            try:
                keys[line] = fernet.Fernet(line)
            except ValueError:
                raise ValueError(f"Line {number}") from None
            tokens[line] = fernet.Fernet(_derive(base64.urlsafe_b64decode(line)))
    if not keys:
        raise ValueError("An empty file")
    first = hashlib.sha256(base64.urlsafe_b64decode(next(iter(keys)))).hexdigest()[:8]
    return _Keys(first, *(fernet.MultiFernet(list(found.values())) for found in (keys, tokens)))


def _derive(key: bytes) -> bytes:
    """Return the key for tokens that is made of a key for secrets (HKDF, RFC 5869)."""
    made = hkdf.HKDF(hashes.SHA256(), 32, salt=None, info=b"ingot tokens").derive(key)
    return base64.urlsafe_b64encode(made)
