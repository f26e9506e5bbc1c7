"""Tests of the language server: the messages to a client, and their order. Most tests call the
server itself; one test runs the command and talks to it as an editor does."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Write
from test_command import COMMAND, ENV

from weft_lf.server import Server, read, serve
from weft_lf.server import write as send

TEXT = """target C { timeout: 1 sec }
reactor Source(size: int = 3) {
  output out: int
  state count: int = 0
  timer t(0, 100 msec)
  logical action again: int
  reaction(t) -> out, again {=
    lf_set(out, self->count);
  =}
}
main reactor {
  source = new Source()
  reaction(source.out) {= lf_print("ü %d", source.out->value); =}
}
"""


class Client:
    """A client in the same process. `sent` contains the messages that the server has sent."""

    def __init__(self, path: Path, text: str) -> None:
        self.sent: list[dict[str, Any]] = []
        self.server = Server(self.sent.append)
        self.path, self.text, self.count = path, text, 0
        self.tell("textDocument/didOpen", {"textDocument": {"uri": path.as_uri(), "text": text}})

    def tell(self, method: str, given: dict[str, Any]) -> None:
        self.server.take({"method": method, "params": given})

    def type(self, text: str) -> None:
        self.text = text
        given = {"textDocument": {"uri": self.path.as_uri()}, "contentChanges": [{"text": text}]}
        self.tell("textDocument/didChange", given)

    def ask(self, method: str, at: str = "", **more: Any) -> Any:
        """Returns the answer to a request about the end of the first `at` in the text."""
        before = self.text[: self.text.index(at) + len(at)]
        column = len(before.rpartition("\n")[2].encode("utf-16-le")) // 2
        position = {"line": before.count("\n"), "character": column}
        self.count += 1
        given = {"textDocument": {"uri": self.path.as_uri()}, "position": position, **more}
        self.server.take({"id": self.count, "method": method, "params": given})
        assert self.sent[-1]["id"] == self.count
        return self.sent[-1]["result"]

    def shown(self, path: Path | None = None) -> list[dict[str, Any]]:
        """Returns the problems that are shown in a file now."""
        uri = (path or self.path).as_uri()
        messages = [m["params"] for m in self.sent if m.get("method", "").endswith("Diagnostics")]
        own = [p["diagnostics"] for p in messages if p["uri"] == uri]
        return own[-1] if own else []

    def work(self) -> None:
        self.server.work(lambda: False)


@pytest.fixture
def client(write: Write) -> Client:
    return Client(write(TEXT), TEXT)


def test_problems_while_typing(client: Client) -> None:
    """Problems of syntax, of names, and of the C of bodies are shown, each at its place. A problem
    disappears when it is mended."""
    client.work()
    assert client.shown() == []
    client.type(TEXT.replace("new Source()", "new Sourse()"))
    client.work()
    (shown,) = client.shown()
    assert shown["message"] == "there is no reactor 'Sourse'\ndid you mean 'Source'?"
    assert shown["range"]["start"] == {"line": 11, "character": 2}
    client.type(TEXT.replace("self->count);", "self->cuont);"))
    client.work()
    (shown,) = client.shown()
    assert shown["range"]["start"]["line"] == 7 and "cuont" in shown["message"]
    client.type(TEXT.replace("output out: int", "output out: ["))
    client.work()
    assert client.shown()[0]["range"]["start"]["line"] == 2
    client.type(TEXT)
    client.work()
    assert client.shown() == []


def test_only_the_last_text_counts(client: Client) -> None:
    """Messages that wait are handled before the server looks for problems."""
    client.type("main reactor {")
    client.server.work(lambda: True)
    assert client.sent == []
    client.type(TEXT)
    client.work()
    assert client.shown() == []


def test_columns_are_of_utf_16(client: Client) -> None:
    client.type(TEXT.replace("new Source()", "new Source() /* 𝄞ü */ other = new B()"))
    client.work()
    (shown,) = client.shown()
    before = TEXT.split("\n")[11] + " /* 𝄞ü */ "
    assert shown["range"]["start"] == {"line": 11, "character": len(before) + 1}


def labels(found: list[dict[str, Any]]) -> set[str]:
    return {f["label"] for f in found}


def test_completion(client: Client) -> None:
    """Completion depends on the words around the place, even if the text has an error there."""
    client.work()
    asks = "textDocument/completion"
    client.type(TEXT.replace("lf_set(out, self->count)", "lf_set(out, self->)"))
    assert labels(client.ask(asks, "self->")) == {"count", "size"}
    client.type(TEXT.replace("source.out->", "source."))
    assert labels(client.ask(asks, '%d", source.')) == {"out"}
    client.type(TEXT.replace("new Source()", "new "))
    assert labels(client.ask(asks, "= new ")) == {"Source"}
    client.type(TEXT.replace("lf_print", "lf_"))
    assert {"lf_set", "lf_schedule", "lf_time_logical"} <= labels(client.ask(asks, "{= lf_"))
    client.type(TEXT.replace("timeout: 1 sec", ""))
    assert {"timeout", "workers"} <= labels(client.ask(asks, "target C { "))
    client.type(TEXT.replace("timer t(", "ti"))
    assert {"timer", "out", "Source"} - labels(client.ask(asks, "  ti")) == {"Source"}


def test_where_a_name_comes_from(write: Write) -> None:
    """A name is defined in the file, or in an imported file, with the text that the editor
    shows."""
    main = 'target C\nimport Source from "Lib.lf"\nmain reactor { s = new Source()\n' + (
        '  reaction(s.out) {= lf_print("%d", s.out->value); =} }\n'
    )
    library = TEXT[TEXT.index("reactor") : TEXT.index("main")]
    path = write(main, Lib=library)
    client = Client(path, main)
    client.work()
    found = client.ask("textDocument/definition", "new Sou")
    assert found["uri"].endswith("/Lib.lf") and found["range"]["start"]["line"] == 0
    found = client.ask("textDocument/definition", "(s.ou")
    assert found["range"] == {
        "start": {"line": 1, "character": 9},
        "end": {"line": 1, "character": 12},
    }
    assert client.ask("textDocument/definition", "reaction(s")["range"]["start"]["line"] == 2
    assert client.ask("textDocument/definition", '"Lib')["uri"].endswith("/Lib.lf")
    assert client.ask("textDocument/definition", "target") is None
    lib = {"uri": (path.parent / "Lib.lf").as_uri()}
    client.tell("textDocument/didOpen", {"textDocument": {**lib, "text": "\n" + library}})
    client.work()
    assert client.ask("textDocument/definition", "new Sou")["range"]["start"]["line"] == 1
    assert client.shown(path.parent / "Lib.lf") == []  # The file needs no main reactor.


def test_hover_symbols_and_the_drawing(client: Client) -> None:
    client.work()
    hover = "textDocument/hover"
    assert client.ask(hover, "self->cou")["contents"]["value"] == "state count: int"
    assert client.ask(hover, "reaction(sou")["contents"]["value"] == "source = new Source()"
    assert client.ask(hover, "reaction(source.ou")["contents"]["value"] == "output out: int"
    assert client.ask(hover, "  reaction")["contents"]["value"] == "level 0"
    assert client.ask(hover, "timeout") is None
    first, second = client.ask("textDocument/documentSymbol")
    assert (first["name"], second["name"]) == ("Source", "Main")
    assert [s["name"] for s in first["children"]] == ["size", "out", "count", "t", "again"]
    client.type("target C\nmain reactor { a = new B() }\n")
    given = {"command": "weft.lf.graph", "arguments": [client.path.as_uri()]}
    client.server.take({"id": "a", "method": "workspace/executeCommand", "params": given})
    assert client.sent[-1] == {"jsonrpc": "2.0", "id": "a", "result": None}
    assert client.sent[-2]["params"]["message"] == "there is no reactor 'B'"


def test_what_it_does_not_know(client: Client) -> None:
    client.server.take({"id": 7, "method": "textDocument/moniker", "params": {}})
    assert client.sent[-1]["error"]["code"] == -32601
    client.tell("$/cancelRequest", {"id": 7})
    client.tell("textDocument/didClose", {"textDocument": {"uri": client.path.as_uri()}})
    assert client.ask("textDocument/hover", "target") is None


def framed(*messages: Any) -> bytes:
    out = io.BytesIO()
    for message in messages:
        send(out, message)
    return out.getvalue()


def answers(requests: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Returns the exit status of a server that receives `requests`, and the messages of the
    server."""
    out = io.BytesIO()
    status = serve(io.BytesIO(requests), out)
    out.seek(0)
    found = []
    while (message := read(out)) is not None:
        found.append(message)
    return status, found


