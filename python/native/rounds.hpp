// Rounds of questions between this program and others (rounds.cpp, WIRE.md 10.8).
#pragma once

#include <Python.h>

#include <memory>

#include "weft/wire/space.hpp"

namespace weft::py {

// This program's space; made with this name if there is none yet.
std::shared_ptr<wire::Space> space_named(const char* name);
void forget_rounds() noexcept;  // in the child of a fork
int init_rounds(PyObject* m);

}  // namespace weft::py
