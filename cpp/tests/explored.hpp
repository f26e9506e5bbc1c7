// What the explorations include, parsed once for all of them (CMakeLists.txt). An exploration
// includes what it needs all the same.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <optional>

#include "engine.hpp"
#include "weft/observe.hpp"
#include "weft/runtime/cores.hpp"
#include "weft/weft.hpp"
#include "weft/wire/asking.hpp"
#include "weft/wire/end.hpp"
#include "weft/wire/everywhere.hpp"
#include "weft/wire/resend.hpp"
#include "weft/wire/ring.hpp"
#include "weft/wire/slot.hpp"
