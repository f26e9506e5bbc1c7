// The headers that nearly every test includes, parsed once for all of them (CMakeLists.txt,
// parsed_once). A test still includes the headers that it needs.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "weft/weft.hpp"
#include "weft/wire/program.hpp"
#include "weft/wire/serial.hpp"
#include "weft/wire/shm.hpp"
