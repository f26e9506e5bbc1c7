"""The visitor's part of a look from outside (rules 14.9, 14.10): finds a program's socket (its
door), asks questions, and combines the answers of several OS processes. `weft ps` and `weft top`
print the result.

    doors() ──► the programs of this user        Visit(pid).ask() ──► one OS process's answer
    look(pid) ──► this OS process and those that it has started ──► Network

Invariants
- If something is wrong, NoLook says in one sentence what to do.
- A Visit has one question under way at a time, and waits for each answer only for a limited time.
- Code that finds the socket of a program that has died removes the socket.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft._watching import far_ends as _far_ends
from weft._watching import verdict as _verdict
from weft._watching.look_frames import ANSWER, BadMessage, Reader, message

PATIENCE = 3.0  #: how many seconds to wait for an answer after the interval
AT_ONCE = 8  #: how many visitors a program answers at the same time (kAtOnce in runtime/door.cpp)


class NoLook(Exception):
    """Raised if a program cannot be looked at. The text says why, and what to do."""

    def __init__(self, text: str, pid: int | None = None) -> None:
        super().__init__(text)
        self.pid = pid


# --- where the doors are --------------------------------------------------------------------------


def directory() -> Path:
    """Returns the directory in which the programs of this user have their sockets.

    Raises:
        NoLook: there is no such directory.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    if not Path(base).is_dir():
        raise NoLook(
            f"this user has no runtime directory ({base}), as in many containers, so no program can be "
            "looked at: make one that only you can enter, and set XDG_RUNTIME_DIR to it for the "
            "program and for weft"
        )
    path = Path(base) / "weft"
    with contextlib.suppress(FileNotFoundError):
        info = path.stat()
        if info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise NoLook(
                f"{path} can be entered by other users: make it private (chmod 700), or remove it"
            )
    if len(str(path)) > 90:
        raise NoLook(
            f"{path} is too long for a socket: set XDG_RUNTIME_DIR to a shorter path for the program "
            "and for weft"
        )
    return path


def doors() -> list[int]:
    """Returns the OS processes of this user that can be looked at. Sockets of OS processes that
    have died are removed.

    Raises:
        NoLook: see directory().
    """
    found = []
    for at in directory().glob("*.sock"):
        if not at.stem.isdecimal():
            continue
        pid = int(at.stem)
        if not has_ended(pid) or _answers(at):
            found.append(pid)
        else:
            with contextlib.suppress(OSError):
                at.unlink()
    return sorted(found)


def _answers(at: Path) -> bool:
    """Returns whether a program listens at this socket. The program can run in a container whose
    processes are not visible here.
    """
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.2)
        try:
            s.connect(str(at))
        except OSError:
            return False
    return True


# --- facts from the system ------------------------------------------------------------------------


def _stat(pid: int | str, *more: object) -> tuple[str, list[str]] | None:
    """Returns the name of an OS process, or of its thread (`"task", tid`), and the fields after the
    name; None if the process does not exist.
    """
    try:
        text = Path("/proc", str(pid), *map(str, more), "stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()


def has_ended(pid: int) -> bool:
    """Returns whether the OS process has ended, even if its parent has not waited for it yet."""
    found = _stat(pid)
    return found is None or found[1][0] in "ZX"


def parent_of(pid: int) -> int:
    found = _stat(pid)
    return int(found[1][1]) if found else 0


def seconds_since_start(pid: int) -> float | None:
    found = _stat(pid)
    if found is None:
        return None
    with contextlib.suppress(OSError, ValueError, IndexError):
        up = float(Path("/proc/uptime").read_text().split()[0])
        return max(up - int(found[1][19]) / os.sysconf("SC_CLK_TCK"), 0.0)
    return None


@dataclass
class Used:
    """The resources of the machine that an OS process has used."""

    at: float
    cpu: float  #: seconds of CPU time
    memory: int  #: bytes


def used(pid: int) -> Used | None:
    found = _stat(pid)
    if found is None:
        return None
    fields = found[1]
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return Used(time.monotonic(), cpu, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))


def threads(pid: int) -> list[tuple[str, str, float]]:
    """Returns the threads of an OS process: the name, "runs" or "sleeps", and seconds of CPU
    time.
    """
    rows = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found = _stat(pid, "task", task.name)
            if found is not None:
                name, fields = found
                cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                rows.append((name, "runs" if fields[0] == "R" else "sleeps", cpu))
    return rows


