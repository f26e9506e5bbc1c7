// headers.cpp: the public headers must compile as C++, where overloading chooses between list and
// heap.
#include "weft_mcu/lta.h"
static uint32_t nothing(weft_event *, uint32_t) { return WEFT_DONE; }
int use(weft_queue *list, weft_heap *heap, weft_event *e, weft_periodic *p, weft_far *f,
        weft_actor *a);
int use(weft_queue *list, weft_heap *heap, weft_event *e, weft_periodic *p, weft_far *f,
        weft_actor *a) {
  e->action = nothing;
  int code = weft_post(list, e, 5) + weft_post(heap, e, 5) + weft_post_as(heap, e, 5, WEFT_MOVE) +
             weft_cancel(list, e) + weft_cancel(heap, e);
  code += weft_post_at(heap, e, 7) + weft_post_in(list, e, 5) +
          weft_periodic_start(heap, p, a, nothing, 1, 2);
  code += weft_far_post(list, f, a, nothing, 1) + weft_far_post(heap, f, a, nothing, 1) +
          weft_periodic_stop(heap, p);
  weft_stop(list);
  weft_resume(heap);
  weft_work(heap);
  return code;
}
