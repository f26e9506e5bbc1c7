"""Members that take names which their certificates do not grant (WIRE-NETWORKS.md 17.3, 17.4)
attack C++ programs, as they attack Python programs in test_attackers.py. The last tests check that
both languages read grants alike.
"""

from __future__ import annotations

import json
import random
import subprocess
from typing import Any

import pytest
from attackers import (
    GRANTED,
    ODD,
    TAKES,
    Thief,
    keys_by_the_command,
    old_keys_of_the_authority,
    overhears,
    says_again,
    until,
    with_names,
)
from conftest import SANITIZED, built
from cryptography import x509
from nats.js import errors as js_errors
from odd import TEXTS, drawn, packed, says, with_odd_fields

from weft import net
from weft._net import foreign_json as _foreign_json
from weft._net import keys as _net_keys
from weft._net import name_rules as _net_named
from weft.errors import BadUse


@pytest.fixture
def refused(server, keys_of, cpp):
    """Returns a function that returns the error of a client in C++ after an attack. Thief.refused()
    does the same for Python.
    """

    def why(thief: Thief, name: str, takes: Any) -> str:
        # The client tries again if the home has rewritten its entry before the client connected.
        while True:
            takes(thief, name)
            kind, message = cpp(
                "tries", server.url, keys_of("client"), name, "writer", 60
            ).next_report()
            assert thief.got == []
            if kind != "ok":
                assert kind == "BadUse"
                return str(message)

    return why


def test_names_that_were_taken(server, keys_of, cpp, refused):  # wire 17.4
    names = [f"lab/{i}" for i, _ in enumerate(TAKES)]
    home = cpp("is_home", server.url, keys_of("lab", "lab/*"), *names)
    assert home.next_report() == "offered"
    for name, (take, message) in zip(names, TAKES.values(), strict=True):
        with Thief(server.url, keys_of("thief")) as thief:
            why = refused(thief, name, take)
            assert message in why and thief.got == []
        if message == "may not offer":
            assert "the certificate of 'thief' is for thief/*, host=thief." in why
            assert "weft net keys FOLDER --name 'thief' --offers 'thief/*'" in why


def test_names_that_were_taken_by_the_relay(server, keys_of, cpp):  # wire 17.4, 17.17
    names = {"lab/1": "delete and take", "lab/2": "overwrite"}
    home = cpp("is_home", server.url, keys_of("lab", "lab/*"), *names, relay="only")
    assert home.next_report() == "offered"
    with Thief(server.url, keys_of("thief"), relay="only") as thief:
        for name, how in names.items():
            TAKES[how][0](thief, name)
            p = cpp("tries", server.url, keys_of("client"), name, "writer", 10, relay="only")
            kind, why = p.next_report()
            assert kind == "BadUse" and f"thief, by the relay, may not offer '{name}'" in why
        assert thief.got == []


def test_a_home_in_cpp_keeps_its_name_from_a_thief(server, keys_of, cpp):  # wire 17.4
    """The client, in Python, reaches the home, and no other program."""
    home = cpp("reads_all", server.url, keys_of("lab", "lab/*"), "lab/results", 0)
    assert home.next_report() == "offered"
    with (
        Thief(server.url, keys_of("thief")) as thief,
        net.join(server.url, keys=keys_of("client")) as client,
    ):
        old = thief.ticket("lab/results")
        writer = client.writer("lab/results")
        print_ = thief.meeting._fingerprint
        false = {**old, "address": thief.network.address, "fingerprint": print_}
        assert "may not offer 'lab/results'" in thief.refused(
            client, "lab/results", thief.puts(false)
        )
        thief.put("lab/results", old)
        client.writer("lab/results").retire()  # uses the ticket that was never shown
        assert "ticket for 'lab/results' is not valid" in thief.refused(
            client, "lab/results", thief.puts(old)
        )
        for i in range(5):
            writer.write(i)
        writer.retire()
        assert thief.got == []
    assert home.next_report() == "the first" and home.next_report() == [5, "Retired"]


