"""The certificate that a server makes for itself, and what it does about files it cannot use."""

from __future__ import annotations

import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from federation_app.peers import own_certificate
from signing_app.keys import new_key
from tests.threads import join_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROCESSES = 8


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    """Return the folder of the certificate of a server with a public name."""
    settings.DATA_DIR = tmp_path
    settings.UAMP_FEDERATION_HOST = "chat.example:8443"
    settings.UAMP_ISSUER = "https://www.example"
    settings.ALLOWED_HOSTS = ["chat.example", ".pages.example", "[2001:DB8::1]", "*"]
    return tmp_path / own_certificate.FOLDER


def stored(folder: Path) -> x509.Certificate:
    """Return the stored certificate."""
    return x509.load_pem_x509_certificate((folder / "certificate.pem").read_bytes())


def test_it_has_the_names_of_the_server_and_is_made_once(folder: Path) -> None:
    before = os.umask(0)
    try:
        files = own_certificate.prepare()
    finally:
        os.umask(before)
    assert (files.certificate, files.key) == (folder / "certificate.pem", folder / "key.pem")
    certificate = stored(folder)
    assert files.fingerprint == certificate.fingerprint(SHA256()).hex(":").upper()
    public_key = certificate.public_key()
    assert isinstance(public_key, EllipticCurvePublicKey)
    assert isinstance(public_key.curve, SECP256R1)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        *("chat.example", "www.example", "*.pages.example", "localhost")
    ]
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    assert addresses == ["2001:db8::1", "127.0.0.1", "::1"]
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not constraints.ca, "a peer that trusts it trusts no other certificate"
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc <= timedelta(3650)
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    again = own_certificate.prepare()
    assert (files.is_new, again.is_new) == (True, False)
    assert again.fingerprint == files.fingerprint


def test_processes_that_start_at_the_same_moment_agree_on_one() -> None:
    made: list[own_certificate.CertificateFiles] = []
    # Each thread has its own lock on the file, as a process has.
    threads = [
        threading.Thread(target=lambda: made.append(own_certificate.prepare()))
        for _ in range(PROCESSES)
    ]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert len(made) == PROCESSES
    assert len({files.fingerprint for files in made}) == 1
    assert sum(files.is_new for files in made) == 1


def test_one_that_ends_within_a_month_is_renewed_with_the_same_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_certificate, "VALID", timedelta(days=31))
    own_certificate.prepare()
    assert not own_certificate.prepare().is_new
    key = (folder / "key.pem").read_bytes()
    (folder / "certificate.pem").unlink()
    monkeypatch.setattr(own_certificate, "VALID", timedelta(days=30))
    own_certificate.prepare()
    monkeypatch.setattr(own_certificate, "VALID", timedelta(days=3650))
    assert own_certificate.prepare().is_new
    assert stored(folder).not_valid_after_utc > datetime.now(UTC) + timedelta(days=3000)
    assert (folder / "key.pem").read_bytes() == key


def test_a_new_name_of_the_server_makes_a_new_one(settings: Any, folder: Path) -> None:
    own_certificate.prepare()
    settings.ALLOWED_HOSTS = ["chat.example"]
    assert not own_certificate.prepare().is_new, "it has all names"
    settings.ALLOWED_HOSTS = ["chat.example", "other.example"]
    before = (folder / "certificate.pem").read_bytes()
    files = own_certificate.prepare()
    assert files.is_new
    # It still has the names of the server's earlier settings.
    assert {"other.example", "*.pages.example", "2001:db8::1"} <= set(
        own_certificate._names_in(stored(folder))
    )
    assert files.previous is not None
    assert files.previous.read_bytes() == before
    assert stat.S_IMODE(files.previous.stat().st_mode) == 0o600
    assert own_certificate.prepare().previous is None


def test_the_names_of_now_come_before_earlier_ones(settings: Any, folder: Path) -> None:
    own_certificate.prepare()
    settings.ALLOWED_HOSTS = [f"h{n}.example" for n in range(95)]
    assert own_certificate.prepare().is_new
    names = own_certificate._names_in(stored(folder))
    assert len(names) == 100
    assert set(own_certificate.own_names()) <= set(names)
    assert not own_certificate.prepare().is_new


def test_names_that_no_certificate_can_have_are_left_out(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["bücher.example", "a" * 254, *(f"h{n}.example" for n in range(200))]
    names = own_certificate.own_names()
    assert len(names) == 100
    assert "bücher.example" not in names
    assert "a" * 254 not in names
    own_certificate.prepare()
    assert not own_certificate.prepare().is_new


def cut(path: Path) -> None:
    """Leave half of a file."""
    path.write_bytes(path.read_bytes()[:120])


def other_key(path: Path) -> None:
    """Store a key of another kind."""
    path.write_bytes(new_key("RS256").pem)


def folder_instead(path: Path) -> None:
    """Put a folder in the place of a file."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("certificate.pem", cut, "Restore it from a backup, or delete"),
        ("key.pem", cut, "Restore it from a backup, or delete"),
        ("key.pem", other_key, "Restore it from a backup, or delete"),
        ("key.pem", lambda path: path.unlink(), "Restore it, or delete the certificate"),
        ("key.pem", folder_instead, "make the user of the server its owner"),
    ],
)
def test_files_that_cannot_be_used_are_left_alone_with_a_word_on_what_to_do(
    folder: Path, name: str, damage: Callable[[Path], object], words: str
) -> None:
    own_certificate.prepare()
    damage(folder / name)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(own_certificate.UnusableCertificate, match=words) as raised:
        own_certificate.prepare()
    assert str(folder / name) in str(raised.value)
    assert before == {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_certificate_of_another_key_is_refused(folder: Path) -> None:
    own_certificate.prepare()
    certificate = (folder / "certificate.pem").read_bytes()
    for path in list(folder.iterdir()):
        path.unlink()
    own_certificate.prepare()
    (folder / "certificate.pem").write_bytes(certificate)
    with pytest.raises(own_certificate.UnusableCertificate, match="does not belong"):
        own_certificate.prepare()


def test_what_an_interrupted_start_left_is_completed(folder: Path) -> None:
    own_certificate.prepare()
    key = (folder / "key.pem").read_bytes()
    # It had written the key, and half of the certificate beside its place.
    (folder / "certificate.pem").replace(folder / "certificate.draft")
    cut(folder / "certificate.draft")
    assert own_certificate.prepare().is_new
    assert (folder / "key.pem").read_bytes() == key
    assert not (folder / "certificate.draft").exists()
