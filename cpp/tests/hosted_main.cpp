// The hosted layer's tests: one binary, made of every hosted_*.cpp. Each case cites the rule of SEMANTICS.md that it checks.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../explorer/progress.hpp"  // after doctest: its listener
