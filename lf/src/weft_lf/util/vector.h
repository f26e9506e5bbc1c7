/* A vector of pointers that its user owns. The names are those of the vector that comes with
 * upstream's runtime. Nothing here is safe for several threads. */
#ifndef WEFT_LF_VECTOR_H
#define WEFT_LF_VECTOR_H
#include <stddef.h>

/* The elements are start up to next; there is room up to end. `votes` counts the calls of
 * vector_vote that found it mostly empty. */
typedef struct vector_t {
  void **start, **next, **end;
  int votes_required, votes;
} vector_t;

vector_t vector_new(size_t initial_capacity);
void vector_free(vector_t* v);
void vector_push(vector_t* v, void* element);
void vector_pushall(vector_t* v, void** array, size_t size);
/* The element that came last, which leaves; 0 if there is none. */
void* vector_pop(vector_t* v);
/* The place of element `idx`. The vector is made longer, by zeros, if it has no such element. */
void** vector_at(vector_t* v, size_t idx);
size_t vector_size(vector_t* v);
/* Say that now would be a time to give memory back. After enough such calls in a row with less than
 * a quarter in use, half of it is. */
void vector_vote(vector_t* v);
#endif
