"""Tests that GLOSSARY.md is complete, and that the words that it rules out are not used.

A word of the third column is in one of two tables here. NOWHERE: no part of this repository has
that name, so the word must be in no source and on no page. ELSEWHERE: the word has another meaning
too, which its line explains; a word that is also in IN_MESSAGES is in no message to a user.
"""

from __future__ import annotations

import ast
import re
import subprocess

from conftest import ROOT

NOWHERE = {
    "diagnosis",
    "look out",
    "participant",
    "pull back",
    "snapshot",
    "stranger",
    "take place",
}
ELSEWHERE = {
    "action": "what a reaction of Lingua Franca schedules",
    "actor": "a word of microcontrollers",
    "alternative": "the class",
    "attach": "a descriptor to a frame, a channel to a type",
    "branch": "of git, of a processor",
    "broker": "what others have, and the relay is not",
    "case": "of a test, of a letter, of C",
    "cell": "where native arrays keep values",
    "child": "of a fork, of a process of Weft",
    "close": "a file, a door, a block",
    "connection": "of Lingua Franca, of TCP",
    "cycle": "of a processor, of imports",
    "deadline": "the keyword, and that of a handler",
    "decide": "what a home does, and a check",
    "fiber": "of Boost",
    "guest": "of asyncio's loop",
    "hang": "what ends a room of tests",
    "host": "defined here itself",
    "hub": "of the package greenlet, of serial lines",
    "interrupt": "of a processor, Ctrl-C",
    "job": "of PBS and SLURM; what a farm's workers do",
    "kill": "an OS process",
    "kind": "of a type, of a frame",
    "line": "of a text, of a source, of a serial port",
    "loop": "of asyncio, of a program",
    "module": "of Python",
    "node": "of a cluster, of a graph, Node.js, of a list",
    "nursery": "of trio, in the page for its users",
    "other side": "of a channel: the side that an operation is not at",
    "our own": "two words of plain English",
    "owner": "of a file, of a reference, of a group",
    "packet": "of a lossy link, of plug-and-play",
    "partner": "the other party of a meeting",
    "pipe": "of the system",
    "port": "of TCP, of Lingua Franca, of a platform",
    "process": "defined here itself",
    "queue": "of asyncio, of events, a run queue",
    "ready list": "of a standing alternative",
    "register": "of a processor, of an object",
    "remote": "a machine in names of modules",
    "scope": "of a name",
    "server": "of NATS",
    "session": "of a link; defined here itself",
    "sleep": "of a thread, the operation",
    "slice": "of an array, of the system's scheduler",
    "space": "WIRE.md's word, the class of C++",
    "suspend": "of a C++ coroutine",
    "take": "to read a value, to accept",
    "task": "of asyncio, ./run TASK",
    "timeout": "the keyword",
    "timestamp": "of a record of Perfetto, of a log",
    "turn": "of a guest",
    "way": "of a relay, how something is done",
    "win": "a claim, in the models",
    "wire": "the protocol",
    "worker": "of a farm, of an executor",
}
# Messages are for users, who know the words of the first column.
IN_MESSAGES = {
    "branch",
    "broker",
    "fiber",
    "hang",
    "hub",
    "nursery",
    "participant",
    "partner",
    "ready list",
    "register",
    "remote",
    "slice",
    "suspend",
}
# Names that do not describe the contents of their variables. Use request, settings, text, answer,
# message, lines or report instead.
NO_NAMES = {"said"}
SPEAKS = ("python/src/", "python/native/", "cpp/include/", "cpp/src/", "micropython/weft/")
TEXTS = (".py", ".pyi", ".cpp", ".hpp", ".c", ".h", ".mjs", ".md", ".sh")
# Files with the words of other people: of programs and libraries to which Weft is compared, or
# which Weft follows.
OTHERS = ("bench/", "compat/", "theses/", "GLOSSARY.md", "tools/tests/test_glossary.py")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def files() -> list[str]:
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [f for f in out.stdout.split("\n") if f.endswith(TEXTS) and not f.startswith(OTHERS)]


def rows() -> list[list[str]]:
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    found = [
        [c.strip() for c in r.strip("|").split("|")] for r in re.findall(r"(?m)^\|.*\|$", text)
    ]
    return [row for row in found if row[0] != "word" and set(row[0]) != {"-"}]


def avoided() -> set[str]:
    """Returns the words of the third column."""
    third = (re.sub(r"\([^)]*\)", "", row[2]) for row in rows())
    return {word.strip() for cell in third for word in cell.split(",") if word.strip()}


def matcher(words: set[str]) -> re.Pattern[str]:
    return re.compile(rf"(?i)\b({'|'.join(map(re.escape, sorted(words)))})s?\b")


def test_the_table_is_whole_and_each_word_stands_once() -> None:
    found = rows()
    assert len(found) > 50
    assert [row for row in found if len(row) != 3 or not row[0] or not row[1]] == []
    words = [w.strip() for row in found for w in row[0].split(",")]
    assert sorted(w for w in set(words) if words.count(w) > 1) == []


def test_each_word_to_avoid_is_judged_here() -> None:
    assert NOWHERE.isdisjoint(ELSEWHERE)
    assert avoided() == NOWHERE | ELSEWHERE.keys()
    assert avoided() >= IN_MESSAGES


def test_words_without_another_meaning_are_not_used() -> None:
    wrong = matcher(NOWHERE)
    messages = []
    for name in files():
        text = (ROOT / name).read_text(encoding="utf-8").lower()
        if any(word in text for word in NOWHERE):  # this test is quicker than the pattern
            for number, line in enumerate(text.split("\n"), 1):
                messages += [f"{name}:{number}: {m}" for m in wrong.findall(line)]
    assert messages == []


def test_messages_use_the_words_of_the_glossary() -> None:
    wrong = matcher(IN_MESSAGES)
    messages = []
    for name in files():
        if not name.startswith(SPEAKS) or name.endswith((".md", ".pyi")):
            continue
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").split("\n"), 1):
            if line.lstrip().startswith(("#", "//", "*")):
                continue
            for text in LITERAL.findall(line):
                if text.count(" ") > 1 and (found := wrong.search(text)):
                    messages.append(f"{name}:{number}: {found[1]}: {text}")
    assert messages == []


def names_in(source: str) -> set[tuple[str, int]]:
    """Returns the identifiers of a module, without underscores at the ends, with their lines."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add((name.strip("_"), getattr(node, "lineno", 0)))
    return found


def test_names_tell_what_they_hold() -> None:
    out = subprocess.run(
        ["git", "ls-files", "*.py", "*.pyi"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    wrong = []
    for file in out.stdout.split():
        source = (ROOT / file).read_text(encoding="utf-8")
        if not any(name in source.lower() for name in NO_NAMES):  # quicker than parsing the file
            continue
        wrong += [
            f"{file}:{line}: {name}"
            for name, line in sorted(names_in(source))
            if name.lower() in NO_NAMES
        ]
    assert wrong == []


def test_a_name_to_avoid_is_found_wherever_it_is_bound() -> None:
    for source in ("said = 1", "def f(said): ...", "def said(): ...", "a._said", "f(said=1)"):
        assert any(name == "said" for name, _ in names_in(source)), source
