"""Keys and certificates of programs on a network (WIRE-NETWORKS.md 17.1): a folder with a
certificate, its key, and the authority that signed it.

    make_keys(folder)                         a new authority, and a certificate of it for all names
    make_keys(other, by=folder, name="gpu1")  a certificate of the same authority for another
                                              machine, for gpu1/* and host=gpu1

The files are authority.pem, certificate.pem and key.pem; authority-key.pem, but only where
certificates are made; and server, which contains the URL of the server.

A certificate serves both sides of a connection. It says which names its programs may hold
(WIRE-NETWORKS.md 17.3). The fingerprint of its certificate identifies a program.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weft._net import name_rules as _net_named
from weft.errors import BadUse

__all__ = ["Keys", "context", "fingerprint_of", "folder_of", "make_keys", "server_of"]

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority-key.pem"
CERTIFICATE, KEY, SERVER = "certificate.pem", "key.pem", "server"
LONGEST_URL = 300  # the largest number of characters of a URL
# OpenSSL's codes for a certificate that is not yet valid, and for one that has expired
OUT_OF_TIME = 9, 10


def folder_of(keys: str | os.PathLike[str] | None) -> Path:
    """Returns the folder `keys` if it is given, otherwise $WEFT_NET, $XDG_CONFIG_HOME/weft/net or
    ~/.config/weft/net.
    """
    if keys is not None:
        return Path(keys)
    if given := os.environ.get("WEFT_NET"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "weft" / "net"


def server_of(folder: Path) -> str:
    """Returns the URL of the NATS server: $WEFT_SERVER, or the URL that `weft net up` has written
    into the folder.

    Raises:
        BadUse: no URL is known.
    """
    if given := os.environ.get("WEFT_SERVER"):
        return given
    try:
        with (folder / SERVER).open(encoding="utf-8") as file:
            return file.readline(LONGEST_URL).strip()
    except (OSError, ValueError):
        raise BadUse(
            f"no server is noted in {folder}: start one with `weft net up`, or give its URL, nats://HOST:PORT"
        ) from None


def make_keys(
    folder: str | os.PathLike[str],
    *,
    by: str | os.PathLike[str] | None = None,
    name: str | None = None,
    offers: Iterable[str] | None = None,
) -> Path:
    """Makes a folder of keys: those of a new authority, or one more certificate of the authority in
    `by`. Returns the folder.

    Only the user may read the keys. Anyone who has `authority-key.pem` can make certificates for
    any program. So leave that file where it is, and copy to other machines only folders that are
    made with `by`.

    Args:
        folder: the folder; it is made if it does not exist.
        by: a folder with the authority's key.
        name: the member's name, for messages; None: this machine's, with - for each character that
            is no letter, digit or _.
        offers: the names that programs with these keys may offer: "lab/results", "lab/*" (all names
            that begin with lab/), "host=gpu1" (to be that host), "*" (all names). None: NAME/* and
            host=NAME; in the authority's own folder all names.

    Raises:
        BadUse: the folder contains keys already or, without `by`, keys of an authority; or `by`
            contains no authority's key; or one of `offers` is not a name to offer, or `offers` is
            empty; or `offers` is None and `name` cannot be a part of a name.
        OSError: a file cannot be written.
    """
    # This import takes 50 ms, and most programs already have their keys.
    from weft._net import certificates as _net_certificates

    return _net_certificates.make(Path(folder), None if by is None else Path(by), name, offers)


class Keys:
    """The keys of a folder, for a program that joins.

    Attributes:
        client, server: the SSL contexts for the two sides of a connection.
        fingerprint: the fingerprint of the certificate.
        member: the owner of the certificate and its names, as the other side of a connection sees
            them.

    Raises:
        BadUse: the folder contains no keys, the keys do not fit together, or they are not valid
            now; or they were made by an older version of Weft, which put no names into
            certificates.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.client = context(folder, server=False)
        own, certificate = _shown(folder)
        self.fingerprint = fingerprint_of(own)
        self.member = _net_named.member_of(certificate)
        if not self.member.grants:
            mend = (
                f"remove {CERTIFICATE} and {KEY} there, and `weft net up` makes new ones"
                if (folder / AUTHORITY_KEY).exists()
                else f"make new ones where the authority's key is, `weft net keys FOLDER --name {self.member.name}` "
                "(--offers says other names than the usual), and bring them here"
            )
            raise BadUse(
                f"the keys in {folder} do not say which names they are for, as those of an older Weft: {mend}"
            )

    @functools.cached_property
    def server(self) -> ssl.SSLContext:
        return context(self._folder, server=True)


def _shown(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """Returns the folder's certificate, as it appears to the other side of a connection: its DER
    bytes, and its fields.

    Raises:
        BadUse: the other side would refuse it.
    """
    return _read(folder, (folder / AUTHORITY).read_bytes(), (folder / CERTIFICATE).read_bytes())


@functools.lru_cache(maxsize=16)
def _read(folder: Path, *_: bytes) -> tuple[bytes, dict[str, Any]]:
    """Reads the certificate through a connection in memory, since `ssl` has no other way to read
    one. This takes some milliseconds, so the result is kept as long as the files are the same.
    """
    to_server, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = context(folder, server=False), context(folder, server=True)
    sides = [client.wrap_bio(back, to_server), server.wrap_bio(to_server, back, server_side=True)]
    try:
        for side in (*sides, *sides):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
        certificate = sides[0].getpeercert()
        own = sides[0].getpeercert(binary_form=True)
    except (ssl.SSLError, ValueError) as error:
        why = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
        raise BadUse(
            f"the certificate in {folder} is not good now ({why}): look at this machine's clock, or make new keys (`weft net keys`)"
            if getattr(error, "verify_code", None) in OUT_OF_TIME
            else f"the certificate in {folder} is not one of the authority there ({why}): bring all files of the folder that "
            "`weft net keys` has made"
        ) from None
    assert certificate is not None and own is not None
    return own, certificate


def context(folder: Path, server: bool) -> ssl.SSLContext:
    """Returns the context with which one side of a TLS 1.3 connection is made. The context contains
    this side's certificate, and asks for the other side's.

    Raises:
        BadUse: the folder contains no keys, or the keys do not fit together.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False  # machines have many names, and programs compare fingerprints
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
    """Returns the SHA-256 of a certificate's DER bytes, in hexadecimal."""
    return hashlib.sha256(certificate).hexdigest()