def why_not(pid: int) -> str:
    """Returns why this OS process has no door."""
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return f"there is no OS process {pid}: weft ps lists those that can be looked at"
    if owner != os.geteuid():
        return f"OS process {pid} is another user's (uid {owner}): only that user can look at it"
    with contextlib.suppress(OSError):
        around = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if b"WEFT_INSPECT=0" in around:
            return f"OS process {pid} was started with WEFT_INSPECT=0: start it without that"
        theirs = next((v[16:] for v in around if v.startswith(b"XDG_RUNTIME_DIR=")), b"")
        if theirs != os.environ.get("XDG_RUNTIME_DIR", "").encode():
            where = theirs.decode(errors="replace") or "none"
            return f"OS process {pid} has another XDG_RUNTIME_DIR ({where}): set that one for weft"
    return (
        f"OS process {pid} is not a Weft program, has not begun its first run, or is at its end: weft ps "
        "lists those that can be looked at"
    )


def _is_python(pid: int) -> bool:
    """Returns whether this OS process runs Python."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            if line.rpartition("/")[2].startswith(("python", "libpython")):
                return True
    return False


def _no_answer(pid: int, seconds: float) -> str:
    if has_ended(pid):
        return f"OS process {pid} has ended"
    if (found := _stat(pid)) and found[1][0] in "Tt":
        return f"OS process {pid} is stopped (by SIGSTOP, or a debugger): kill -CONT {pid} lets it go on"
    before = threads(pid)
    visitors = [name for name, _, _ in before].count("weft look")
    if visitors >= AT_ONCE:
        return (
            f"OS process {pid} is looked at by {visitors} others already, and answers the next once one "
            "of them has gone: end one"
        )
    time.sleep(0.1)
    grown = [
        f"{name!r}"
        for (name, state, cpu), (_, _, earlier) in zip(threads(pid), before, strict=False)
        if cpu > earlier or state == "runs"
    ]
    at = (
        f"; of its threads these run: {', '.join(grown[:8])}"
        if grown
        else "; none of its threads runs"
    )
    why = (
        "code that does not let go of the interpreter's lock (a C extension) keeps everything else waiting"
        if _is_python(pid)
        else "the program is at its end (a destructor, or a function of atexit, still runs)"
    )
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    busy = f", or the machine is too busy (load {load:.0f}, {cpus} CPUs): look again"
    return f"OS process {pid} does not answer within {seconds:g} s: {why}{busy if load > 2 * cpus else ''}{at}"


# --- asking ---------------------------------------------------------------------------------------


class Visit:
    """A connection with one OS process, for questions and answers.

    Raises:
        NoLook: the OS process has no door, or the door does not open.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        at = directory() / f"{pid}.sock"
        self._reader = Reader(ANSWER)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        try:
            self._socket.connect(str(at))
        except PermissionError:
            self._socket.close()
            raise NoLook(f"{at} is another user's: only that user can look at it", pid) from None
        except TimeoutError:
            self._socket.close()
            raise NoLook(_no_answer(pid, PATIENCE), pid) from None
        except OSError:
            self._socket.close()
            if has_ended(pid):
                with contextlib.suppress(OSError):
                    at.unlink()
            raise NoLook(why_not(pid), pid) from None

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, ask: str, **more: Any) -> None:
        try:
            self._socket.sendall(message({"ask": ask, **more}))
        except OSError:
            raise NoLook(self._ended(), self.pid) from None

    def receive(self, seconds: float) -> dict[str, Any]:
        """Returns the answer to the question that was sent. Waits for at most `seconds` seconds."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise NoLook(_no_answer(self.pid, seconds), self.pid)
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 16)
                found = self._reader.feed(data)
            except TimeoutError:
                continue
            except BadMessage as error:
                raise NoLook(
                    f"cannot look into OS process {self.pid}: it has sent {error}", self.pid
                ) from None
            except OSError:
                data, found = b"", []
            if not data:
                raise NoLook(self._ended(), self.pid)
            if found:
                if "error" in found[0]:
                    raise NoLook(self._refused(str(found[0]["error"])), self.pid)
                return found[0]

    def ask(self, ask: str, **more: Any) -> dict[str, Any]:
        self.send(ask, **more)
        return self.receive(more.get("interval", 0) + PATIENCE)

    def _refused(self, sentence: str) -> str:
        who = f"OS process {self.pid}"
        if sentence.startswith("the question must be"):
            who += " has an older version of Weft, which does not know this question; it"
        return f"{who} says: {sentence}"

    def _ended(self) -> str:
        until = time.monotonic() + 1  # the OS process might be ending
        while not (ended := has_ended(self.pid)) and time.monotonic() < until:
            time.sleep(0.01)
        if not ended:
            return f"OS process {self.pid} does not say anything more: ask again"
        return f"OS process {self.pid} has ended"


# --- several OS processes together ----------------------------------------------------------------


@dataclass
class Row:
    """A process of the network, as `weft top` shows it."""

    path: str
    pid: int
    kind: str
    now: str
    seconds: float  #: how long the process has been in its state
    #: Whether it was already in this state at the first look, so that `seconds` might be too small.
    before: bool
    where: str  #: what the process does: "read 'c' at shop.py:12"
    share: dict[str, float]
    cpu: float | None  #: the share of one processor that it uses
    rate: float | None  #: operations a second
    reads_from: list[str]  #: names of channels
    writes_to: list[str]
    holds: list[tuple[str, bool]]  #: the ends that it holds: Pipe.id, and whether the end writes
    waits: list[tuple[str, bool]]  #: the ends at which it waits
    host: str = ""  #: the host of a network, or the board, on which it runs

    def part(self, *states: str) -> float:
        return sum(self.share.get(state, 0.0) for state in states)


@dataclass
class Pipe:
    """A channel of the network."""

    id: str  #: identifies the channel, since two channels can have one name
    name: str
    pid: int
    rate: float | None  #: values a second; None if only another program knows it
    depth: int
    capacity: int
    dropped: int
    reading: float  #: the share of samples in which a process waited to read
    writing: float
    readers: list[str] = field(default_factory=list)  #: paths of the processes that hold an end
    writers: list[str] = field(default_factory=list)


@dataclass
class OsProcess:
    pid: int
    program: str
    cpu: float | None  #: the share of one processor that it uses
    memory: int
    version: str = ""
    host: str = ""  #: the host of a network on which it runs


@dataclass
class Host:
    """A host of a network that is looked at."""

    name: str
    state: str  #: "answers", "silent" or "gone"
    text: str = ""  #: a sentence that says why the host does not answer


@dataclass
class Stuck:
    """A process that can never go on (rule 14.3)."""

    path: str
    pid: int
    #: paths of the processes that hold ends at the places where this process waits
    waits_for: list[str]


@dataclass
class Network:
    seconds: float
    rows: list[Row]
    pipes: list[Pipe]
    os_processes: list[OsProcess]
    nodes: list[_verdict.Node]
    silent: list[str]  #: a sentence for each OS process that did not answer
    left_out: int = 0  #: how many processes have no row
    stuck: list[Stuck] = field(default_factory=list)  #: the stuck processes, if they were asked for
    hosts: list[Host] = field(default_factory=list)  #: all hosts, in a look at a network

    @property
    def verdict(self) -> _verdict.Verdict:
        return _verdict.verdict(self.nodes)


def family(pid: int) -> list[int]:
    """Returns the OS process `pid`, and the OS processes that it has started and that can be looked
    at.
    """
    with_door = set(doors())
    found = [pid]
    for other in sorted(with_door - {pid}):
        at, steps = other, 0
        while at > 1 and at != pid and steps < 64:
            at, steps = parent_of(at), steps + 1
        if at == pid:
            found.append(other)
    return found


class Looking:
    """Looks at a program, any number of times.

    Raises:
        NoLook: the program cannot be looked at.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._visits: dict[int, Visit] = {pid: Visit(pid)}

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, *_: object) -> None:
        for visit in self._visits.values():
            visit.__exit__()

    def look(self, interval: float = 0.1, most: int = 2_000) -> Network:
        silent = self._meet_all()
        before = {pid: used(pid) for pid in self._visits}
        asked = []
        for pid, visit in list(self._visits.items()):
            try:
                visit.send("look", interval=interval, most=most)
                asked.append(pid)
            except NoLook as error:
                self._lost(pid, error, silent)
        answers: dict[int, dict[str, Any]] = {}
        until = time.monotonic() + interval + PATIENCE
        for pid in asked:
            try:
                answers[pid] = self._visits[pid].receive(max(until - time.monotonic(), 0.1))
            except NoLook as error:
                self._lost(pid, error, silent)
        return together(self.pid, answers, silent, before)

    def stuck(self) -> list[Stuck]:
        """Returns the processes that can never go on. The program itself finds them, also in its
        hosts.

        Raises:
            NoLook: the program does not answer, or its version of Weft is too old for this
                question.
        """
        answer = self._visits[self.pid].ask("stuck")
        try:
            return [
                Stuck(path, self.pid if pid is None else pid, waits_for)
                for path, pid, waits_for in answer["stuck"]
            ]
        except (KeyError, TypeError, ValueError):
            raise NoLook(_unknown_form(self.pid, answer), self.pid) from None

    def _meet_all(self) -> list[str]:
        silent: list[str] = []
        for pid in family(self.pid):
            if pid not in self._visits:
                try:
                    self._visits[pid] = Visit(pid)
                except NoLook as error:
                    if not has_ended(pid):
                        silent.append(str(error))
        return silent

    def _lost(self, pid: int, error: NoLook, silent: list[str]) -> None:
        self._visits.pop(pid).__exit__()
        if pid == self.pid:
            raise error
        if not has_ended(pid):
            silent.append(str(error))


