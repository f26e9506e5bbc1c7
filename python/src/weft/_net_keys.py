"""Keys and certificates of programs on a network (WIRE.md 17.1): a folder with a certificate, its
key, and the authority that signed it.

    make_keys(folder)               a new authority, and a certificate of it
    make_keys(other, by=folder)     a certificate of the same authority, for another machine

    authority.pem  certificate.pem  key.pem        authority-key.pem (only where certificates are made)    server (its URL)

The certificate is good on both sides of a connection. Names in it are for people: who it is says
the fingerprint.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
import socket
import ssl
from pathlib import Path

from weft.errors import BadUse

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise ImportError("weft.net needs cryptography: pip install 'weft[net]'") from error

__all__ = ["context", "fingerprint_of", "folder_of", "make_keys", "server_of"]

YEARS = 10
AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority-key.pem"
CERTIFICATE, KEY, SERVER = "certificate.pem", "key.pem", "server"


def folder_of(keys: str | os.PathLike[str] | None) -> Path:
    """The folder that was given; else $WEFT_NET, $XDG_CONFIG_HOME/weft/net or
    ~/.config/weft/net."""
    if keys is not None:
        return Path(keys)
    if given := os.environ.get("WEFT_NET"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "weft" / "net"


def server_of(folder: Path) -> str:
    """The URL of the NATS server: $WEFT_SERVER, or that which `weft net up` has noted there.

    Raises:
        BadUse: there is none.
    """
    if given := os.environ.get("WEFT_SERVER"):
        return given
    try:
        return (folder / SERVER).read_text(encoding="utf-8").strip()
    except OSError:
        raise BadUse(
            f"no server is noted in {folder}: start one with `weft net up`, or give its URL, nats://HOST:PORT"
        ) from None


def _write(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:60])])


def _dated(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _new_authority(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named(f"weft network of {socket.gethostname()}")
    certificate = (
        _dated(x509.CertificateBuilder())
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder / AUTHORITY_KEY, _pem_of(key), 0o600)
    _write(folder / AUTHORITY, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def make_keys(
    folder: str | os.PathLike[str],
    *,
    by: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> Path:
    """Makes a folder of keys: those of a new authority, or a certificate more of the one in `by`.
    Returns the folder.

    Only the user may read the keys. Whoever has `authority-key.pem` can make hosts: it stays where
    it is, other machines get a folder made with `by`.

    Args:
        folder: is made if it is not there.
        by: a folder with the authority's key.
        name: in the certificate, for people; None: this machine's.

    Raises:
        BadUse: the folder has keys already, or `by` has no authority's key.
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    for taken in (CERTIFICATE, KEY):
        if (folder / taken).exists():
            raise BadUse(f"{folder / taken} is there already: give another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = folder if by is None else Path(by)
    if by is None:
        _new_authority(folder)
    try:
        signer = serialization.load_pem_private_key(
            (authority / AUTHORITY_KEY).read_bytes(), password=None
        )
        issuer = x509.load_pem_x509_certificate((authority / AUTHORITY).read_bytes())
    except (OSError, ValueError) as error:
        raise BadUse(
            f"{authority} has no authority to sign with ({error}): give the folder in which `weft net up` made its keys"
        ) from None
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [
        x509.DNSName(each) for each in {"localhost", socket.gethostname()}
    ]
    names += [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "::1")]
    certificate = (
        _dated(x509.CertificateBuilder())
        .subject_name(_named(name or socket.gethostname()))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    _write(folder / KEY, _pem_of(key), 0o600)
    _write(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    if by is not None:
        _write(folder / AUTHORITY, (authority / AUTHORITY).read_bytes(), 0o644)
        if (authority / SERVER).exists():
            _write(folder / SERVER, (authority / SERVER).read_bytes(), 0o644)
    return folder


def context(folder: Path, server: bool) -> ssl.SSLContext:
    """What a side of a TLS 1.3 connection is made with: its certificate, and the other's is asked
    for.

    Raises:
        BadUse: the folder has no keys, or they do not fit.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False  # machines have many names; the fingerprint says who it is
    made.verify_mode = ssl.CERT_REQUIRED
    try:
        made.load_verify_locations(folder / AUTHORITY)
        made.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    except (OSError, ssl.SSLError) as error:
        raise BadUse(
            f"no keys in {folder} ({error}): `weft net up` makes them, and `weft net keys` those of other machines; "
            "$WEFT_NET or keys=… says where they are"
        ) from None
    return made


def fingerprint_of(certificate: bytes) -> str:
    """SHA-256 of a certificate's DER bytes, in hexadecimal."""
    return hashlib.sha256(certificate).hexdigest()


def own_fingerprint(folder: Path) -> str:
    """Of the certificate in the folder."""
    text = (folder / CERTIFICATE).read_text(encoding="ascii")
    return fingerprint_of(ssl.PEM_cert_to_DER_cert(text))
