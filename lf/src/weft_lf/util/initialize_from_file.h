/* First values from a file of rows, whose fields a character separates. The names are those of
 * upstream's utility.
 *
 * Each function reads the row `row_number`, from 0, into the variables whose addresses follow, up
 * to a NULL. It returns how many it read: the fields, if there are fewer than variables. It returns
 * -1, and says why, if there is no such file or row, or a field is no number. */
#ifndef WEFT_LF_INITIALIZE_FROM_FILE_H
#define WEFT_LF_INITIALIZE_FROM_FILE_H
#include <stddef.h>

int lf_initialize_double(const char* filename, char delimiter, size_t row_number, ...);
int lf_initialize_int(const char* filename, char delimiter, size_t row_number, ...);
/* Texts lose the quotes around them. They live until the program ends. */
int lf_initialize_string(const char* filename, char delimiter, size_t row_number, ...);
#endif