def together(
    root: int, answers: dict[int, dict[str, Any]], silent: list[str], before: dict[int, Used | None]
) -> Network:
    """Returns the answers of several OS processes as one network. A process that waits for its call
    in another OS process is shown once, as the call, with the call's state there.

    Raises:
        NoLook: an answer lacks what this version of Weft needs.
    """
    try:
        return _together(root, answers, silent, before)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        for pid, answer in answers.items() if len(answers) > 1 else ():
            together(pid, {pid: answer}, [], {})  # raises NoLook if this answer is the one at fault
        raise NoLook(_unknown_form(root, answers.get(root, {})), root) from None


def _unknown_form(pid: int, answer: dict[str, Any]) -> str:
    return (
        f"OS process {pid} answers in a form that this weft does not know (its Weft is "
        f"{answer.get('version', 'of an unknown version')}): take the weft command of the program's "
        "own version"
    )


def _together(
    root: int, answers: dict[int, dict[str, Any]], silent: list[str], before: dict[int, Used | None]
) -> Network:
    # (pid, call) → the path of the process that waits for the call
    paths: dict[tuple[int, str], str] = {}
    # Pid → the processes that are shown as calls of another OS process.
    away: dict[int, set[int]] = {}
    moved: dict[int, dict[int, str]] = {}  # pid → for each process its path in the whole network
    pending = [root, *(pid for pid in answers if pid != root)]
    for pid in pending:  # parents first: the root, then the other pids in ascending order
        if pid in answers:
            moved[pid] = _moved(pid, answers[pid], paths)
            away[pid] = {
                int(number)
                for number, (there, _) in answers[pid]["away"].items()
                if there in answers
            }
            for number, (there, call) in answers[pid]["away"].items():
                if int(number) in moved[pid]:
                    paths[there, call] = moved[pid][int(number)]
    names = {pid: {k: c["name"] for k, c in a["channels"].items()} for pid, a in answers.items()}
    many = _far_ends.in_many(answers)
    lives = {path: life for a in answers.values() for path, life in a.get("lives", {}).items()}
    rows: list[Row] = []
    nodes: list[_verdict.Node] = []
    pipes: dict[str, Pipe] = {}
    for pid, answer in answers.items():
        ids = {
            key: name if name in many else f"{name} {pid}:{key}" for key, name in names[pid].items()
        }
        for key, c in answer["channels"].items():
            _add_pipe(pipes, ids[key], pid, c)
        for one in answer["processes"]:
            if one["id"] in away[pid] or one["id"] not in moved[pid]:
                continue
            path = moved[pid][one["id"]]
            if board := one.get("board", ""):
                path = f"{board}:{path}"
            row, node = _row(one, path, pid, names[pid], ids, answer["seconds"])
            row.where = _in_life(row.where, *lives.get(path, (1, "began")))
            rows.append(row)
            nodes.append(node)
            for key, writes in one["holds"]:
                if key in ids:
                    pipe = pipes[ids[key]]
                    (pipe.writers if writes else pipe.readers).append(path)
    _far_ends.add_rates(rows, pipes, many)
    return Network(
        max((a["seconds"] for a in answers.values()), default=0.0),
        rows,
        sorted(pipes.values(), key=lambda p: (-(p.reading + p.writing), p.name)),
        [_os_process(pid, a, before.get(pid)) for pid, a in answers.items()],
        [node for row, node in zip(rows, nodes, strict=True) if row.part("waits") < 0.5],
        silent,
        sum(a["left_out"] for a in answers.values()),
    )


