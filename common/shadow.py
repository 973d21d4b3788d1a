"""Password hashes as they stand in /etc/shadow: SHA-512 crypt, which every login program knows (used by the api).

Source: Ulrich Drepper, "Unix crypt using SHA-256 and SHA-512", version 0.6. The standard library has it until Python
3.12 only.
"""

import hashlib
import itertools
import secrets
import string

_DIGITS = "./" + string.digits + string.ascii_uppercase + string.ascii_lowercase
_SALT_LENGTH = 16
_ROUNDS = 5000
"""What the scheme does when the hash does not say another number."""


def hashed(password: str, salt: str | None = None) -> str:
    """The hash of a password, ``$6$salt$digest``.

    :param salt: at most 16 characters of ``./0-9A-Za-z``; new by default.
    """
    salt = salt or "".join(secrets.choice(_DIGITS) for _ in range(_SALT_LENGTH))
    return f"$6${salt}${_printed(_digest(password.encode(), salt.encode()))}"


def _digest(key: bytes, salt: bytes) -> bytes:
    inner = hashlib.sha512(key + salt + key).digest()
    start = hashlib.sha512(key + salt + _filled(inner, len(key)))
    bits = len(key)
    while bits:
        start.update(inner if bits & 1 else key)
        bits >>= 1
    digest = start.digest()
    keys = _filled(hashlib.sha512(key * len(key)).digest(), len(key))
    salts = _filled(hashlib.sha512(salt * (16 + digest[0])).digest(), len(salt))
    for number in range(_ROUNDS):
        odd = number & 1
        parts = (keys if odd else digest, salts if number % 3 else b"", keys if number % 7 else b"")
        digest = hashlib.sha512(b"".join(parts) + (digest if odd else keys)).digest()
    return digest


def _filled(block: bytes, length: int) -> bytes:
    return bytes(itertools.islice(itertools.cycle(block), length))


def _printed(digest: bytes) -> str:
    """Three bytes, each from another third of the digest and turned by one place each time, as four digits."""
    groups = []
    for place in range(21):
        thirds = [digest[place], digest[place + 21], digest[place + 42]]
        turned = thirds[place % 3 :] + thirds[: place % 3]
        groups.append(_base64(int.from_bytes(bytes(turned)), 4))
    return "".join([*groups, _base64(digest[63], 2)])


def _base64(number: int, digits: int) -> str:
    return "".join(_DIGITS[number >> 6 * place & 63] for place in range(digits))
