"""Certificates of agents and BMCs: self-signed, for the address under which they are reachable."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALIDITY = timedelta(days=90)
# Clocks of machines and services differ.
ALLOWED_SKEW = timedelta(hours=1)


@dataclass(frozen=True)
class Flaw:
    """What is wrong with a certificate: when it ends, counted from now, for which address it is, or its issuer."""

    ends: timedelta = VALIDITY
    address: str | None = None
    known_issuer: bool = True


FLAWS = {
    "expired": Flaw(ends=-ALLOWED_SKEW / 2),
    "wrong-name": Flaw(address="192.0.2.1"),
    "unknown-issuer": Flaw(known_issuer=False),
}


def create(directory: Path, address: str, oldest: str | None) -> tuple[ssl.SSLContext, str]:
    """Make a key and a certificate for ``address``; return a server's TLS context and the certificate (PEM).

    :param oldest: the oldest TLS version the service allows, ``1.2`` or ``1.3`` (None: 1.2).

    Both are new each time, as a ramdisk makes them; the file in ``directory`` is its owner's only.
    """
    path = directory / "agent.pem"
    pem = _write(path, address, ec.SECP384R1(), VALIDITY)
    context = _context(path)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if oldest == "1.3" else ssl.TLSVersion.TLSv1_2
    return context, pem


def keep(path: Path, address: str) -> tuple[ssl.SSLContext, str]:
    """Return a server's TLS context and its certificate, the ones of the file, or new ones if it has none for long.

    A BMC keeps its certificate over restarts; a client that trusts it goes on to.
    """
    if path.exists():
        found = x509.load_pem_x509_certificate(path.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        ends = found.not_valid_after_utc
        if ends > datetime.now(UTC) + ALLOWED_SKEW and ipaddress.ip_address(address) in names.get_values_for_type(
            x509.IPAddress
        ):
            return _context(path), found.public_bytes(serialization.Encoding.PEM).decode()
    pem = _write(path, address, ec.SECP256R1(), VALIDITY)
    return _context(path), pem


def create_flawed(directory: Path, address: str, flaw: str, issuer: Path) -> ssl.SSLContext:
    """Return a server's TLS context with a certificate that no client should take, for one of FLAWS.

    :param issuer: the key and the certificate that clients trust.
    """
    wrong = FLAWS[flaw]
    path = directory / f"redfish-{flaw}.pem"
    _write(path, wrong.address or address, ec.SECP256R1(), wrong.ends, issuer if wrong.known_issuer else None)
    return _context(path)


def _write(path: Path, address: str, curve: ec.EllipticCurve, ends: timedelta, issuer: Path | None = None) -> str:
    """Write a key and a certificate to a file that is its owner's only; return the certificate (PEM).

    :param issuer: the file of the one that signs it; None: it signs itself.
    """
    key = ec.generate_private_key(curve)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address if issuer is None else path.stem)])
    signer, signing_key = _load(issuer) if issuer else (name, key)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - ALLOWED_SKEW)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(signing_key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_text(secret.decode() + pem)
    return pem


def _load(path: Path) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    """Return the name and the key of a file that :func:`_write` wrote."""
    pem = path.read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path}: not a key of an elliptic curve")
    return x509.load_pem_x509_certificate(pem).subject, key


def _context(path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(path)
    return context
