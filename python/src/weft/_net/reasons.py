"""Explains to people why a connection could not be made (WIRE-NETWORKS.md 17.1, 17.2)."""

from __future__ import annotations

import socket
import ssl

from weft._net import keys as _net_keys
from weft._net.name_rules import HOST

__all__ = ["no_answer", "no_ticket", "unreachable", "why"]

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE")


def why(error: Exception, address: str) -> str:
    if (
        isinstance(error, ssl.SSLCertVerificationError)
        and error.verify_code in _net_keys.OUT_OF_TIME
    ):
        return (
            f"{address} shows a certificate that is not good now ({error.verify_message}): "
            "look at the clocks of both machines, or make new keys (`weft net keys`)"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{address} shows a certificate that our authority has not signed: both need keys of one network (`weft net keys`)"
    if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
        return (
            f"what listens at {address} speaks no TLS, so it is no Weft program: is the port right?"
        )
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return (
            f"{address} refuses our certificate, or speaks no TLS 1.3 ({error.reason or error}): "
            "both need keys of one network (`weft net keys`)"
        )
    return (
        f"{address} closed the connection before it had answered: it was killed, it refuses our certificate "
        "(both need keys of one network: `weft net keys`), or it is not a Weft program"
    )


def unreachable(error: OSError, address: str, seconds: float) -> str:
    """Returns why there is no connection with an address. If `error` is a TimeoutError, the attempt
    took `seconds` seconds.
    """
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {address}: has the program there ended, or is the port another?"
    if isinstance(error, socket.gaierror):
        return f"no machine has the name of {address} here ({error.strerror})"
    if isinstance(error, TimeoutError):
        return (
            f"nobody answers at {address} within {seconds:g} seconds: a firewall lets nothing through to that port, "
            "or the machine is off"
        )
    return f"no way leads to {address} ({error.strerror or error}): a firewall refuses it, or the machine is off, or in another network"


def no_answer(who: str, lives: float, how: str = "") -> str:
    """Returns why the home of a name may not answer.

    Args:
        who: a sentence that names the program that does not answer, and its place.
        lives: how many seconds an entry remains after its home was killed.
        how: the option that gives the home an address.
    """
    return (
        f"{who}: if it was killed its name is gone within {lives:.0f} seconds; if it is on another machine, it has to join "
        f"with an address that can be reached from here{how}, or with the relay"
    )


def no_ticket(name: str, home: str, patience: float) -> str:
    """Returns why there was no ticket for a name. `home` is the name of the program that is its
    home, or "" if there is none.
    """
    if home:
        return (
            f"{home}, the home of {name!r}, gave no ticket within {patience:g} seconds: try again"
        )
    if name.startswith(HOST):
        return (
            f"there was no host {name.removeprefix(HOST)!r} within {patience:g} seconds: `weft host --name` starts one, "
            "`weft net ls` shows them"
        )
    return f"nobody has offered {name!r} within {patience:g} seconds: `weft net ls` shows the names"
