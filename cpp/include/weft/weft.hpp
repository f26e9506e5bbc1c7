// Weft: processes and channels. One include for the hosted library; the freestanding core is in weft/core/.
#pragma once
#include "channel.hpp"
#include "compose.hpp"
#include "coroutine.hpp"
#include "errors.hpp"
