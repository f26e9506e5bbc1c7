/* Upstream's bodies include this; all its names are weft_mcu/lf.h's. */
#include "weft_mcu/lf.h"
