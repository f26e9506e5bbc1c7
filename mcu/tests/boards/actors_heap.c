/* actors_heap.c: the tests of actors.c on the heap. */
#define HEAP 1
#include "actors.c"