def test_entries_that_are_written_again(server, keys_of, cpp, refused):  # wire 17.4
    """The thief rewrites entries with a ticket that has been used, or that is for another name.
    Each stolen ticket is valid once, and the client needs no ticket from an entry.
    """
    home = cpp("is_home", server.url, keys_of("lab", "lab/*"), "lab/one", "lab/two")
    assert home.next_report() == "offered"
    with Thief(server.url, keys_of("thief")) as thief:
        old, *_ = [thief.ticket("lab/one") for _ in range(3)]
        thief.shows(old, "lab/one").close()
        with pytest.raises(BadUse, match="the ticket for 'lab/one' is not valid"):
            thief.shows(old, "lab/one")
        p = cpp("tries", server.url, keys_of("client"), "lab/one", "writer", 60)
        assert p.next_report() == ["ok", ""]
        assert "ticket for 'lab/one' is not valid" in refused(thief, "lab/one", thief.puts(old))
        other = {**thief.entry("lab/two"), "ticket": old["ticket"]}
        assert "ticket for 'lab/two' is not valid" in refused(thief, "lab/two", thief.puts(other))
        assert thief.got == []
    home.go()
    assert home.ended() == 0


def test_bytes_that_are_said_again(server, keys_of, cpp):  # wire 17.1, 17.4
    """A proxy keeps all bytes that a client in C++ has sent to a home in C++. When these bytes are
    sent again, the home refuses them."""
    home = cpp("reads_all", server.url, keys_of("lab", "lab/*"), "lab/results", 0)
    assert home.next_report() == "offered"
    with (
        Thief(server.url, keys_of("thief")) as thief,
        net.join(server.url, keys=keys_of("client")) as client,
        overhears(address := thief.entry("lab/results")["address"]) as (false, kept),
    ):
        writer = client.writer("lab/results")
        while not kept:  # the home had rewritten its entry before the client connected
            thief.put("lab/results", {**thief.entry("lab/results"), "address": false})
            p = cpp("tries", server.url, keys_of("client"), "lab/results", "writer", 60)
            assert (p.next_report(), p.ended()) == (["ok", ""], 0)
        assert len(kept) > 1000
        says_again(address, kept)
        writer.write(0)
        writer.retire()
        assert thief.got == []
    assert (
        home.next_report() == "the first"
        and home.next_report() == [1, "Retired"]
        and home.ended() == 0
    )


def test_two_programs_of_one_member(server, keys_of, cpp):  # wire 17.3
    """The second program may not offer the name; but it can overwrite the first program's entry."""
    home = cpp("is_home", server.url, keys_of("lab", "lab/*"), "lab/results")
    assert home.next_report() == "offered"
    with Thief(server.url, keys_of("lab", "lab/*")) as other:
        with pytest.raises(BadUse, match=r"the name 'lab/results' is taken by c\+\+ at"):
            other.offer("lab/results")
        TAKES["overwrite"][0](other, "lab/results")
        p = cpp("tries", server.url, keys_of("client"), "lab/results", "writer", 60)
        assert p.next_report() == ["ok", ""]
        assert [request["host"] for request in other.got] == ["c++"]


def test_a_home_whose_name_was_taken_says_so(server, keys_of, cpp, capfd):  # wire 17.4
    """An entry that is rubbish or has been deleted belongs to no other home, so the home writes its
    name again as soon as a ticket has been shown.
    """
    home = cpp("is_home", server.url, keys_of("lab", "lab/*"), "lab/mine")
    assert home.next_report() == "offered"
    with Thief(server.url, keys_of("thief")) as thief:
        for damage in (Thief.delete, thief.puts({"rub": "bish"})):
            there = thief.entry("lab/mine")
            damage(thief, "lab/mine")
            thief.shows(there, "lab/mine").close()
            until(lambda: "home" in thief.entry("lab/mine"), js_errors.NotFoundError)
        assert capfd.readouterr().err == ""
        there = thief.entry("lab/mine")
        TAKES["overwrite"][0](thief, "lab/mine")
        thief.shows(there, "lab/mine").close()

        def has_let_go() -> bool:
            with pytest.raises(BadUse) as raised:
                thief.shows(there, "lab/mine")
            return "no channel 'lab/mine' is offered here" in str(raised.value)

        until(has_let_go)
        home.go()
        assert home.ended() == 0
    taken = "weft: 'lab/mine', which this program has offered, is taken by thief at 127.0.0.1:"
    assert capfd.readouterr().err.startswith(taken)


