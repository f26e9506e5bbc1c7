// A call's bytes between its caller and an OS process of an agent, by a thread of their own in place
// of the loop (WIRE.md 17.10, 17.13): what a task's two messages cost there was Python, for the most
// part.
//
//   the caller ══TCP══► TLS ──pieces taken apart──► the OS process
//              ◄═══════ TLS ◄──a length first──────
//
//   passes ──the OS process has said all: so is the caller told──► hears the rest, for some seconds ──► over
//     └──the caller has said all │ TLS or its connection ends │ the bell──► over
//
// Invariants
//  1 The socket, and TLS, are this thread's from the call until it returns.
//  2 What the other side does not take is kept, and meanwhile nothing more is read for it: so there
//    wait at most a piece and what one reading brings, in each direction.
//  3 What comes for an OS process that has closed is still taken: to close with bytes unread resets
//    the connection, and that may take with it what we have sent last.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace weft::py {}  // namespace weft::py
