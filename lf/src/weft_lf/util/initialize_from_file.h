/* Reads first values from a file of rows, in which a character separates the fields. The names are
 * those of upstream's utility.
 *
 * Each function reads row `row_number`, counted from 0, into the variables whose addresses follow,
 * up to a NULL. The function returns how many variables it has set; these are fewer than given if
 * the row has fewer fields. If there is no such file or row, or a field is not a number, the
 * function prints the fault and returns -1. */
#ifndef WEFT_LF_INITIALIZE_FROM_FILE_H
#define WEFT_LF_INITIALIZE_FROM_FILE_H
#include <stddef.h>

int lf_initialize_double(const char* filename, char delimiter, size_t row_number, ...);
int lf_initialize_int(const char* filename, char delimiter, size_t row_number, ...);
/* Quotes around a text are removed. The texts live until the program ends. */
int lf_initialize_string(const char* filename, char delimiter, size_t row_number, ...);
#endif
