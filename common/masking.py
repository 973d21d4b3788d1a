"""Hides secrets in what is shown or logged: what counts as one is decided here, and nowhere else."""

import functools
import logging
import re
from collections.abc import Mapping
from typing import Any

MASK = "******"

_LONGEST = 160  # characters of a value in a message

# What mask_dict_password of oslo.utils looks for (tests compare the two), what SNMP has, and what Ingot knows. A key
# with one of them anywhere in its name holds a secret.
_PARTS = """
    adminpass admin_pass barbicansimplecryptokek cephadminkey cephclientkey cephclusterfsid cephmanilaclientkey
    cephmdskey cephmonkey cephrgwkey configdrive credential designaterndckey encrypted_key fernetkey
    heatauthencryptionkey migrationsshkey new_pass octaviaheartbeatkey pacemakerremoteauthkey passphrase passwd password
    private_key rabbitcookie secret sslkey swifthashsuffix sys_pswd token
    auth_key community priv_key
    api_key kg_key
""".split()
_NAMES = frozenset(("image_url",))

_SECRET_KEY = re.compile("|".join(_PARTS))

_HOLDERS = frozenset(("driver_info", "instance_info"))
"""Fields that hold secrets among other things: a message about them as a whole could show those."""

_URL_SECRETS = re.compile(
    # user:password@host. The limits keep the time linear: texts of strangers are searched, too.
    r"(?P<before>\b[a-z][a-z0-9+.-]{0,20}://[^\s/?#@:\"'<>]{0,200}:)[^\s/?#\"'<>]+(?=@)"
    rf"|(?P<name>[?&][^=&\s\"'<>]{{0,40}}(?:{'|'.join(_PARTS)}|signature|_sig)[^=&\s\"'<>]{{0,40}}=)[^&\s\"'<>]+",
    re.IGNORECASE,
)


class Hidden:
    """A value that is never shown, wherever it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return MASK


@functools.lru_cache(maxsize=4096)
def is_secret(key: str) -> bool:
    """Return whether a key of driver_info, instance_info, arguments of a step and so on holds a secret."""
    lowered = key.lower()
    return lowered in _NAMES or _SECRET_KEY.search(lowered) is not None


def mask(value: Any) -> Any:
    """Return a copy of nested dictionaries and lists with every secret's value replaced by ``******``."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, Mapping):
        hides = {key for key, inner in value.items() if is_secret(str(key)) and inner not in (None, "")}
        return {key: MASK if key in hides else mask(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [mask(inner) for inner in value]
    return MASK if isinstance(value, Hidden) else value


def mask_text(text: str) -> str:
    """Return a text with the secrets of its URLs masked: passwords, and parameters that sign or authorize a request."""
    if "=" not in text and not ("@" in text and "://" in text):  # nearly all texts
        return text
    return _URL_SECRETS.sub(lambda found: f"{found['before'] or found['name']}{MASK}", text)


def describe_value(field: str, value: object) -> str:
    """Return a value as a message about it shows it: nothing of secrets, little of what is long.

    :param field: where the value was found; dots between the names of nested fields.
    """
    names = field.split(".")
    if names[-1] in _HOLDERS or any(map(is_secret, names)):
        return MASK
    text = repr(mask(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


class Formatter(logging.Formatter):
    """Masks the secrets of URLs in what another formatter makes of a record, tracebacks and all."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return mask_text(self._inner.format(record))


def mask_logs() -> None:
    """Have all handlers of the root logger mask what they write; called once, when they are set up."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(Formatter(handler.formatter or logging.Formatter()))
