/* Programs written for upstream include this header. weft_mcu/lf.h needs nothing undone. */
