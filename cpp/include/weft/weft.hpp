// Weft: processes and channels. One include for the hosted library; the freestanding core is in weft/core/.
#pragma once
#include "alt.hpp"
#include "blocks.hpp"
#include "channel.hpp"
#include "compose.hpp"
#include "coroutine.hpp"
#include "errors.hpp"
#include "extended.hpp"
#include "handle.hpp"
#include "mobile.hpp"
#include "par_io.hpp"
#include "time.hpp"
#include "version.hpp"
