/* Implements initialize_from_file.h. A row is read as a whole, however long it is. */
#include "initialize_from_file.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft_mcu/lf.h"

typedef enum { LF_FIELD_DOUBLE, LF_FIELD_INT, LF_FIELD_STRING } lf_field_kind;
typedef struct lf_field_text {
  struct lf_field_text* next;
  char text[];
} lf_field_text;
static lf_field_text* lf_field_texts; /* freed at the end of the program */

static void lf_free_fields(void) {
  while (lf_field_texts) {
    lf_field_text* next = lf_field_texts->next;
    free(lf_field_texts);
    lf_field_texts = next;
  }
}
/* Return line `number` of the file, without its end; 0 if there is no such line, or no memory. */
static char* lf_row(FILE* file, size_t number) {
  char* row = malloc(1);
  size_t size = 0, room = 1, at = 0;
  for (int c = 0; row && (c = getc(file)) != EOF;) {
    if (c == '\n' && at++ == number) return row[size] = 0, row;
    if (c == '\n' || at != number || c == '\r') continue;
    if (size + 1 == room) {
      char* more = realloc(row, room *= 2);
      if (!more) free(row);
      if (!(row = more)) break;
    }
    row[size++] = (char)c;
  }
  if (row && at == number && size) return row[size] = 0, row;
  free(row);
  return 0;
}
static char* lf_trimmed(char* text) {
  while (isspace((unsigned char)*text)) text++;
  size_t size = strlen(text);
  while (size && isspace((unsigned char)text[size - 1])) text[--size] = 0;
  return text;
}
static char* lf_kept(const char* text) {
  size_t size = strlen(text);
  if (size >= 2 && (*text == '"' || *text == '\'') && text[size - 1] == *text) text++, size -= 2;
  lf_field_text* kept = malloc(sizeof *kept + size + 1);
  if (!kept) lf_print_error_and_exit("no memory for a text of a file");
  memcpy(kept->text, text, size);
  kept->text[size] = 0;
  if (!lf_field_texts) atexit(lf_free_fields);
  kept->next = lf_field_texts, lf_field_texts = kept;
  return kept->text;
}
/* Store a field. Return false if the field is not a number of this kind. */
static bool lf_store(lf_field_kind kind, void* to, char* field) {
  char* end = field;
  if (kind == LF_FIELD_STRING) return *(char**)to = lf_kept(field), true;
  double real = kind == LF_FIELD_DOUBLE ? strtod(field, &end) : 0;
  long whole = kind == LF_FIELD_INT ? strtol(field, &end, 10) : 0;
  if (end == field || *end) return false;
  if (kind == LF_FIELD_DOUBLE)
    *(double*)to = real;
  else
    *(int*)to = (int)whole;
  return true;
}
static int lf_initialize(const char* name, char delimiter, size_t number, lf_field_kind kind,
                         va_list list) {
  FILE* file = fopen(name, "r");
  if (!file) return lf_print_error("%s cannot be read", name), -1;
  char* row = lf_row(file, number);
  fclose(file);
  if (!row) return lf_print_error("%s has no row %zu", name, number), -1;
  char* at = strncmp(row, "\xEF\xBB\xBF", 3) ? row : row + 3; /* skips the byte order mark */
  int count = 0;
  for (void* to; at && (to = va_arg(list, void*)); count++) {
    char* next = strchr(at, delimiter);
    if (next) *next++ = 0;
    char* field = lf_trimmed(at);
    if (!lf_store(kind, to, field)) {
      lf_print_error("%s, row %zu: \"%s\" is no number", name, number, field);
      count = -1;
      break;
    }
    at = next;
  }
  free(row);
  return count;
}
#define LF_INITIALIZER(name, kind)                                          \
  int name(const char* filename, char delimiter, size_t row_number, ...) {  \
    va_list list;                                                           \
    va_start(list, row_number);                                             \
    int count = lf_initialize(filename, delimiter, row_number, kind, list); \
    va_end(list);                                                           \
    return count;                                                           \
  }
LF_INITIALIZER(lf_initialize_double, LF_FIELD_DOUBLE)
LF_INITIALIZER(lf_initialize_int, LF_FIELD_INT)
LF_INITIALIZER(lf_initialize_string, LF_FIELD_STRING)
