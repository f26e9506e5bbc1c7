// Durations and clocks. With libstdc++ without the calendar, which Weft does not use: <chrono> parses
// <sstream> for it, and that takes longer than anything else that Weft includes.
#pragma once
#include <version>
#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
