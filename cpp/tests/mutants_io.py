"""Mutants of `weft::io`: each mutant breaks one line, and the tests of section 18 must notice that.

    python3 cpp/tests/mutants_io.py DIRECTORY [NAME ...]      the last line: N passed, N failed

One copy of the library has all mutants (mutants_switched.py). The program prints a table that says
which test noticed each mutant; if the tests hang, the mutant is noticed too. `soak` runs the
program.
"""

from __future__ import annotations

import sys

from mutants_switched import either, run, unless

SOURCES = ("hosted_io.cpp", "hosted_io_bounds.cpp", "doctest_main.cpp")

ENGINE = "src/io/engine.cpp"
WATCHED = "src/io/watched.cpp"
OPERATION = "src/io/operation.cpp"
STREAM = "src/io/stream.cpp"

MUTANTS = [
    unless(
        "io1",
        "a busy executor never looks for descriptors",
        ENGINE,
        "if (n > 0) «hand_on(events.data(), n);»\n  return n > 0;",
    ),
    either(
        "io2",
        "virtual time is not refused",
        ENGINE,
        "weft::detail::run_of(p).clock() == runtime::Clock::virtual_time",
        "false",
    ),
    either(
        "io3",
        "another thread does not ring the bell",
        ENGINE,
        "write(bell_, &one, sizeof one)",
        "static_cast<ssize_t>(one)",
    ),
    unless(
        "io4",
        "the bell is not silenced",
        ENGINE,
        "static_cast<void>(!read(bell_, &times, sizeof times));",
        "static_cast<void>(times);",
    ),
    unless(
        "io5",
        "an executor that is woken by a descriptor wakes no process",
        ENGINE,
        "w->came(events[i].events, wakes);",
        "continue;",
    ),
    either(
        "io6",
        "an event goes to any file that has the number now",
        "io/descriptors.hpp",
        "at_[fd].number == key >> 32",
        "true",
    ),
    unless(
        "io7",
        "a stream that had the number before closes the file that has the number now",
        WATCHED,
        "if (e.watched) e.watched->owns_ = false;",
    ),
    unless(
        "io8",
        "a process is not told that a new stream has its number",
        WATCHED,
        "stale->wake(stale->in_, wakes);",
    ),
    either(
        "io9",
        "two processes that wait for one number get two objects",
        WATCHED,
        "there && !there->closed()",
        "false",
    ),
    unless(
        "io10",
        "close() wakes no reader",
        WATCHED,
        "ends = owns_ && socket_;\n    unwatch();\n    «wake(in_, wakes);»",
    ),
    unless(
        "io11",
        "close() does not end the connection",
        WATCHED,
        "if (ends) shutdown(fd_, SHUT_RDWR);",
    ),
    unless(
        "io12",
        "a read that may have left bytes does not say so",
        WATCHED,
        "«hint_.store(true, std::memory_order_release);»\n    wake(in_, wakes);\n  }\n  wakes.run();",
    ),
    unless(
        "io13",
        "urgent data is not watched for",
        WATCHED,
        "if (tcp_) events |= EPOLLPRI;",
    ),
    either(
        "io14",
        "a number that another file has now is not watched anew",
        WATCHED,
        "!other || epoll_ctl(home_->epoll_, op, fd_, &x) != 0",
        "true",
    ),
    unless(
        "io15",
        "a process that leaves does not check that the others are still served",
        WATCHED,
        "e->waiting_.fetch_sub(1, std::memory_order_relaxed);\n  «settle();»",
    ),
    either(
        "io16",
        "the new home does not watch",
        WATCHED,
        "epoll_ctl(home_->epoll_, EPOLL_CTL_ADD, fd_, &x) == 0",
        "true",
    ),
    unless(
        "io17",
        "only the first process is woken",
        WATCHED,
        "if (core::Free{}.with(&n) == core::Claim::won) «wakes.finish(&n, Status::ok);»",
        "return wakes.finish(&n, Status::ok);",
    ),
    unless(
        "io18",
        "the end of a TCP stream that comes with bytes is forgotten",
        WATCHED,
        "short_.store(true, std::memory_order_relaxed);",
    ),
    either(
        "io19",
        "a reader is woken by bytes alone, not by a hang-up",
        WATCHED,
        "events & ~static_cast<std::uint32_t>(EPOLLOUT)",
        "events & EPOLLIN",
    ),
    either(
        "io20",
        "a writer is woken by room alone, not by an error",
        WATCHED,
        "events & (EPOLLOUT | EPOLLHUP | EPOLLERR)",
        "events & EPOLLOUT",
    ),
    unless(
        "io21",
        "a wait for a descriptor is not outside",
        OPERATION,
        "p.op = &kind;\n  «run.enter_outside();»",
    ),
    unless(
        "io22",
        "a process remains outside after its wait",
        OPERATION,
        "watched_->leave(p, side_);\n  «run.leave_outside();»",
    ),
    unless(
        "io24",
        "a guard is not outside",
        OPERATION,
        "weft::detail::run_of(p).enter_outside();",
    ),
    unless(
        "io25",
        "a guard remains outside after the select",
        OPERATION,
        "weft::detail::run_of(chooser(g)).leave_outside();",
    ),
    either(
        "io26",
        "a process that was woken goes on waiting although it is cancelled",
        "io/operation.hpp",
        "p.cancel().load(std::memory_order_relaxed) != 0",
        "false",
    ),
    either(
        "io27",
        "readable() relies on what the last read has found",
        "io/operation.hpp",
        "is_ready(*w, S) ? Tried::over : Tried::would_block",
        "w->taken() ? Tried::over : Tried::would_block",
    ),
    either(
        "io28",
        "an adopted descriptor goes on blocking",
        STREAM,
        "fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0",
        "false",
    ),
    unless(
        "io29",
        "SIGPIPE reaches the program: pipes",
        STREAM,
        "pthread_sigmask(SIG_BLOCK, &pipe, &before);",
        "pthread_sigmask(SIG_BLOCK, nullptr, &before);",
    ),
    either(
        "io30",
        "SIGPIPE reaches the program: sockets",
        STREAM,
        "MSG_NOSIGNAL",
        "0",
    ),
    unless(
        "io31",
        "after an error, the next read waits although something has come",
        STREAM,
        "«w.more();»  // so that the next read sees what comes after the error",
    ),
    either(
        "io32",
        "a read that has filled its buffer is thought to have read everything",
        STREAM,
        "static_cast<std::size_t>(r) == n",
        "false",
    ),
    either(
        "io33",
        "a short read of any socket is thought to have read everything",
        STREAM,
        "!w.is_tcp()",
        "false",
    ),
    unless(
        "io34",
        "after one connection, accept does not look for more",
        STREAM,
        "«w->more();»\n      detail::no_delay(fd, from.ss_family);",
    ),
    unless(
        "io35",
        "accept fails if no descriptor is free, instead of trying again",
        STREAM,
        "pause = pause == 0 ? kFirst : std::min(pause * 2, kLongest);",
        "error = e; return Tried::over;",
    ),
    unless(
        "io36",
        "connect fails if a Unix socket has no room",
        STREAM,
        "if (errno == EAGAIN) «return Tried::pauses;»",
        "error = EAGAIN; return Tried::over;",
    ),
    unless(
        "io37",
        "connect does not ask whether it was refused",
        STREAM,
        "«error = e;»\n  return Tried::over;\n}\n\nStream detail::ConnectWork::result() {",
    ),
    unless(
        "io38",
        "`sent` is not kept up to date",
        "io/stream.hpp",
        "if (sent) *sent = done;",
    ),
]


if __name__ == "__main__":
    sys.exit(run(__doc__, MUTANTS, SOURCES))
