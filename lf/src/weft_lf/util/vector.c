/* Implements vector.h with an array that doubles when it is full. */
#include "vector.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VECTOR_VOTES = 100 }; /* the number of votes in a row after which memory is given back */

static void vector_resize(vector_t* v, size_t room) {
  size_t size = vector_size(v);
  void** start = realloc(v->start, (room ? room : 1) * sizeof *start);
  if (!start) {
    fputs("vector: no memory\n", stderr);
    exit(1);
  }
  v->start = start, v->next = start + size, v->end = start + room;
}
static void vector_reserve(vector_t* v, size_t size) {
  size_t room = (size_t)(v->end - v->start);
  if (size <= room) return;
  vector_resize(v, size > 2 * room ? size : 2 * room);
}

vector_t vector_new(size_t initial_capacity) {
  vector_t v = {.votes_required = VECTOR_VOTES};
  vector_resize(&v, initial_capacity);
  return v;
}
void vector_free(vector_t* v) {
  free(v->start);
  v->start = v->next = v->end = 0;
}
size_t vector_size(vector_t* v) { return (size_t)(v->next - v->start); }
void vector_push(vector_t* v, void* element) {
  vector_reserve(v, vector_size(v) + 1);
  *v->next++ = element;
}
void vector_pushall(vector_t* v, void** array, size_t size) {
  vector_reserve(v, vector_size(v) + size);
  if (size) memcpy(v->next, array, size * sizeof *array);
  v->next += size;
}
void* vector_pop(vector_t* v) { return v->next == v->start ? 0 : *--v->next; }
void** vector_at(vector_t* v, size_t idx) {
  vector_reserve(v, idx + 1);
  while (vector_size(v) <= idx) *v->next++ = 0;
  return v->start + idx;
}
void vector_vote(vector_t* v) {
  size_t room = (size_t)(v->end - v->start);
  if (vector_size(v) * 4 >= room)
    v->votes = 0;
  else if (++v->votes >= v->votes_required) {
    vector_resize(v, room / 2);
    v->votes = 0;
  }
}