def test_certificates_that_grant_nothing(
    server, keys, keys_of, tmp_path, cpp, refused
):  # wire 17.3
    """A program whose certificate has no grants refuses to offer, and clients refuse the
    certificate."""
    home = cpp("is_home", server.url, keys_of("lab", "lab/*"), "lab/results")
    assert home.next_report() == "offered"
    with Thief(server.url, keys_of("thief")) as thief:
        for which, names in ODD.items():
            folder = with_names(keys, tmp_path / which, names, "lab/*")
            kind, why = cpp("offers", server.url, folder, "lab/results").next_report()
            assert kind == "error" and "do not say which names they are for" in why
            assert "`weft net keys FOLDER --name lab/*`" in why
            with thief.answers_with(folder) as there:
                false = {**thief.entry("lab/results"), **there, "ticket": "0" * 32}
                why = refused(thief, "lab/results", thief.puts(false))
            assert "the certificate of 'lab/*' is for no name, as those that an older Weft" in why
        assert thief.got == []
    old = old_keys_of_the_authority(keys, tmp_path / "old")
    kind, why = cpp("offers", server.url, old, "lab/results").next_report()
    assert kind == "error" and "remove certificate.pem and key.pem there, and `weft net up`" in why


def test_nobody_offers_what_his_keys_are_not_for(server, keys_of, keys, tmp_path, cpp):  # wire 17.3
    kind, why = cpp("offers", server.url, keys_of("m2"), "lab/results").next_report()
    assert (
        kind == "BadUse"
        and (
            "this program may not offer 'lab/results': the certificate of 'm2' is for m2/*, host=m2."
        )
        in why
    )
    assert "--offers 'm2/*' --offers 'host=m2' --offers 'lab/results'`" in why
    for folder, name in (
        (keys_of("m2"), "m2/results"),
        (keys_by_the_command(why, keys, tmp_path / "m2"), "lab/results"),
    ):
        assert cpp("offers", server.url, folder, name).next_report()[0] == "ok"


def test_odd_first_messages(server, keys, cpp):  # wire 17.2
    """Each message is refused with an error in words, and the home continues, as in
    test_odd_frames.py for Python.
    """
    home = cpp("is_home", server.url, keys, "c")
    assert home.next_report() == "offered"
    tls = _net_keys.context(keys, server=False)
    good = {"host": "h", "trust": False, "name": "c", "side": "writer", "ticket": "0" * 32}
    with net.join(server.url, keys=keys) as network:
        (named,) = network.names()
        for text in [*TEXTS, *drawn(15, with_odd_fields(good))]:
            answer = says(tls, named.address, packed(text))
            if answer is not None:  # None: a message without a name is dropped unanswered
                assert answer["refused"].isprintable(), text
        network.writer("c").retire()
    home.go()
    assert home.ended() == 0


# --- both languages -------------------------------------------------------------------------------


