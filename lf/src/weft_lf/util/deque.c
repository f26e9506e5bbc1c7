/* Implements deque.h with a ring that doubles when it is full. */
#include "deque.h"
#include <stdio.h>
#include <stdlib.h>

static void** place(deque_t* d, size_t at) { return &d->ring[(d->first + at) % d->room]; }

static void grow(deque_t* d) {
  if (d->size < d->room) return;
  size_t room = d->room ? 2 * d->room : 8;
  void** ring = malloc(room * sizeof *ring);
  if (!ring) {
    fputs("deque: no memory\n", stderr);
    exit(1);
  }
  for (size_t at = 0; at < d->size; at++) ring[at] = *place(d, at);
  free(d->ring);
  d->ring = ring, d->room = room, d->first = 0;
}
/* An empty deque holds no memory. */
static void shrink(deque_t* d) {
  if (d->size) return;
  free(d->ring);
  deque_initialize(d);
}

void deque_initialize(deque_t* d) { *d = (deque_t){0}; }
bool deque_is_empty(deque_t* d) { return !d->size; }
size_t deque_size(deque_t* d) { return d->size; }
void deque_push_front(deque_t* d, void* value) {
  grow(d);
  d->first = (d->first + d->room - 1) % d->room;
  d->size++;
  *place(d, 0) = value;
}
void deque_push_back(deque_t* d, void* value) {
  grow(d);
  *place(d, d->size++) = value;
}
void* deque_peek_front(deque_t* d) { return d->size ? *place(d, 0) : 0; }
void* deque_peek_back(deque_t* d) { return d->size ? *place(d, d->size - 1) : 0; }
void* deque_pop_front(deque_t* d) {
  if (!d->size) return 0;
  void* value = *place(d, 0);
  d->first = (d->first + 1) % d->room, d->size--;
  shrink(d);
  return value;
}
void* deque_pop_back(deque_t* d) {
  if (!d->size) return 0;
  void* value = *place(d, --d->size);
  shrink(d);
  return value;
}
