"""Certificates made on the spot: an authority of our own, and what it signs, good or not."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """Somebody who signs certificates; who trusts it believes them."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> bytes:
        """Return the certificate as clients keep it in a file."""
        return _pem(self.certificate)

    def trusting(self) -> ssl.SSLContext:
        """Return the context of a client that believes this authority alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.pem().decode())
        return context

    def serving(
        self,
        host: str,
        folder: Path,
        *,
        until: datetime | None = None,
        also: Sequence[str] = (),
    ) -> ssl.SSLContext:
        """Return the context of a server with a certificate for `host` and `also` other names.

        Certificate and key are left in the folder, in the file `HOST.pem`.
        """
        names = [x509.DNSName(name) for name in (host, *also)]
        key = ec.generate_private_key(ec.SECP256R1())
        expires_at = until or datetime.now(UTC) + _DAY
        signed = (
            _unsigned(host, key, issuer=self.certificate.subject, until=expires_at)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file = folder / f"{host}.pem"
        file.write_bytes(_pem(signed) + _key_pem(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def new_authority() -> Authority:
    """Return an authority nobody has heard of."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name("Test Authority")
    certificate = (
        _unsigned("Test Authority", key, issuer=subject, until=datetime.now(UTC) + _DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def _unsigned(
    subject: str, key: ec.EllipticCurvePrivateKey, *, issuer: x509.Name, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 2 * _DAY)
        .not_valid_after(until)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