class Asked:
    """The C++ program that prints its interpretation of grants, JSON and certificates."""

    def __init__(self, build: str) -> None:
        self.process = subprocess.Popen(
            [built(build, "net_programs"), "agrees"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=SANITIZED,
        )

    def __call__(self, questions: list[tuple[Any, ...]]) -> list[Any]:
        lines = [
            " ".join(
                [what, *((w if isinstance(w, bytes) else str(w).encode()).hex() for w in words)]
            )
            for what, *words in questions
        ]
        output, _ = self.process.communicate("\n".join(lines) + "\n")
        assert self.process.returncode == 0
        return [json.loads(line) for line in output.splitlines()]


def test_both_languages_read_grants_alike(build):  # wire 17.3
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random.seed(seed)
    asked = [(g, n) for g, n, _ in GRANTED if g]
    parts = ["a", "A", "ab", "host=", "/", ".", "=", "*", "-", "_", "ä", "\0", "..", " "]
    while len(asked) < 1500:
        name = "".join(random.choices(parts[:6], k=random.randint(1, 5)))
        cut = name[: random.randint(0, len(name))]
        grant = random.choice([cut + "*", cut, "".join(random.choices(parts, k=4)), name])
        if grant and name:
            asked.append((grant, name))
    in_cpp = Asked(build)([("grant", *each) for each in asked])
    in_python = [_net_named.grants(*each) for each in asked]
    differ = [a for a, one, other in zip(asked, in_cpp, in_python, strict=True) if one != other]
    assert differ == [] and 150 < sum(in_python) < 1350


def test_both_languages_take_the_same_json(build):  # wire 17.2
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random.seed(seed)
    good = json.dumps(
        {"host": "h\\ud83d\\ude00", "a": [1, -2.5, None, {"b": [True, "ä"]}], "n": 3}
    ).encode()
    odd = [
        b'"\\ud800"', b'"\\udc00x"', b'"\\ud83d\\ude00"', b"NaN", b"Infinity", b"-Infinity", b"1e400",
        b"9" * 400, b"9" * 300, b"1e300", b"[" * 16 + b"]" * 16, b"[" * 17 + b"]" * 17, b"[" * 2000 + b"]" * 2000,
        b'{"a":' * 17 + b"1" + b"}" * 17, b"[" * 2000, b"", b" ", b"\xff", b'"\xed\xa0\x80"', b'"\n"', b"01", b"[1,]",
        b'"' + b"x" * 4094 + b'"', b'"' + b"x" * 4095 + b'"', b'"[[[[[[[[[[[[[[[[[[["', b'["\\"[[[[[[[[[[[[[[[["]',
    ]  # fmt: skip
    while len(odd) < 800:
        changed = bytearray(good)
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] = random.choice(
                b'"\\[]{}:,ud8c0019.eE+-x \x00\x80\xc3\xa4'
            )
        odd.append(bytes(changed))

    def taken(text: bytes) -> bool:
        try:
            _foreign_json.parsed(text)
        except ValueError:
            return False
        return True

    in_cpp = Asked(build)([("json", each) for each in odd])
    in_python = [taken(each) for each in odd]
    differ = [a for a, one, other in zip(odd, in_cpp, in_python, strict=True) if one != other]
    assert differ == [] and 10 < sum(in_python) < 780


def test_both_languages_read_certificates_alike(build, keys, keys_of, tmp_path):  # wire 17.3
    uri = x509.UniformResourceIdentifier
    more = {
        "several": [uri("weft:a/*"), x509.DNSName("weft:b"), uri("weft:"), uri("weft:a/*")],
        "a zero": [uri("weft:lab/*\0evil"), uri("\0weft:x")],
        "spaces": [uri("weft: lab"), uri("weft:lab ")],
        "long": [uri("weft:" + "x" * 5000)],
    }
    folders = [keys, keys_of("lab", "lab/*", "host=lab")]
    folders += [with_names(keys, tmp_path / n, names, n) for n, names in {**ODD, **more}.items()]
    found = Asked(build)([("certificate", folder / "certificate.pem") for folder in folders])
    for folder, grants in zip(folders, found, strict=True):
        shown = _net_keys._shown(folder)
        member = _net_named.member_of(shown[1])
        assert [g.encode().hex() for g in member.grants] == grants, folder.name
    assert found[:2] == [["2a"], ["6c61622f2a", "686f73743d6c6162"]]
