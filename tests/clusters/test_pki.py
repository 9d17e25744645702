from __future__ import annotations

import datetime
import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from raykueue.clusters.pki import Authority, write_cluster_pki, write_secret


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster") / "pki"
    write_cluster_pki(folder)
    return folder


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> dict[str, object]:
    """Over a real connection; returns the certificate that the server saw."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10)
        ours.settimeout(10)

        def serve() -> None:
            try:
                with server.wrap_socket(theirs, server_side=True) as wrapped:
                    seen.update(wrapped.getpeercert() or {})
                    wrapped.sendall(b"hello")
            except (ssl.SSLError, OSError):
                theirs.close()

        seen: dict[str, object] = {}
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with client.wrap_socket(ours, server_hostname=name) as wrapped:
                assert wrapped.recv(5) == b"hello"
        finally:
            ours.close()
            thread.join()
        return seen


def server_context(keys: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "api.crt", keys / "api.key")
    context.load_verify_locations(keys / "ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_context(keys: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # what create_default_context does from Python 3.13 on
    return context


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_api_server_is_trusted_on_loopback_by_the_strictest_rules(keys: Path, name: str) -> None:
    assert shake_hands(server_context(keys), client_context(keys), name) == {}


def test_the_api_server_is_trusted_under_no_other_name(keys: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"(?i)hostname mismatch"):
        shake_hands(server_context(keys), client_context(keys), "kubernetes.default.svc")


def test_another_authority_is_not_trusted(keys: Path, tmp_path: Path) -> None:
    write_cluster_pki(tmp_path / "pki")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server_context(keys), client_context(tmp_path / "pki"), "127.0.0.1")


def test_the_administrator_is_of_the_group_that_may_do_everything(keys: Path) -> None:
    client = client_context(keys)
    client.load_cert_chain(keys / "admin.crt", keys / "admin.key")
    server = server_context(keys)
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags |= ssl.VERIFY_X509_STRICT
    seen = shake_hands(server, client, "127.0.0.1")
    assert seen["subject"] == ((("commonName", "raykueue-admin"),), (("organizationName", "system:masters"),))


def test_only_their_user_can_read_the_keys(keys: Path) -> None:
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in keys.iterdir()}
    assert modes == dict.fromkeys(("ca.crt", "api.crt", "api.key", "admin.crt", "admin.key", "sa.key", "sa.pub"), 0o600)


def test_the_public_half_of_the_account_key_belongs_to_the_private_one(keys: Path) -> None:
    private = serialization.load_pem_private_key((keys / "sa.key").read_bytes(), None)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert private.public_key() == serialization.load_pem_public_key((keys / "sa.pub").read_bytes())


def test_certificates_outlive_the_use_of_a_saved_state_by_what_kueue_wants(keys: Path) -> None:
    for name in ("ca.crt", "api.crt", "admin.crt"):
        certificate = x509.load_pem_x509_certificate((keys / name).read_bytes())
        left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        assert left > datetime.timedelta(days=180 + 90)
        assert certificate.not_valid_before_utc < datetime.datetime.now(datetime.UTC)


def test_names_that_are_no_addresses_are_dns_names() -> None:
    certificate, _ = Authority("a").issue("b", names=("10.0.0.1", "a.b.svc", "1.example"))
    alternatives = x509.load_pem_x509_certificate(certificate.encode()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert alternatives.value.get_values_for_type(x509.DNSName) == ["a.b.svc", "1.example"]
    assert [str(one) for one in alternatives.value.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]


def test_an_issued_certificate_is_no_authority() -> None:
    authority = Authority("a")
    certificate = x509.load_pem_x509_certificate(authority.issue("b")[0].encode())
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "a"
    certificate.verify_directly_issued_by(authority.certificate)


def test_a_secret_is_unreadable_to_others_before_it_has_any_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    seen: list[int] = []
    whole = Path.write_text

    def write_text(self: Path, text: str) -> int:
        seen.append(stat.S_IMODE(self.stat().st_mode))
        return whole(self, text)

    monkeypatch.setattr(Path, "write_text", write_text)
    write_secret(path, "new")
    write_secret(tmp_path / "fresh", "new")
    assert seen == [0o600, 0o600]
