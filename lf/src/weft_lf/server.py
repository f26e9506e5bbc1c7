"""`weft lf serve`: a language server, over standard input and output.

Invariants
- The server looks for problems when no message waits. Therefore only the latest text is checked
  while the user types.
- Problems that are found at once (syntax, names, types, loops) are shown at once; the messages of
  the C compiler about the bodies follow later.
- A request that cannot be served gets null or an empty list. An unknown method is answered with an
  error, and so is input that is not a message or makes no sense. The server continues after such
  input, unless it cannot determine where the next message begins.
- In messages, positions count from 0, in units of UTF-16, as in the protocol. In the rest of the
  code, places count from 1, in characters (places.py).
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlparse

from weft_lf import places, renames
from weft_lf.build import check_bodies, project, target_of
from weft_lf.elaborate import elaborate
from weft_lf.errors import LfError, Problem, Span
from weft_lf.layouter import laid_out
from weft_lf.load import NO_MAIN, Loaded, load, parts
from weft_lf.model import Model
from weft_lf.ticks import check, tick_of

KINDS = {  # Named.kind of places.py → the protocol's kinds: of a completion, of a symbol
    "reactor": (7, 5),
    "port": (5, 8),
    "state": (6, 13),
    "parameter": (6, 13),
    "action": (23, 24),
    "timer": (23, 24),
    "watchdog": (23, 24),
    "instance": (9, 19),
    "mode": (20, 10),
    "method": (2, 6),
    "reaction": (3, 12),
    "function": (3, 12),
    "property": (10, 7),
    "word": (14, 13),
}
UNREADABLE, NO_REQUEST, UNKNOWN, NO_SENSE = -32700, -32600, -32601, -32602
REFUSED = -32803
MAX_FILES = 5000  # the limit on the files of a project that a rename searches
DRAW = ["weft.lf.graph", "weft.lf.diagram"]  # the commands that draw a program
LONGEST = 1 << 28  # in bytes; a text of an editor is shorter
Message = dict[str, Any]


@dataclass
class Document:
    """An open file. `loaded` belongs to its last text that could be read; `model` is None if its
    last text has an error.
    """

    path: Path
    text: str
    loaded: Loaded | None = None
    model: Model | None = None
    dirty: bool = True


def path_of(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path)).resolve()


def text_of(given: Message) -> str:
    text = given["text"]
    if not isinstance(text, str):
        raise TypeError(f"expected text, got {text!r}")
    return text


def errors(path: Path, opened: dict[Path, str]) -> list[Problem]:
    """Returns the errors of a file. The file may have a main reactor or not."""
    try:
        elaborate(load(path, opened=opened))
        return []
    except LfError as error:
        found = error.problems
    if any(p.message == NO_MAIN for p in found):
        try:
            found = parts(path, opened=opened)[1]
        except LfError as error:
            found = error.problems
    return [p for p in found if p.severity == "error"]


class Server:
    """Answers the messages of a client. The server calls `send` with each message to the client."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self.send = send
        self.open: dict[Path, Document] = {}
        self.uris: dict[Path, str] = {}  # opened document → its name at the client
        self.shown_in: dict[Path, set[str]] = {}  # document → the files whose problems are shown
        self.ended = False
        self.asked_to_end = False

    # --- messages ---------------------------------------------------------------------------------

    def take(self, message: Message | Unreadable) -> None:
        """Handles a message. A request is answered before the call returns."""
        if isinstance(message, Unreadable):
            self.fail(None, message.code, str(message))
            return
        method = str(message.get("method", "")).replace("/", "_").replace("$", "")
        does = getattr(self, f"on_{method}", None)
        given = message.get("params") or {}
        if does is None:
            if "id" in message and "method" in message:
                self.fail(message["id"], UNKNOWN, f"there is no method {message['method']}")
            return
        try:
            result = does(given)
        except Refused as error:
            self.fail(message.get("id"), REFUSED, str(error))
            return
        except Exception as error:  # An editor relies on the server, so the server continues.
            traceback.print_exc()
            if "id" in message:
                text = f"{message['method']}: {type(error).__name__}: {error}"
                self.fail(message["id"], NO_SENSE, text)
            return
        if "id" in message:
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def fail(self, request: Any, code: int, text: str) -> None:
        error = {"code": code, "message": text}
        self.send({"jsonrpc": "2.0", "id": request, "error": error})

    def on_initialize(self, given: Message) -> Message:
        can = {
            "textDocumentSync": {"openClose": True, "change": 1, "save": True},
            "completionProvider": {"triggerCharacters": [".", ">"]},
            "definitionProvider": True,
            "hoverProvider": True,
            "documentSymbolProvider": True,
            "documentFormattingProvider": True,
            "renameProvider": {"prepareProvider": True},
            "executeCommandProvider": {"commands": DRAW},
        }
        return {"capabilities": can, "serverInfo": {"name": "weft lf"}}

    def on_shutdown(self, given: Message) -> None:
        self.asked_to_end = True

    def on_exit(self, given: Message) -> None:
        self.ended = True

    def on_textDocument_didOpen(self, given: Message) -> None:
        path = path_of(given["textDocument"]["uri"])
        self.uris[path] = given["textDocument"]["uri"]
        self.open[path] = Document(path, text_of(given["textDocument"]))
        self.on_textDocument_didSave(given)

    def on_textDocument_didChange(self, given: Message) -> None:
        document = self.open.get(path_of(given["textDocument"]["uri"]))
        if document is not None and given["contentChanges"]:
            document.text = text_of(given["contentChanges"][-1])
            self.on_textDocument_didSave(given)

    def on_textDocument_didSave(self, given: Message) -> None:
        for document in self.open.values():  # Files that import this file see its text too.
            document.dirty = True

    def on_textDocument_didClose(self, given: Message) -> None:
        path = path_of(given["textDocument"]["uri"])
        if self.open.pop(path, None) is not None:
            self.publish(path, [])

    # --- problems ---------------------------------------------------------------------------------

    def work(self, waiting: Callable[[], bool]) -> None:
        """Checks the documents that have changed, until a message waits."""
        for document in list(self.open.values()):
            if document.dirty and not waiting():
                document.dirty = False
                try:
                    self.look(document, waiting)
                except Exception:  # for the reason given in take()
                    traceback.print_exc()

    def look(self, document: Document, waiting: Callable[[], bool]) -> None:
        problems = self.problems(document)
        self.publish(document.path, problems)
        if document.model is None or any(p.severity == "error" for p in problems):
            return
        if waiting():
            document.dirty = True
            return
        bodies = self.bodies(document.model)
        if bodies:
            self.publish(document.path, [*problems, *bodies])

    def problems(self, document: Document) -> list[Problem]:
        opened = {path: d.text for path, d in self.open.items()}
        document.model = None
        try:
            program = load(document.path, opened=opened)
            document.loaded = program.main_file
            model = elaborate(program)
            target = target_of(model, "")
            model.program.config.check_for(target)
            found = [*program.warnings, *check(model, tick_of(program.config, target))]
            document.model = model
            return found
        except LfError as error:
            found = error.problems
        library = any(p.message == NO_MAIN for p in found)
        try:  # Reads the text of the document, so that requests about it can be answered.
            loaded, own = parts(document.path, opened=opened)
        except LfError:
            return found
        document.loaded = loaded or document.loaded
        return own if library else found

    def bodies(self, model: Model) -> list[Problem]:
        try:
            return check_bodies(model, "") or []
        except LfError as error:
            return error.problems

    def publish(self, path: Path, problems: list[Problem]) -> None:
        """Shows the problems, each in its file, in place of the problems that were shown before."""
        by_file: dict[str, list[Problem]] = {str(path): []}
        for file in self.shown_in.get(path, ()):
            by_file[file] = []
        for problem in problems:
            by_file.setdefault(problem.span.file or str(path), []).append(problem)
        self.shown_in[path] = {file for file, found in by_file.items() if found}
        for file, found in by_file.items():
            shown = [self.diagnostic(p) for p in found]
            given = {"uri": self.uri_of(Path(file)), "diagnostics": shown}
            method = "textDocument/publishDiagnostics"
            self.send({"jsonrpc": "2.0", "method": method, "params": given})

    def uri_of(self, path: Path) -> str:
        return self.uris.get(path) or path.as_uri()

    def diagnostic(self, problem: Problem) -> Message:
        text = f"{problem.message}\n{problem.hint}" if problem.hint else problem.message
        severity = 1 if problem.severity == "error" else 2
        span = replace(
            problem.span, line=max(1, problem.span.line), column=max(1, problem.span.column)
        )
        return {
            "range": self.range(span),
            "severity": severity,
            "source": "weft lf",
            "message": text,
        }

    # --- positions --------------------------------------------------------------------------------

    def line_of(self, file: str, line: int) -> str:
        document = self.open.get(Path(file))
        try:
            text = document.text if document else Path(file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return ""
        lines = text.split("\n")
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def range(self, span: Span) -> Message:
        row = self.line_of(span.file, span.line)

        def position(column: int) -> Message:
            units = len(row[:column].encode("utf-16-le", "surrogatepass")) // 2
            return {"line": span.line - 1, "character": units + max(0, column - len(row))}

        begin = span.column - 1
        return {"start": position(begin), "end": position(begin + span.length)}

    def location(self, span: Span) -> Message:
        return {"uri": self.uri_of(Path(span.file)), "range": self.range(span)}

    def asked(self, given: Message) -> tuple[Document, Loaded, places.Place] | None:
        """Returns the document and the place about which a request asks, and the document's loaded
        file; None if the document is not open or does not load."""
        document = self.open.get(path_of(given["textDocument"]["uri"]))
        if document is None:
            return None
        if document.loaded is None:
            self.problems(document)
        if document.loaded is None:
            return None
        line = given["position"]["line"] + 1
        row = self.line_of(str(document.path), line).encode("utf-16-le", "surrogatepass")
        before = row[: 2 * given["position"]["character"]].decode("utf-16-le", "replace")
        at = places.place(document.text, str(document.path), line, len(before) + 1)
        return document, document.loaded, at

    # --- requests ---------------------------------------------------------------------------------

    def on_textDocument_completion(self, given: Message) -> list[Message]:
        asked = self.asked(given)
        if asked is None:
            return []
        _, loaded, at = asked
        found = {n.name: n for n in reversed(places.completions(loaded, at))}
        return [
            {"label": n.name, "kind": KINDS[n.kind][0], "detail": n.text} for n in found.values()
        ]

    def on_textDocument_definition(self, given: Message) -> Message | None:
        asked = self.asked(given)
        if asked is None:
            return None
        _, loaded, at = asked
        found = places.meaning(loaded, at)
        span = found.span if found else places.imported(loaded, at)
        return self.location(span) if span else None

    def on_textDocument_hover(self, given: Message) -> Message | None:
        asked = self.asked(given)
        if asked is None:
            return None
        document, loaded, at = asked
        found = places.meaning(loaded, at)
        text = found.text if found else ""
        if not text and document.model is not None:
            text = places.reaction_at(loaded, document.model, at)
        return {"contents": {"kind": "plaintext", "value": text}} if text else None

    def on_textDocument_documentSymbol(self, given: Message) -> list[Message]:
        asked = self.asked({**given, "position": {"line": 0, "character": 0}})

        def symbol(one: places.Named) -> Message:
            place = self.range(one.span)
            kind = KINDS[one.kind][1]
            return {
                "name": one.name or "?",
                "detail": one.text,
                "kind": kind,
                "range": place,
                "selectionRange": place,
            }

        if asked is None:
            return []
        found = places.symbols(asked[1])
        return [{**symbol(r), "children": [symbol(m) for m in own]} for r, own in found]

    def on_textDocument_formatting(self, given: Message) -> list[Message]:
        document = self.open.get(path_of(given["textDocument"]["uri"]))
        if document is None:
            return []
        text = document.text.replace("\r\n", "\n")
        try:
            found = laid_out(text, str(document.path))
        except LfError:  # The editor shows the problems of the program already.
            return []
        end = {"line": text.count("\n") + 1, "character": 0}
        whole = {"start": {"line": 0, "character": 0}, "end": end}
        return [] if found == text else [{"range": whole, "newText": found}]

    def on_textDocument_prepareRename(self, given: Message) -> Message | None:
        asked = self.asked(given)
        if asked is None:
            return None
        document, _, at = asked
        fresh, _ = parts(document.path, opened=self.texts())
        found = fresh and renames.target_at(fresh, at.span.line, at.span.column, at.word)
        return self.range(at.span) if found else None

    def on_textDocument_rename(self, given: Message) -> Message:
        """Returns the edits by which the name at a place becomes another, in all files of the
        project. A rename that would make an error, or that might miss a place, is refused."""
        asked, new = self.asked(given), given["newName"]
        if asked is None:
            raise Refused("the file has errors; mend these first")
        document, _, at = asked
        if not (isinstance(new, str) and renames.NAME.fullmatch(new)):
            raise Refused(f"{new!r} cannot be a name")
        opened = self.texts()
        loaded, _ = parts(document.path, opened=opened)
        if loaded is None:
            raise Refused("the file has errors; mend these first")
        target = renames.target_at(loaded, at.span.line, at.span.column, at.word)
        if target is None:
            raise Refused(f"'{at.word}' is not a name that can be renamed here")
        edits: dict[Path, list[Span]] = {}
        for path in self.project_of(document.path):
            if spans := self.places_in(path, target, opened):
                edits[path] = spans
        texts = {p: self.text_at(p, opened) for p in edits}
        changed = {p: renames.renamed(t, edits[p], new) for p, t in texts.items()}
        for path in {document.path, *edits}:
            before, after = errors(path, opened), errors(path, {**opened, **changed})
            if len(after) > len(before):
                told = [p.message for p in before]
                text = next((p.message for p in after if p.message not in told), after[0].message)
                raise Refused(f"{path.name} would have an error: {text}")
        return {
            "changes": {
                self.uri_of(p): [{"range": self.range(s), "newText": new} for s in spans]
                for p, spans in edits.items()
            }
        }

    def texts(self) -> dict[Path, str]:
        return {path: document.text for path, document in self.open.items()}

    def text_at(self, path: Path, opened: dict[Path, str]) -> str:
        try:
            found = opened.get(path)
            return path.read_text(encoding="utf-8-sig") if found is None else found
        except (OSError, UnicodeDecodeError):
            return ""

    def project_of(self, path: Path) -> list[Path]:
        """Returns the file and the other files of its project."""
        root = project(path)[0].resolve()
        made = {"src-gen", "bin", "build", "node_modules"}
        others = (p for p in root.rglob("*.lf") if not made & set(p.relative_to(root).parts))
        return list(dict.fromkeys([path, *sorted(islice(others, MAX_FILES))]))

    def places_in(self, path: Path, target: renames.Target, opened: dict[Path, str]) -> list[Span]:
        """Returns the places of `target` in a file. Raises Refused for a file with errors that is,
        or names, the file of `target`."""
        text = self.text_at(path, opened)
        if target.name not in text:
            return []
        try:
            loaded, _ = parts(path, opened=opened)
        except LfError:
            loaded = None
        if loaded is not None:
            return renames.places_of(loaded, target)
        if str(path) == target.file or Path(target.file).name in text:
            raise Refused(f"{path.name} has errors; mend these first")
        return []

    def on_workspace_executeCommand(self, given: Message) -> str | None:
        """Serves the commands weft.lf.graph URI and weft.lf.diagram URI: draws the program as
        FILE.svg, or as the page FILE.html. Returns the URI of the drawing; None if nothing was
        drawn. A causality loop is drawn on the page, and shown as a message."""
        from weft_lf.drawing import draw_page
        from weft_lf.graph import draw
        from weft_lf.order import Loop

        if given.get("command") not in DRAW or not given.get("arguments"):
            return None
        path = path_of(str(given["arguments"][0]))
        try:
            opened = {p: d.text for p, d in self.open.items()}
            model = elaborate(load(path, opened=opened))
            if given["command"] == DRAW[0]:
                return draw(model, path.with_suffix(".svg")).as_uri()
            return draw_page(model, path.with_suffix(".html")).as_uri()
        except LfError as error:
            text = error.problems[0].message
            shown = {"type": 1, "message": text}
            self.send({"jsonrpc": "2.0", "method": "window/showMessage", "params": shown})
            if isinstance(error, Loop) and given["command"] == DRAW[1]:
                return draw_page(error, path.with_suffix(".html")).as_uri()
            return None


class Refused(Exception):
    """Raised if a request makes sense but cannot be served safely; the text is for the user."""


class Unreadable(Exception):
    """Raised if the input is not a message, and the next message can be read."""

    code = UNREADABLE


class Lost(Exception):
    """Raised if it is not known where the next message begins."""


def read(stream: BinaryIO) -> Message | None:
    """Returns the next message; None at the end of the stream.

    Raises:
        Unreadable: the input is not a message. Lost: it is not known where the next one begins.
    """
    length: int | None = None
    while line := stream.readline():
        head = line.decode("ascii", "replace").strip()
        if not head:
            if length is None:
                raise Unreadable("a message has no Content-Length")
            body = stream.read(length)
            return parsed(body) if len(body) == length else None
        name, _, value = head.partition(":")
        if name.strip().lower() == "content-length":
            digits = value.strip()
            if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
                raise Lost(f"Content-Length is {digits[:40]!r}")
            length = int(digits)
            if length > LONGEST:
                raise Lost(f"a message of {length} bytes is too long")
    return None


def parsed(body: bytes) -> Message:
    """Returns the message in the body. Raises Unreadable if there is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"a message is not JSON: {error}") from None
    if not isinstance(found, dict):
        wrong = Unreadable("a message is no object")
        wrong.code = NO_REQUEST
        raise wrong
    return found


def write(stream: BinaryIO, message: Message) -> None:
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()


def serve(source: BinaryIO, sink: BinaryIO) -> int:
    """Serves one client until the client sends "exit" or its stream ends. Returns the exit status:
    0 if the client has asked for a shutdown before that, otherwise 1.
    """
    waiting: queue.Queue[Message | Unreadable | None] = queue.Queue()

    def reads() -> None:
        message: Message | Unreadable | None = {}
        while message is not None:
            try:
                message = read(source)
            except Unreadable as error:
                message = error
            except Lost as error:
                print(f"weft lf serve: {error}; the server ends", file=sys.stderr)
                message = None
            waiting.put(message)
            if isinstance(message, dict) and message.get("method") == "exit":
                return

    reader = threading.Thread(target=reads, daemon=True)
    reader.start()
    server = Server(lambda message: write(sink, message))
    while not server.ended:
        message = waiting.get()
        if message is None:
            break
        server.take(message)
        if waiting.empty():
            server.work(lambda: not waiting.empty())
    reader.join()
    return int(not server.asked_to_end)