def _in_life(where: str, life: int, event: str) -> str:
    """Returns what a supervised process does, with the number of its life."""
    if event != "began":
        return f"its supervisor starts it again (life {life + 1})"
    return where if life == 1 else f"{where} (life {life})"


def _moved(pid: int, answer: dict[str, Any], paths: dict[tuple[int, str], str]) -> dict[int, str]:
    """Returns the paths of the processes of OS process `pid`, by number. A process of a host that
    is outside all calls is one of Weft's own.
    """
    calls = {int(number): found for number, found in answer["calls"].items()}
    up = {one["id"]: one["parent"] for one in answer["processes"]}
    found: dict[int, str] = {}
    is_host = any(host == pid for host, _ in paths)
    for one in answer["processes"]:
        at = one["id"]
        while at not in calls and up.get(at, 0) in up and up[at] != at:
            at = up[at]
        if at in calls:
            call, first = calls[at]
            found[one["id"]] = paths.get((pid, call), first) + one["path"][len(first) :]
        elif not is_host:
            found[one["id"]] = one["path"]
    return found


def _add_pipe(pipes: dict[str, Pipe], key: str, pid: int, c: dict[str, Any]) -> None:
    pipe = pipes.setdefault(key, Pipe(key, c["name"], pid, 0.0, 0, c["capacity"], 0, 0.0, 0.0))
    pipe.rate = max(pipe.rate or 0.0, c["rate"])
    pipe.depth = max(pipe.depth, c["depth"])
    pipe.capacity = max(pipe.capacity, c["capacity"])
    pipe.dropped += c["dropped"]
    pipe.reading = max(pipe.reading, c["reading"])
    pipe.writing = max(pipe.writing, c["writing"])


