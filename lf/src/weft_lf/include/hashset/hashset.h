/* A set of pointers. The names, and the fields that programs read, are those of the hash set that
 * comes with upstream's runtime. The set is not safe for use by several threads.
 *
 * Invariants
 * - `items` has `capacity` = 2^nbits slots. A slot contains an item, 0 (never used) or 1 (removed).
 * - An item is in the first slot of its way that is free for it; the way is from its hash onwards,
 *   slot by slot. At least a quarter of the slots contain 0, so each way ends.
 */
#ifndef WEFT_LF_HASHSET_H
#define WEFT_LF_HASHSET_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct hashset_st {
  size_t nbits, mask, capacity;
  void** items;
  size_t nitems, n_deleted_items;
};
typedef struct hashset_st* hashset_t;
#define WEFT_LF_HASHSET static inline __attribute__((unused))

WEFT_LF_HASHSET void* weft_lf_hashset_room(size_t count, size_t size) {
  void* room = calloc(count, size);
  if (room) return room;
  fputs("hashset: no memory\n", stderr);
  exit(1);
}
/* Give the set 2^nbits empty slots. */
WEFT_LF_HASHSET void weft_lf_hashset_clear(hashset_t set, size_t nbits) {
  set->nbits = nbits, set->capacity = (size_t)1 << nbits, set->mask = set->capacity - 1;
  set->nitems = set->n_deleted_items = 0;
  set->items = (void**)weft_lf_hashset_room(set->capacity, sizeof *set->items);
}
/* Return the item's slot, or the slot that contains 0 at the end of its way. */
WEFT_LF_HASHSET size_t weft_lf_hashset_slot(hashset_t set, void* item) {
  uint64_t hash = (uint64_t)(uintptr_t)item * UINT64_C(0x9E3779B97F4A7C15); /* Fibonacci hashing */
  size_t slot = (size_t)(hash >> 32) & set->mask;
  while (set->items[slot] && set->items[slot] != item) slot = (slot + 1) & set->mask;
  return slot;
}

/* Make a set with room for about 2^nbits items. hashset_destroy frees it. */
WEFT_LF_HASHSET hashset_t hashset_create(unsigned short nbits) {
  hashset_t set = (hashset_t)weft_lf_hashset_room(1, sizeof *set);
  weft_lf_hashset_clear(set, nbits < 3 ? 3 : nbits);
  return set;
}
WEFT_LF_HASHSET void hashset_destroy(hashset_t set) {
  if (set) free(set->items);
  free(set);
}
WEFT_LF_HASHSET size_t hashset_num_items(hashset_t set) { return set->nitems; }
WEFT_LF_HASHSET int hashset_is_member(hashset_t set, void* item) {
  return (uintptr_t)item > 1 && set->items[weft_lf_hashset_slot(set, item)] == item;
}
/* Return 1 if the item is new, 0 if it was there, and -1 if it is 0 or 1, which no set has. */
WEFT_LF_HASHSET int hashset_add(hashset_t set, void* item) {
  if ((uintptr_t)item <= 1) return -1;
  if (hashset_is_member(set, item)) return 0;
  if ((set->nitems + set->n_deleted_items + 1) * 4 > set->capacity * 3) {
    void** old = set->items;
    size_t slots = set->capacity;
    weft_lf_hashset_clear(set, set->nbits + ((set->nitems + 1) * 2 > slots));
    for (size_t i = 0; i < slots; i++)
      if ((uintptr_t)old[i] > 1) {
        set->items[weft_lf_hashset_slot(set, old[i])] = old[i];
        set->nitems++;
      }
    free(old);
  }
  set->items[weft_lf_hashset_slot(set, item)] = item;
  set->nitems++;
  return 1;
}
/* Return 1 if the item was there, else 0. */
WEFT_LF_HASHSET int hashset_remove(hashset_t set, void* item) {
  if (!hashset_is_member(set, item)) return 0;
  set->items[weft_lf_hashset_slot(set, item)] = (void*)1;
  set->nitems--, set->n_deleted_items++;
  return 1;
}
#endif
