/* A queue with two ends, of pointers that its user owns. The names are those of the deque that
 * comes with upstream's runtime. The deque is not safe for use by several threads. */
#ifndef WEFT_LF_DEQUE_H
#define WEFT_LF_DEQUE_H
#include <stdbool.h>
#include <stddef.h>

/* A ring: `size` pointers from `first` on, among `room` places. A deque that is all zero is
 * empty. */
typedef struct deque_t {
  void** ring;
  size_t room, first, size;
} deque_t;

void deque_initialize(deque_t* d);
bool deque_is_empty(deque_t* d);
size_t deque_size(deque_t* d);
void deque_push_front(deque_t* d, void* value);
void deque_push_back(deque_t* d, void* value);
/* The following functions return 0 for an empty deque. */
void* deque_pop_front(deque_t* d);
void* deque_pop_back(deque_t* d);
void* deque_peek_front(deque_t* d);
void* deque_peek_back(deque_t* d);
#endif
