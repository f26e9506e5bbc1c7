// weft_mcu/csp.hpp: processes and channels on bare microcontrollers (mcu/csp/README.md). Programs
// include this header.
#pragma once
#include "weft_mcu/csp_alt.hpp"
#include "weft_mcu/csp_channel.hpp"
#include "weft_mcu/csp_port.hpp"
#include "weft_mcu/csp_scheduler.hpp"
