// Functions, used in all files, that set, take and restore exceptions, and that name channels in
// their texts.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

namespace weft::py {

struct ChannelObject;

PyObject* bad_use(const char* format, ...);  // sets BadUse, and returns null
// Sets BadUse with the message of a BadUse of C++, which begins with the path of the process.
void bad_use_of_cpp(const std::string& message) noexcept;
// Returns the current exception, normalised, with its traceback, and clears it.
PyObject* take_exception();
void restore_exception(PyObject* e);  // takes ownership of the reference
int import_errors();                  // imports the classes of error_types.hpp

std::string channel_name(ChannelObject* c);
PyObject* to_str(const std::string& s);

}  // namespace weft::py
