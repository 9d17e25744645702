"""Certificates of one cluster: its authority, the API server, the administrator, and the account key."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 400
"""Kueue's certificate rotation replaces what ends within 90 days; a saved cluster is used for at most 180."""

_CA_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Authority:
    """A certificate authority that lives in memory and in one folder."""

    def __init__(self, name: str, names: Sequence[str] = (), key: Key | None = None) -> None:
        self.key: Key = key or ec.generate_private_key(ec.SECP256R1())
        subject = _name(name, ())
        builder = _builder(subject, subject, self.key, ca=True).add_extension(_CA_USAGE, critical=True)
        if names:
            builder = builder.add_extension(_alternatives(names), critical=False)
        self.certificate = builder.sign(self.key, hashes.SHA256())

    def pem(self) -> str:
        """The authority's certificate."""
        return _certificate_pem(self.certificate)

    def issue(self, name: str, *, groups: Sequence[str] = (), names: Sequence[str] = ()) -> tuple[str, str]:
        """A certificate for client and server use: (certificate, key), both PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, groups), self.certificate.subject, key, ca=False).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        # Python's default verification is strict from 3.13 on: it insists on the identifiers of both keys, and on the
        # key usage of an authority (RFC 5280, 4.2.1.1 to 4.2.1.3).
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        if names:
            builder = builder.add_extension(_alternatives(names), critical=False)
        return _certificate_pem(builder.sign(self.key, hashes.SHA256())), key_pem(key)


def write_cluster_pki(folder: Path) -> None:
    """Writes ca.crt, api.{crt,key}, admin.{crt,key}, sa.{key,pub} into `folder`, keys readable by the owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = Authority("raykueue cluster authority")
    write_secret(folder / "ca.crt", authority.pem())
    for stem, pair in {
        "api": authority.issue("kube-apiserver", names=("127.0.0.1", "localhost")),
        "admin": authority.issue("raykueue-admin", groups=("system:masters",)),
    }.items():
        write_secret(folder / f"{stem}.crt", pair[0])
        write_secret(folder / f"{stem}.key", pair[1])
    account = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    write_secret(folder / "sa.key", key_pem(account))
    public = account.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_secret(folder / "sa.pub", public.decode())


def write_secret(path: Path, text: str) -> None:
    """Writes `text` so that nobody else can ever read it."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def key_pem(key: Key) -> str:
    """The key, unencrypted, in the form that Go's tls.X509KeyPair reads."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


def _name(common: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common), *organizations])


def _builder(subject: x509.Name, issuer: x509.Name, key: Key, *, ca: bool) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _alternatives(names: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(
        [
            x509.IPAddress(ipaddress.ip_address(name)) if name.replace(".", "").isdigit() else x509.DNSName(name)
            for name in names
        ]
    )


def _certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
