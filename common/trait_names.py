"""What a trait may be called (used by api and conductor)."""

import re

import os_traits

FORM = "CUSTOM_ and then A-Z, 0-9 and _, or one of the standard traits of os-traits"

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+", re.ASCII)
_STANDARD = frozenset(os_traits.get_traits())


def is_trait(value: str) -> bool:
    """Return whether a trait may have a name."""
    return _CUSTOM.fullmatch(value) is not None or value in _STANDARD
