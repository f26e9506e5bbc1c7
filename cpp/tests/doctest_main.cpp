// doctest and its main(), for every program of test cases; the cases cite the rules of SEMANTICS.md
// that they check.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../explorer/progress.hpp"  // after doctest: its listener
