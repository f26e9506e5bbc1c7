"""Keys and certificates of programs on a network (WIRE.md 17.1): a folder with a certificate, its
key, and the authority that signed it.

    make_keys(folder)               a new authority, and a certificate of it
    make_keys(other, by=folder)     a certificate of the same authority, for another machine

    authority.pem  certificate.pem  key.pem        authority-key.pem (only where certificates are made)    server (its URL)

The certificate is good on both sides of a connection. Names in it are for people: a program is
known by the fingerprint.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from pathlib import Path

from weft.errors import BadUse

__all__ = ["context", "fingerprint_of", "folder_of", "make_keys", "server_of"]

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
        BadUse: the folder has keys already, or, without `by`, an authority's; or `by` has no
            authority's key.
        OSError: a file cannot be written.
    """
    # it takes 50 ms, and most programs have their keys
    from weft._net import certificates as _net_certificates

    return _net_certificates.make(Path(folder), None if by is None else Path(by), name)


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
