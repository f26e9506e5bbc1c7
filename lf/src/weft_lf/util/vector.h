/* A vector of pointers that its user owns. The names are those of the vector that comes with
 * upstream's runtime. The vector is not safe for use by several threads. */
#ifndef WEFT_LF_VECTOR_H
#define WEFT_LF_VECTOR_H
#include <stddef.h>

/* The elements are from `start` up to `next`; there is room up to `end`. `votes` counts the calls
 * of vector_vote in a row that found the vector mostly empty. */
typedef struct vector_t {
  void **start, **next, **end;
  int votes_required, votes;
} vector_t;

vector_t vector_new(size_t initial_capacity);
void vector_free(vector_t* v);
void vector_push(vector_t* v, void* element);
void vector_pushall(vector_t* v, void** array, size_t size);
/* Remove the last element, and return it; 0 if there is none. */
void* vector_pop(vector_t* v);
/* Return the address of element `idx`. If there is no such element, zeros are added up to it. */
void** vector_at(vector_t* v, size_t idx);
size_t vector_size(vector_t* v);
/* Vote for giving memory back. After enough such calls in a row, each while less than a quarter of
 * the memory is in use, half of the memory is given back. */
void vector_vote(vector_t* v);
#endif