END = framed({"id": 9, "method": "shutdown"}, {"method": "exit"})


@pytest.mark.parametrize(
    "nonsense, code",
    [
        (b"hello\r\n\r\n", -32700),
        (b"Content-Length: 4\r\n\r\n{abc", -32700),
        (b'Content-Length: 3\r\n\r\n\xff\xfe"', -32700),
        (b"Content-Length: 0\r\n\r\n", -32700),
        (b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000, -32700),
        (framed([]), -32600),
        (framed({"id": 1, "method": "foo/bar"}), -32601),
        (framed({"id": 1, "method": "textDocument/hover"}), -32602),
        (framed({"id": 1, "method": "textDocument/hover", "params": [1]}), -32602),
    ],
)
def test_after_what_is_no_message_it_goes_on(nonsense: bytes, code: int) -> None:
    status, found = answers(nonsense + END)
    assert status == 0
    assert [m.get("error", {}).get("code") for m in found] == [code, None]


def test_notifications_that_make_no_sense(client: Client, capsys: Any) -> None:
    client.tell("textDocument/didOpen", {})
    client.tell("textDocument/didChange", {"textDocument": 5})
    wrong = {"textDocument": {"uri": client.path.as_uri()}, "contentChanges": [{"text": 5}]}
    client.tell("textDocument/didChange", wrong)
    assert "expected text, got 5" in capsys.readouterr().err
    assert len(client.ask("textDocument/documentSymbol")) == 2


