"""Hides secrets in what is shown or logged: what counts as one is decided here, and nowhere else."""

import functools
import itertools
import logging
import re
from collections.abc import Mapping
from typing import Any

MASK = "******"

_LONGEST = 160  # characters of a value in a message
_LONGEST_SEARCHED = 10_000  # of a text in it

# What mask_dict_password of oslo.utils looks for (tests compare the two), what SNMP has, and what Ingot knows. A key
# with one of them anywhere in its name holds a secret; a hyphen, or nothing, may stand for each underscore.
_PARTS = """
    admin_pass barbicansimplecryptokek cephadminkey cephclientkey cephclusterfsid cephmanilaclientkey
    cephmdskey cephmonkey cephrgwkey configdrive credential designaterndckey encrypted_key fernetkey
    heatauthencryptionkey migrationsshkey new_pass octaviaheartbeatkey pacemakerremoteauthkey passphrase passwd password
    private_key cookie secret sslkey swifthashsuffix sys_pswd token
    auth_key community priv_key
    api_key authorization kg_key
"""
_SECRET_WORDS = "|".join(_PARTS.replace("_", "[_-]?").split())
_NAMES = frozenset(("image_url",))

_SECRET_KEY = re.compile(_SECRET_WORDS)

_HOLDERS = frozenset(("driver_info", "instance_info"))
"""Fields that hold secrets among other things: a message about them as a whole could show those."""

# Texts of strangers are searched, too: no two attempts of these look at the same long part of one.
_URL_PASSWORD = re.compile(
    # user:password@host. A password with one of / ? # in it ends no URL that works, but is one all the same: unless it
    # begins like a port, it ends at some @.
    r"(?P<before>\b[a-z][a-z0-9+.-]{0,20}://[^\s/?#@:\[]*:)"
    r"(?:[^\s/?#]+|(?!\d{0,5}[^\w%.~+=-])\S{1,100})(?=@)",
    re.IGNORECASE,
)
_URL_PARAMETER = re.compile(r"(?P<before>[?&;#](?P<name>[^=&?;#\s\"'<>]{1,100})=)[^&\s\"'<>]+")
# Links to what machines and BMCs fetch: who knows one reads what is there, tokens of agents too.
_TICKET = re.compile(r"(?P<before>/boot/(?:images|media|volumes)/[^/\s]{1,100}/)[^/\s\"'<>]+")
_SIGNATURE = re.compile(r"signature|(?:_|^)sig", re.IGNORECASE)


_OBJECTS = (dict, Mapping)
"""What objects are; nearly all are of the first type, and to ask for the second takes long."""


class Hidden:
    """A value that is never shown, wherever it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return MASK


def is_secret(key: str) -> bool:
    """Return whether a key of driver_info, instance_info, arguments of a step and so on holds a secret."""
    return _is_secret(key) if len(key) <= _LONGEST else _is_secret.__wrapped__(key)  # strangers send keys, too


@functools.lru_cache(maxsize=4096)
def _is_secret(key: str) -> bool:
    lowered = key.lower()
    return lowered in _NAMES or _SECRET_KEY.search(lowered) is not None


def mask(value: Any) -> Any:
    """Return a copy of nested dictionaries and lists with every secret's value replaced by ``******``."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, _OBJECTS):
        hides = {key for key, inner in value.items() if is_secret(str(key)) and inner not in (None, "")}
        return {key: MASK if key in hides else mask(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [mask(inner) for inner in value]
    return MASK if isinstance(value, Hidden) else value


def mask_text(text: str) -> str:
    """Return a text with the secrets of its URLs masked: passwords, tickets, parameters that authorize."""
    if "/boot/" in text:
        text = _TICKET.sub(rf"\g<before>{MASK}", text)
    if "=" not in text and not ("@" in text and "://" in text):  # nearly all texts
        return text
    return _URL_PARAMETER.sub(_mask_parameter, _URL_PASSWORD.sub(rf"\g<before>{MASK}", text))


def _mask_parameter(found: re.Match[str]) -> str:
    hides = is_secret(found["name"]) or _SIGNATURE.search(found["name"])
    return found["before"] + MASK if hides else found[0]


def describe_value(field: str, value: object) -> str:
    """Return a value as a message about it shows it: nothing of secrets, little of what is long.

    :param field: where the value was found; dots between the names of nested fields.
    """
    names = field.split(".")
    if names[-1] in _HOLDERS or any(map(is_secret, names)):
        return MASK
    text = repr(mask(_shorten(value)))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _shorten(value: object) -> object:
    """Return a value without most of what a message leaves out anyway: to mask all of it could take long."""
    if isinstance(value, str) and len(value) > _LONGEST_SEARCHED:
        return f"... {len(value)} characters ..."
    if isinstance(value, dict):
        return {key: _shorten(value[key]) for key in itertools.islice(value, _LONGEST)}
    return [_shorten(one) for one in value[:_LONGEST]] if isinstance(value, list) else value


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