def _row(
    one: dict[str, Any],
    path: str,
    pid: int,
    names: dict[str, str],
    ids: dict[str, str],
    seconds: float,
) -> tuple[Row, _verdict.Node]:
    share = one["share"]
    cpu = None if one["cpu"] is None else one["cpu"] / seconds
    reads_from = [key for key, writes in one["holds"] if not writes and key in names]
    writes_to = [key for key, writes in one["holds"] if writes and key in names]
    row = Row(
        path,
        pid,
        one["kind"],
        one["now"],
        one["for"],
        one["before"],
        one["does"],
        share,
        cpu,
        one["rate"],
        [names[key] for key in reads_from],
        [names[key] for key in writes_to],
        [(ids[key], writes) for key, writes in one["holds"] if key in ids],
        [(ids[key], writes) for key, writes in one["waits"] if key in ids],
        one.get("board", ""),
    )
    both = share.get("either", 0.0) / 2
    busy = share.get("runs", 0.0)
    node = _verdict.Node(
        path,
        busy,
        share.get("time", 0.0),
        share.get("io", 0.0),
        share.get("reads", 0.0) + both,
        share.get("writes", 0.0) + both,
        share.get("due", 0.0),
        None if cpu is None else min(cpu, busy),
        {ids[key] for key in reads_from},
        {ids[key] for key in writes_to},
        pid,
    )
    return row, node


def _os_process(pid: int, answer: dict[str, Any], before: Used | None) -> OsProcess:
    program = " ".join(answer["program"]) or "?"
    if "os" in answer:  # the OS process is on another machine, and was measured there
        its = answer["os"]
        return OsProcess(pid, program, its["cpu"], its["memory"], answer["version"])
    now = used(pid)
    cpu = None
    if now is not None and before is not None and now.at > before.at:
        cpu = (now.cpu - before.cpu) / (now.at - before.at)
    return OsProcess(pid, program, cpu, now.memory if now else 0, answer["version"])


def look(pid: int, interval: float = 0.1, most: int = 2_000) -> Network:
    """Looks once.

    Raises:
        NoLook: the program cannot be looked at.
    """
    with Looking(pid) as looking:
        return looking.look(interval, most)


def where_lines(rows: Iterable[Row], here: int) -> list[str]:
    """Returns a line for each process, in the form of the list that Ctrl-C prints."""
    return [
        f"{row.path}: {row.where}" + ("" if row.pid == here else f" in OS process {row.pid}")
        for row in rows
    ]
