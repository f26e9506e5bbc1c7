// std::function. With libstdc++ without the rest of <functional>, which parses <unordered_map> and
// the algorithms for its searchers.
#pragma once
#include <version>
#if defined(__GLIBCXX__) && __has_include(<bits/std_function.h>)
#include <bits/std_function.h>
#else
#include <functional>
#endif