@pytest.mark.parametrize("length", ["-5", "abc", "", "9" * 5000, "999999999999999999"])
def test_a_length_that_is_none(length: str, capsys: Any) -> None:
    """If a length makes no sense, the server cannot know where the next message begins. A large
    length takes no memory."""
    status, found = answers(f"Content-Length: {length}\r\n\r\n".encode() + END)
    assert (status, found) == (1, [])
    assert "the server ends" in capsys.readouterr().err


def test_half_a_message() -> None:
    assert answers(framed({"id": 9, "method": "shutdown"})[:-5])[0] == 1
    assert answers(b"Content-Len")[0] == 1


def test_problems_are_shown_where_the_client_has_the_file(write: Write, tmp_path: Path) -> None:
    """Problems are shown in a file behind a symbolic link, in a text that has no file, and after
    another spelling of the file's URI."""
    file = write("main reactor { timer t(0, 1 foo) }")
    link = tmp_path / "link.lf"
    link.symlink_to(file)
    for uri in (link.as_uri(), "untitled:Untitled-1", file.as_uri().replace(".lf", "%2Elf")):
        sent: list[dict[str, Any]] = []
        server = Server(sent.append)
        opened = {"uri": uri, "text": file.read_text()}
        server.take({"method": "textDocument/didOpen", "params": {"textDocument": opened}})
        server.work(lambda: False)
        assert {m["params"]["uri"] for m in sent} == {uri}
        assert any(m["params"]["diagnostics"] for m in sent)


def test_a_client_that_goes_away() -> None:
    """The exit status shows that the input ended without `shutdown`."""
    assert serve(io.BytesIO(b""), io.BytesIO()) == 1


