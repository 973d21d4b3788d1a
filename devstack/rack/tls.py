"""An agent's own certificate: self-signed, for the address under which the agent says it is reachable."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALIDITY = timedelta(days=90)
# Clocks of machines and services differ.
ALLOWED_SKEW = timedelta(hours=1)


def create(directory: Path, address: str, oldest: str | None) -> tuple[ssl.SSLContext, str]:
    """Make a key and a certificate for ``address``; return a server's TLS context and the certificate (PEM).

    :param oldest: the oldest TLS version the service allows, ``1.2`` or ``1.3`` (None: 1.2).

    Both are new each time, as a ramdisk makes them; the file in ``directory`` is its owner's only.
    """
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - ALLOWED_SKEW)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = directory / "agent.pem"
    path.touch(mode=0o600)
    path.write_text(secret.decode() + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if oldest == "1.3" else ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(path)
    return context, pem
