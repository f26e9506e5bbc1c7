/* Programs written for upstream include this header. weft_mcu/lf.h defines no macro that must be
 * undefined. */
