"""What a trait may be called (used by api and conductor)."""

import re

import os_traits

from ingot.common import errors

FORM = "CUSTOM_ and then A-Z, 0-9 and _, or one of the standard traits of os-traits"

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+", re.ASCII)
_STANDARD = frozenset(os_traits.get_traits())


def is_trait(value: str) -> bool:
    """Return whether a trait may have a name."""
    return _CUSTOM.fullmatch(value) is not None or value in _STANDARD


def parse_trait(field: str, value: str) -> str:
    """Return a trait's name, a standard or a custom one.

    :raises Invalid: none may have it.
    """
    if not is_trait(value):
        raise errors.Invalid(field=field, value=value, allowed=f"A trait is {FORM}; this does not match.")
    return value
