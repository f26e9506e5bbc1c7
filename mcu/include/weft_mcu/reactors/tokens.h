/* reactors/tokens.h: events, blocks and tokens from their pools. Part of weft_mcu/reactors_run.h.
 *
 * On a host, memory comes from malloc; on a device the pools are static arrays whose free members
 * are chained. Events of the enclave's own reactions need no lock. The lock of the pools protects
 * the members that other threads, cores and interrupts may take or give back.
 */
#ifndef WEFT_RX_TOKENS_H
#define WEFT_RX_TOKENS_H
#include "weft_mcu/reactors/queue.h"

#define WEFT_RX_SHARED (WEFT_RX_ASYNC || WEFT_RX_WORKERS > 1)
#if WEFT_RX_HOST
#define WEFT_RX_POOL_LOCK WEFT_SPINLOCK(WEFT_RX_SPINLOCK)
#elif WEFT_CORES > 1 && (WEFT_RX_ENCLAVES > 1 || WEFT_RX_WORKERS > 1 || WEFT_RX_PHYSICAL)
#define WEFT_RX_POOL_LOCK WEFT_SPINLOCK(WEFT_RX_SPINLOCK)
#else
#define WEFT_RX_POOL_LOCK WEFT_LOCAL
#endif
WEFT_INLINE weft_irq_t weft_rx_lock_pools(void) {
#if WEFT_RX_SHARED
  return weft_lock(WEFT_RX_POOL_LOCK);
#else
  return 0;
#endif
}
WEFT_INLINE void weft_rx_unlock_pools(weft_irq_t irq) {
#if WEFT_RX_SHARED
  weft_unlock(WEFT_RX_POOL_LOCK, irq);
#else
  (void)irq;
#endif
}

/* ---- blocks ---------------------------------------------------------------------------------- */
#if WEFT_RX_HOSTED
void *weft_rx_alloc(size_t bytes) { return malloc(bytes ? bytes : 1); }
void weft_rx_free(void *block) { free(block); }
#elif WEFT_RX_BLOCKS
typedef union weft_rx_block {
  union weft_rx_block *next;
  uint64_t align;
  uint8_t bytes[WEFT_RX_BLOCK_BYTES];
} weft_rx_block;
static weft_rx_block weft_rx_blocks[WEFT_RX_BLOCKS], *weft_rx_free_blocks;
static uint32_t weft_rx_fresh_blocks; /* the number of blocks ever used, so that the array need
                                         not be chained at the start */
void *weft_rx_alloc(size_t bytes) {
  if (bytes > sizeof(weft_rx_block))
    return (void)WEFT_MISTAKE(WEFT_E_FULL, "a block larger than WEFT_RX_BLOCK_BYTES is asked for"),
           (void *)0;
  weft_irq_t irq = weft_rx_lock_pools();
  weft_rx_block *b = weft_rx_free_blocks;
  if (b) weft_rx_free_blocks = b->next;
  else if (weft_rx_fresh_blocks < WEFT_RX_BLOCKS) b = &weft_rx_blocks[weft_rx_fresh_blocks++];
  weft_rx_unlock_pools(irq);
  if (!b)
    (void)WEFT_MISTAKE(WEFT_E_FULL, "the pool of blocks is empty; define a larger WEFT_RX_BLOCKS");
  return b;
}
void weft_rx_free(void *block) {
  if (!block) return;
  weft_rx_block *b = (weft_rx_block *)block;
  weft_irq_t irq = weft_rx_lock_pools();
  b->next = weft_rx_free_blocks;
  weft_rx_free_blocks = b;
  weft_rx_unlock_pools(irq);
}
#else
void *weft_rx_alloc(size_t bytes) {
  return (void)bytes, (void)WEFT_MISTAKE(WEFT_E_FULL, "blocks are needed; define WEFT_RX_BLOCKS"),
         (void *)0;
}
void weft_rx_free(void *block) { (void)block; }
#endif

/* ---- events ---------------------------------------------------------------------------------- */
#if !WEFT_RX_HOST && WEFT_RX_EVENTS
static weft_rx_event weft_rx_event_pool[WEFT_RX_EVENTS];
static uint32_t weft_rx_fresh_events;
#endif
#if WEFT_RX_HOST
static weft_rx_event *weft_rx_chunks; /* every block of events allocated so far, chained by
                                         `owner` */
#endif
#if WEFT_RX_ASYNC
static weft_rx_event
    *weft_rx_outside_events; /* free events that any thread, core or interrupt may use */
