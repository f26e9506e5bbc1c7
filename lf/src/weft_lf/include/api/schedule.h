/* Programs written for upstream include this header. weft_mcu/lf.h defines all its names. */
#include "weft_mcu/lf.h"