def test_the_command(write: Write) -> None:
    """A session runs over standard input and output, as with an editor."""
    path = write(TEXT.replace("new Source()", "new Sourse()"))
    document = {"uri": path.as_uri(), "text": path.read_text(), "languageId": "lf", "version": 1}
    with subprocess.Popen(
        [*COMMAND, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        send(server.stdin, {"id": 1, "method": "initialize", "params": {}})
        answer = read(server.stdout)
        assert answer is not None and answer["result"]["capabilities"]["hoverProvider"]
        send(server.stdin, {"method": "initialized", "params": {}})
        send(server.stdin, {"method": "textDocument/didOpen", "params": {"textDocument": document}})
        problems = read(server.stdout)
        assert problems is not None and len(problems["params"]["diagnostics"]) == 1
        send(server.stdin, {"id": 2, "method": "shutdown"})
        assert read(server.stdout) == {"jsonrpc": "2.0", "id": 2, "result": None}
        send(server.stdin, {"method": "exit"})
        assert server.wait() == 0


PARTS = """target C
reactor Source(size: int = 3) {
  output out: int
  state out: int = size
  timer t(0, 100 msec)
  reaction(t) -> out {=
    int again = self->out;
    lf_set(out, again); // out
  =}
}
reactor Sink {
  input[2] in: int
  reaction(in) {= for (int i = 0; i < in_width; i++) lf_print("in %d", in[i]->value); =}
}
"""
USES = """target C
import Source as Origin, Sink from "Parts.lf"
reactor More extends Origin { reaction(t) -> out {= lf_set(out, self->out); =} }
main reactor(size: int = 2) {
  s = new[size] More(size = size)
  plain = new Origin(size = 5)
  sink = new Sink()
  s.out -> sink.in
  reaction(plain.out) {= struct { int out; } x = { plain.out->value }; lf_print("%d", x.out); =}
}
"""


def edited(client: Client, at: str, new: str) -> dict[str, str]:
    """Returns the texts of the files after a rename of the name that ends with `at`."""
    found = client.ask("textDocument/rename", at, newName=new)
    texts = {}
    for uri, edits in found["changes"].items():
        lines = Path(uri.removeprefix("file://")).read_text().split("\n")
        for edit in sorted(edits, key=lambda e: e["range"]["start"]["character"], reverse=True):
            begin, end = edit["range"]["start"], edit["range"]["end"]
            row = lines[begin["line"]]
            lines[begin["line"]] = row[: begin["character"]] + new + row[end["character"] :]
        texts[Path(uri).name] = "\n".join(lines)
    return texts


@pytest.fixture
def two(write: Write) -> Client:
    """A client with the program USES, which imports from PARTS."""
    return Client(write(USES, Parts=PARTS), USES)


def test_rename_a_port_in_all_files(two: Client) -> None:
    """An output is renamed in its file, in a subclass and where it is connected and read; a state
    and a member of a struct that have the same name are not renamed."""
    texts = edited(two, "s.out", "value")
    assert texts["Parts.lf"] == PARTS.replace("output out", "output value").replace(
        "-> out {=", "-> value {="
    ).replace("lf_set(out,", "lf_set(value,")
    assert texts["Main.lf"] == USES.replace(
        "-> out {= lf_set(out,", "-> value {= lf_set(value,"
    ).replace("s.out", "s.value").replace("plain.out", "plain.value")


def test_rename_other_kinds(two: Client) -> None:
    texts = edited(two, "self->out", "kept")  # a state, which a subclass uses
    assert texts["Main.lf"] == USES.replace("self->out", "self->kept")
    assert texts["Parts.lf"] == PARTS.replace("state out", "state kept").replace(
        "self->out", "self->kept"
    )
    texts = edited(
        two, "main reactor(size", "count"
    )  # the main reactor's parameter, not that of Source
    assert list(texts) == ["Main.lf"]
    assert texts["Main.lf"] == USES.replace("(size: int", "(count: int").replace(
        "[size]", "[count]"
    ).replace("= size)", "= count)")
    texts = edited(two, "Origin(size", "start")  # the parameter of Source
    assert "Source(start: int = 3)" in texts["Parts.lf"] and "= start\n" in texts["Parts.lf"]
    assert "More(start = size)" in texts["Main.lf"] and "Origin(start = 5)" in texts["Main.lf"]
    assert set(edited(two, "sink.in", "put")) == {"Parts.lf", "Main.lf"}
    assert "i < put_width" in edited(two, "sink.in", "put")["Parts.lf"]
    assert edited(two, "  plain", "other")["Main.lf"].count("other") == 3


def test_rename_reactors(two: Client) -> None:
    texts = edited(two, "new Sink", "Drain")
    assert texts["Parts.lf"] == PARTS.replace("Sink", "Drain")
    assert texts["Main.lf"] == USES.replace("Sink", "Drain")
    assert edited(two, "as Origin", "Begin") == {"Main.lf": USES.replace("Origin", "Begin")}
    texts = edited(two, "import Source", "Spring")
    assert texts["Main.lf"] == USES.replace("Source as", "Spring as")
    assert texts["Parts.lf"] == PARTS.replace("Source(", "Spring(")


def test_renames_that_are_refused(two: Client) -> None:
    """A rename that would make an error changes nothing; the answer says why."""

    def refused(at: str, new: str, text: str = USES) -> str:
        two.type(text)
        given = {"textDocument": {"uri": two.path.as_uri()}, "newName": new}
        before = text[: text.index(at) + len(at)]
        line = before.count("\n")
        place = {"line": line, "character": len(before.rpartition("\n")[2])}
        two.server.take(
            {"id": 1, "method": "textDocument/rename", "params": {**given, "position": place}}
        )
        assert two.sent[-1]["error"]["code"] == -32803
        return str(two.sent[-1]["error"]["message"])

    assert "cannot be a name" in refused("s.out", "1st")
    assert "something else called 't'" in refused("s.out", "t")
    assert "a second reactor called 'Sink'" in refused("reactor More", "Sink")
    assert "is not a name" in refused("struct { int out", "x")
    assert "has errors" in refused("s.out", "x", USES.replace("new Sink()", "new Sink("))
    assert two.ask("textDocument/prepareRename", "int = 2") is None
    two.type(USES)
    assert two.ask("textDocument/prepareRename", "s.out")["start"] == {"line": 7, "character": 4}


def test_the_diagram_as_a_command(client: Client) -> None:
    """A program is drawn as a page; so is a causality loop, which is also reported."""

    def draws(command: str) -> str | None:
        given = {"command": command, "arguments": [client.path.as_uri()]}
        client.server.take({"id": 7, "method": "workspace/executeCommand", "params": given})
        found: str | None = client.sent[-1]["result"]
        return found

    assert draws("weft.lf.diagram") == client.path.with_suffix(".html").as_uri()
    assert '"loop":null' in client.path.with_suffix(".html").read_text()
    again = "reactor A { input i: int output o: int reaction(i) -> o {= =} }\n"
    client.type(f"target C\n{again}main reactor {{ a = new A() a.o -> a.i }}\n")
    assert draws("weft.lf.diagram") is not None
    assert client.sent[-2]["method"] == "window/showMessage"
    assert '"reactions":["Main.a#0"]' in client.path.with_suffix(".html").read_text()
    assert draws("weft.lf.graph") is None
    assert draws("weft.lf.other") is None