#endif
static weft_rx_event *weft_rx_fresh_event(void) {
#if WEFT_RX_HOST
  enum { TOGETHER = 64 };
  weft_rx_event *many = (weft_rx_event *)calloc(TOGETHER, sizeof *many);
  if (!many) weft_panic("weft: no memory for events");
  for (int i = 0; i < TOGETHER - 1; i++) many[i].next = weft_rx_as_node(&many[i + 1]);
  return many; /* the events are chained */
#elif WEFT_RX_EVENTS
  weft_irq_t irq = weft_rx_lock_pools();
  weft_rx_event *e =
      weft_rx_fresh_events < WEFT_RX_EVENTS ? &weft_rx_event_pool[weft_rx_fresh_events++] : 0;
  weft_rx_unlock_pools(irq);
  return e;
#else
  return 0;
#endif
}
/* Return an event for the enclave's own reactions, or 0 if the pool is empty. */
WEFT_INLINE weft_rx_event *weft_rx_new_event(weft_rx_env *env) {
  weft_rx_event *e = env->free;
  if (__builtin_expect(!e, 0)) {
    e = weft_rx_fresh_event();
    if (!e) return 0;
#if WEFT_RX_HOST
    weft_irq_t irq = weft_rx_lock_pools();
    e->owner = weft_rx_chunks; /* Every chunk is remembered, to be freed at the end. */
    weft_rx_chunks = e;
    weft_rx_unlock_pools(irq);
    e = weft_rx_as_event(e->next);
#endif
  }
  env->free = weft_rx_as_event(e->next);
  return e;
}
#if WEFT_RX_ASYNC
static weft_rx_event *weft_rx_new_outside_event(void) {
  weft_irq_t irq = weft_rx_lock_pools();
  weft_rx_event *e = weft_rx_outside_events;
  if (e) weft_rx_outside_events = weft_rx_as_event(e->next);
  weft_rx_unlock_pools(irq);
  if (!e) {
#if WEFT_RX_HOST
    e = (weft_rx_event *)calloc(1, sizeof *e);
    if (!e) weft_panic("weft: no memory for events");
#else
    e = weft_rx_fresh_event();
#endif
  }
  if (e) e->from_outside = 1;
  return e;
}
#endif
WEFT_INLINE void weft_rx_free_event(weft_rx_env *env, weft_rx_event *e) {
#if WEFT_RX_ASYNC
  if (e->from_outside) {
    weft_irq_t irq = weft_rx_lock_pools();
    e->next = weft_rx_as_node(weft_rx_outside_events);
    weft_rx_outside_events = e;
    weft_rx_unlock_pools(irq);
    return;
  }
#endif
  e->next = weft_rx_as_node(env->free);
  env->free = e;
}

/* ---- tokens (R15) ---------------------------------------------------------------------------- */
#if WEFT_RX_TOKENS
#if !WEFT_RX_HOSTED
static weft_rx_token weft_rx_token_pool[WEFT_RX_TOKENS], *weft_rx_free_tokens;
static uint32_t weft_rx_fresh_tokens;
#endif
static weft_rx_token *weft_rx_raw_token(void) {
#if WEFT_RX_HOSTED
  weft_rx_token *t = (weft_rx_token *)malloc(sizeof *t);
  if (!t) weft_panic("weft: no memory for tokens");
#else
  weft_irq_t irq = weft_rx_lock_pools();
  weft_rx_token *t = weft_rx_free_tokens;
  if (t) weft_rx_free_tokens = t->next_free;
  else if (weft_rx_fresh_tokens < WEFT_RX_TOKENS) t = &weft_rx_token_pool[weft_rx_fresh_tokens++];
  weft_rx_unlock_pools(irq);
  if (!t) (void)WEFT_RX_FULL("the pool of tokens is empty; define a larger WEFT_RX_TOKENS");
#endif
  return t;
}
weft_rx_token *weft_rx_new_token(size_t element_size, void *value, size_t length) {
  weft_rx_token *t = weft_rx_raw_token();
  if (t) *t = (weft_rx_token){value, length, element_size, 0, 0, 0, 0};
  return t;
}
void weft_rx_hold_token(weft_rx_token *t) {
  if (!t) return;
  weft_irq_t irq = weft_rx_lock_pools();
  t->ref_count++;
  weft_rx_unlock_pools(irq);
}
void weft_rx_drop_token(weft_rx_token *t) {
  if (!t) return;
  weft_irq_t irq = weft_rx_lock_pools();
  bool last = t->ref_count <= 1;
  if (!last) t->ref_count--;
  weft_rx_unlock_pools(irq);
  if (!last) return;
  if (t->destructor) t->destructor(t->value);
  else weft_rx_free(t->value);
#if WEFT_RX_HOSTED
  free(t);
#else
  irq = weft_rx_lock_pools();
  t->next_free = weft_rx_free_tokens;
  weft_rx_free_tokens = t;
  weft_rx_unlock_pools(irq);
#endif
}
/* The place of the value fields of an action or a port. The place differs from struct to struct. */
typedef struct {
  void *value;
  weft_rx_token **token;
  size_t *length;
  size_t element_size;
  void (*destructor)(void *);
  void *(*copy)(void *);
  uint32_t readers;
} weft_rx_view;
static weft_rx_view weft_rx_view_of(void *port) {
  weft_rx_port *head = (weft_rx_port *)port;
  if (head->flags & WEFT_RX_IS_ACTION) {
    weft_rx_token_action *a = (weft_rx_token_action *)port;
    return (weft_rx_view){&a->value,     &a->token,           &a->length, a->element_size,
                          a->destructor, a->copy_constructor, a->readers};
  }
  weft_rx_token_port *p = (weft_rx_token_port *)port;
  return (weft_rx_view){&p->value,     &p->token,           &p->length, p->element_size,
                        p->destructor, p->copy_constructor, p->readers};
}
/* Make the port hold `t`, instead of the token that the port held at this tag. The port takes
 * ownership of the caller's reference. */
