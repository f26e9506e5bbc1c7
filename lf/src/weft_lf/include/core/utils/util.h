/* Programs written for upstream include this header. weft_mcu/lf.h has the names for programs. */
#include "weft_mcu/lf.h"
