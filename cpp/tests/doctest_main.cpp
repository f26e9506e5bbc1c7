// Contains doctest and its main(), for every program of test cases. The test cases cite the rules
// of SEMANTICS.md that they check.
#if defined(WEFT_WITHOUT_MAIN)
#define DOCTEST_CONFIG_IMPLEMENT
#else
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#endif
#include <doctest/doctest.h>

#include "../explorer/progress.hpp"  // defines a listener, so needs doctest.h above
