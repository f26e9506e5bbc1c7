"""Makes certificates with the `cryptography` package, for weft.net.make_keys (_net/keys.py)."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from weft._net import name_rules as _net_named
from weft._net.keys import AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY, SERVER
from weft.errors import BadUse

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise ImportError("weft.net needs cryptography: pip install 'weft-csp[net]'") from error

__all__ = ["make"]

YEARS = 10


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


def _granted(name: str | None, offers: Iterable[str] | None, own: bool) -> list[str]:
    """Returns the names for which the keys are valid. `own` says whether the keys are the
    authority's.

    Raises:
        BadUse: one of `offers` is not a name to offer, or `name` cannot be a part of one.
    """
    if offers is not None:
        given = [] if isinstance(offers, str) else [_net_named.checked_grant(o) for o in offers]
        if given:
            return given
        raise BadUse(
            f"make_keys: offers is a list of names, as ['lab/*', 'host=gpu1'], not {offers!r}. Leave it out for the usual names"
        )
    if own:
        return [_net_named.ALL]
    simple = _net_named.simple(socket.gethostname() if name is None else name)
    if name is not None and name != simple:
        raise BadUse(
            f"keys of {name!r} would be for the names {name}/*, and a name has letters, digits, - and _: give another name "
            f"({simple!r}), or say which they are for (--offers 'lab/*', --offers host={simple})"
        )
    return [f"{simple}/*", f"{_net_named.HOST}{simple}"]


def make(
    folder: Path, by: Path | None, name: str | None, offers: Iterable[str] | None = None
) -> Path:
    """Makes the folder of keys, as make_keys() describes."""
    if name is not None and (not isinstance(name, str) or not name or not name.isprintable()):
        raise BadUse(f"make_keys: the name in a certificate is a text, not {name!r}")
    own = by is None or folder.resolve() == by.resolve()
    granted = _granted(name, offers, own)
    for taken in (CERTIFICATE, KEY):
        if (folder / taken).exists():
            raise BadUse(f"{folder / taken} is there already: give another folder, or remove it")
    if by is None and (folder / AUTHORITY_KEY).exists():
        raise BadUse(
            f"{folder} has an authority already, which signed the keys of other machines: "
            f"say by={str(folder)!r} for a certificate of it; for a new one move {AUTHORITY_KEY} away"
        )
    authority = folder if by is None else by
    if by is None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _new_authority(folder)
    try:
        signer = serialization.load_pem_private_key(
            (authority / AUTHORITY_KEY).read_bytes(), password=None
        )
        issuer = x509.load_pem_x509_certificate((authority / AUTHORITY).read_bytes())
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise ValueError("its key is not of an elliptic curve")
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadUse(
            f"{authority} has no authority to sign with ({error}): give the folder in which `weft net up` made its keys"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [
        x509.DNSName(each) for each in {"localhost", socket.gethostname()}
    ]
    names += [x509.UniformResourceIdentifier(_net_named.SCHEME + each) for each in granted]
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
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(folder / KEY, _pem_of(key), 0o600)
    _write(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    if by is not None:
        _write(folder / AUTHORITY, (authority / AUTHORITY).read_bytes(), 0o644)
        if (authority / SERVER).exists():
            _write(folder / SERVER, (authority / SERVER).read_bytes(), 0o644)
    return folder
