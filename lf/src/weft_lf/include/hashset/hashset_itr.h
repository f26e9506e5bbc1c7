/* An iterator over a hash set; the names are those of upstream's. Its user frees it by free(), and
 * adds nothing to the set while it is in use:
 *
 *     hashset_itr_t it = hashset_iterator(set);
 *     while (hashset_iterator_next(it) >= 0) use(hashset_iterator_value(it));
 *     free(it);
 */
#ifndef WEFT_LF_HASHSET_ITR_H
#define WEFT_LF_HASHSET_ITR_H
#include "hashset.h"

/* `index` is the slot of the present item; -1 before the first one. */
struct hashset_itr_st {
  hashset_t set;
  int index;
};
typedef struct hashset_itr_st* hashset_itr_t;

WEFT_LF_HASHSET hashset_itr_t hashset_iterator(hashset_t set) {
  hashset_itr_t itr = (hashset_itr_t)weft_lf_hashset_room(1, sizeof *itr);
  itr->set = set, itr->index = -1;
  return itr;
}
/* Return the slot of the next item; -1 if there is none. */
WEFT_LF_HASHSET int weft_lf_hashset_after(hashset_itr_t itr) {
  for (size_t i = (size_t)(itr->index + 1); i < itr->set->capacity; i++)
    if ((uintptr_t)itr->set->items[i] > 1) return (int)i;
  return -1;
}
WEFT_LF_HASHSET int hashset_iterator_has_next(hashset_itr_t itr) {
  return weft_lf_hashset_after(itr) >= 0;
}
/* Go to the next item. Return its slot; -1 if there is none, and then stay where it is. */
WEFT_LF_HASHSET int hashset_iterator_next(hashset_itr_t itr) {
  int next = weft_lf_hashset_after(itr);
  if (next >= 0) itr->index = next;
  return next;
}
/* Return the present item; 0 before the first one, and if it was removed. */
WEFT_LF_HASHSET void* hashset_iterator_value(hashset_itr_t itr) {
  void* item = itr->index < 0 ? NULL : itr->set->items[itr->index];
  return (uintptr_t)item > 1 ? item : NULL;
}
#endif
