// The objects of the native core, the run queue, and the lines of processes that wait at a channel.
// weft_native.c, which alone includes it, has the invariants.
//
// No name of Python's (MP_QSTR_…) stands here: for a natmod mpy_ld looks for them in the .c file
// alone.
#pragma once

#ifdef MICROPY_ENABLE_DYNRUNTIME
#include "py/dynruntime.h"
#define NATMOD (1)
// The name table by an address the compiler cannot fold an index into: mpy_ld knows none for xtensa.
static inline const qstr_short_t* names(void) {
  const qstr_short_t* table = mp_native_qstr_table;
  __asm("" : "+r"(table));
  return table;
}
#define mp_native_qstr_table (names())
#else
#include "py/objgenerator.h"
#include "py/objtuple.h"
#include "py/runtime.h"
#define NATMOD (0)
#endif

typedef struct _proc_t {
  mp_obj_base_t base;
  struct _proc_t* rn;  // the next in the run queue
  mp_obj_t g, go, at, nx, v, x;
} proc_t;

typedef struct {
  mp_obj_base_t base;
  mp_obj_t ok, r, rt, w, wt, x;
} chan_t;

typedef struct {  // an Rd or a Wr
  mp_obj_base_t base;
  chan_t* c;
  mp_obj_t h, x;
} end_t;

typedef struct {
  proc_t *head, *tail, *cur;
  mp_obj_t read, write, ended, failed;  // hooks()
  mp_obj_t reader, writer;              // methods()
  mp_obj_t stop;  // natmod: the StopIteration that carries a value, and its arguments
  mp_obj_tuple_t* stop_args;
} state_t;

#if NATMOD
state_t state;  // not static, nor what follows: mpy_ld wants it so
#define S (state)
mp_obj_full_type_t proc_type, chan_type, rd_type, wr_type, done_type, once_type;
mp_obj_base_t done_object, once_object;
chan_t closed;
#define TYPE(t) ((mp_obj_type_t*)&t)
#define TRUE_OBJECT (mp_const_true)
#else
MP_REGISTER_ROOT_POINTER(void* weft_state[12]);
typedef char state_fits[sizeof(state_t) <= 12 * sizeof(void*) ? 1 : -1];
#define S (*(state_t*)MP_STATE_VM(weft_state))
extern const mp_obj_type_t proc_type, chan_type, rd_type, wr_type, done_type, once_type;
static const mp_obj_base_t done_object = {&done_type}, once_object = {&once_type};
static const chan_t closed = {
    {&chan_type}, MP_ROM_FALSE, MP_ROM_NONE, MP_ROM_NONE, MP_ROM_NONE, MP_ROM_NONE, MP_ROM_NONE,
};
static const mp_rom_obj_tuple_t ends = {
    {&mp_type_tuple}, 2, {MP_ROM_PTR(&rd_type), MP_ROM_PTR(&wr_type)}};
#define TYPE(t) (&t)
#endif
#define DONE (MP_OBJ_FROM_PTR(&done_object))
#define ONCE (MP_OBJ_FROM_PTR(&once_object))
#define IS(o, t) (mp_obj_is_obj(o) && ((mp_obj_base_t*)MP_OBJ_TO_PTR(o))->type == TYPE(t))
#define PROC(o) ((proc_t*)MP_OBJ_TO_PTR(o))

// --- the run queue

static void push(proc_t* p) {
  if (p->rn != NULL) {
    return;
  }
  p->rn = p;
  if (S.head == NULL) {
    S.head = p;
  } else {
    S.tail->rn = p;
  }
  S.tail = p;
}

static proc_t* pop(void) {
  proc_t* p = S.head;
  S.head = p->rn == p ? NULL : p->rn;
  p->rn = NULL;
  return p;
}

// --- lines of waiting processes

static inline void line_up(mp_obj_t* head, mp_obj_t* tail, proc_t* p) {
  mp_obj_t o = MP_OBJ_FROM_PTR(p);
  p->nx = mp_const_none;
  if (*head == mp_const_none) {
    *head = o;
  } else {
    PROC(*tail)->nx = o;
  }
  *tail = o;
}

static inline proc_t* take_first(mp_obj_t* head) {
  proc_t* p = PROC(*head);
  *head = p->nx;
  p->nx = mp_const_none;
  return p;
}