static void weft_rx_put_token(void *port, weft_rx_token *t) {
  weft_rx_view v = weft_rx_view_of(port);
  weft_rx_token *before = *v.token;
  *v.token = t;
  *v.length = t->length;
  memcpy(v.value, &t->value, sizeof(void *));
  weft_rx_drop_token(before);
}
weft_rx_token *weft_rx_token_for(void *port, void *value, size_t length) {
  weft_rx_action *plain = (weft_rx_action *)port;
  if ((plain->flags & (WEFT_RX_IS_ACTION | WEFT_RX_IS_TOKEN)) == WEFT_RX_IS_ACTION)
    return weft_rx_new_token(plain->size, value, length);
  weft_rx_view v = weft_rx_view_of(port);
  weft_rx_token *t = weft_rx_new_token(v.element_size, value, length);
  if (t) t->destructor = v.destructor, t->copy_constructor = v.copy;
  return t;
}
void weft_rx_set_token_at(void *port, weft_rx_token *t) {
  if (!t) return;
  weft_rx_hold_token(t);
  weft_rx_put_token(port, t);
  weft_rx_set_head((weft_rx_port *)port);
}
void weft_rx_adopt_token(void *port, weft_rx_token *t) { weft_rx_set_token_at(port, t); }
void weft_rx_set_pointer(void *port, void *value) {
  weft_rx_view v = weft_rx_view_of(port);
  weft_rx_token *held = *v.token;
  if (held &&
      held->value ==
          value) { /* The same pointer is set again: the value of the token that the port holds
                    * has been changed in place. */
    weft_rx_set_head((weft_rx_port *)port);
    return;
  }
  weft_rx_set_token_at(port, weft_rx_token_for(port, value, 1));
}
static weft_rx_token *weft_rx_copy_token(weft_rx_token *t) {
  void *value = t->copy_constructor ? t->copy_constructor(t->value)
                                    : weft_rx_alloc(t->length * t->element_size);
  if (!value) return 0;
  if (!t->copy_constructor) memcpy(value, t->value, t->length * t->element_size);
  weft_rx_token *copy = weft_rx_new_token(t->element_size, value, t->length);
  if (copy) copy->destructor = t->destructor, copy->copy_constructor = t->copy_constructor;
  return copy;
}
weft_rx_token *weft_rx_writable(void *port) {
  weft_rx_view v = weft_rx_view_of(port);
  weft_rx_token *t = *v.token;
  if (!t || (t->ref_count == 1 && v.readers == 1)) return t;
  return weft_rx_copy_token(t);
}
/* `port` is a copy of the struct on a reaction's stack. Give the copy a token whose changes no
 * other reaction sees, and which no other reaction changes. */
void weft_rx_own_copy(void *port, bool last) {
  weft_rx_view v = weft_rx_view_of(port);
  if (!((weft_rx_port *)port)->is_present || !*v.token) {
    *v.token = 0;
    return;
  }
  weft_rx_token *t = *v.token;
  if (!((last || v.readers == 1) && t->ref_count == 1)) t = weft_rx_copy_token(t);
  weft_rx_hold_token(t);
  *v.token = t;
  if (t) memcpy(v.value, &t->value, sizeof(void *));
}
void weft_rx_done_copy(void *port) { weft_rx_drop_token(*weft_rx_view_of(port).token); }
/* Return a token with a copy of the value of an action of plain values, or 0 if there is no
 * value, or no block for the copy. The caller must release the token. */
weft_rx_token *weft_rx_value_token(weft_rx_action *a) {
  void *value = a->is_present && a->has_value ? weft_rx_alloc(a->size) : 0;
  if (!value) return 0;
  memcpy(value, (uint8_t *)a + a->value_at, a->size);
  weft_rx_token *t = weft_rx_new_token(a->size, value, 1);
  if (!t) weft_rx_free(value);
  weft_rx_hold_token(t);
  return t;
}
void weft_rx_let_go(weft_rx_token **t) { weft_rx_drop_token(*t); }
static void weft_rx_end_token(weft_rx_port *p) {
  weft_rx_view v = weft_rx_view_of(p);
  weft_rx_token *t = *v.token;
  *v.token = 0;
  weft_rx_drop_token(t);
}
#else
void weft_rx_set_pointer(void *port, void *value) { (void)port, (void)value; }
#endif
#endif
