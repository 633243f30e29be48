"""A certificate authority for one cluster, made when the cluster is."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=365)
SKEW = datetime.timedelta(minutes=5)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


class Authority:
    """Signs the certificates of one cluster; its own key never leaves memory."""

    def __init__(self, name: str) -> None:
        self._key = new_key()
        self._name = _name(name)
        unsigned = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self._certificate = unsigned.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, name: str, hosts: list[str]) -> tuple[bytes, bytes]:
        """Certificate and key of a server that answers to `hosts`."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(_name(name), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, group: str = "", valid: datetime.timedelta = VALID) -> tuple[bytes, bytes]:
        """Certificate and key that make their bearer the Kubernetes user `user`, for as long as they are valid."""
        return self._issue(_name(user, group), ExtendedKeyUsageOID.CLIENT_AUTH, valid=valid)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
        valid: datetime.timedelta = VALID,
    ) -> tuple[bytes, bytes]:
        key = new_key()
        unsigned = _builder(subject, self._name, key, valid).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            unsigned = unsigned.add_extension(names, critical=False)
        certificate = unsigned.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), private_pem(key)


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: datetime.timedelta = VALID
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + valid) - SKEW)
        .not_valid_after(now + valid)
    )
