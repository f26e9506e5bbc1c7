// The objects of the native core, the run queue, and the waiting queues of channels. Only
// weft_native.c includes this header.
//
// Invariants
// - A process is at most once in the run queue. Its `rn` is NULL exactly when it is not in the
//   queue; the `rn` of the last process is that process itself.
// - A channel whose `ok` is True has only processes in its waiting queues, and one of the two
//   queues is empty.
// - The collector can reach all objects of the core from `S`, which is a root pointer, or in a
//   natmod data that MicroPython tracks. A parked process is reachable from the queue that it is
//   in, the running process from S.cur.
// - Only the constructors allocate.
// - Fields that Python can see are never NULL; None stands for nothing.
//
// The states of a process, by `at` and `go`:
//
//   ready --loop()--> running --rd_step(), wr_write()--> parked (`at` is the end)
//                       |  |                               --the other party, push()--> ready
//                       |  +--a hook--> parked (`at` is any object)
//                       |                                  --push(), or throw() and push()--> ready
//                       +--returns, raises--> ended: hook ended() or failed()
//
//   `go` determines what the loop does with the process next. None: the process is resumed. ONCE:
//   it is resumed at an await of ONCE. An Rd: it waits at `yield rd`; the step of the read is done
//   again, and the value is sent. Any other object is raised in the process (throw()), or called
//   with None if the process has no generator.
//
// This header uses no names of Python (MP_QSTR_…), because for a natmod mpy_ld looks for names only
// in the .c file.
#pragma once

#ifdef MICROPY_ENABLE_DYNRUNTIME
#include "py/dynruntime.h"
#define NATMOD (1)
// Returns the table of names in a way that keeps the compiler from folding an index into its
// address: mpy_ld cannot relocate such an address on xtensa.
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
  struct _proc_t* rn;  // the next process in the run queue
  mp_obj_t g, go, at, nx, v, x;
} proc_t;

typedef struct {
  mp_obj_base_t base;
  mp_obj_t ok, r, rt, w, wt, x, q;
} chan_t;

typedef struct {  // a channel's buffer: a ring of values
  mp_obj_base_t base;
  size_t first, count, size;
  mp_obj_t values[];
} buf_t;

typedef struct {  // a reader end (Rd) or a writer end (Wr)
  mp_obj_base_t base;
  chan_t* c;
  mp_obj_t h, x;
} end_t;

typedef struct {  // a select that the core performs without Python code
  mp_obj_base_t base;
  proc_t* p;     // the process that waits; NULL if none waits yet
  mp_obj_t alt;  // the Alternative that has replaced this object, or None
  mp_obj_t v;    // the value that was read from the guard `won`
  mp_int_t won;  // the guard that was chosen, or -1
  mp_int_t size;
  void* guards[];  // the ends, then their channels: an end can be closed while the select waits
} sel_t;

typedef struct {
  proc_t *head, *tail, *cur;
  proc_t* who;  // the process whose operations at_once() counts
  // for at_once(): how many more operations `who` may do
  mp_int_t left;
  mp_obj_t read, write, ended, failed, strange;  // set by hooks()
  mp_obj_t slow, settle, chosen;                 // set by choices()
  mp_obj_t reader, writer;                       // set by methods()
  // for a natmod: the StopIteration that carries values; stop_args are its arguments
  mp_obj_t stop;
  mp_obj_tuple_t* stop_args;
} state_t;

#if NATMOD
state_t state;  // mpy_ld requires that neither this object nor the next ones are static
#define S (state)
mp_obj_full_type_t proc_type, chan_type, rd_type, wr_type, done_type, once_type;
mp_obj_base_t done_object, once_object;
chan_t closed;
#define TYPE(t) ((mp_obj_type_t*)&t)
#define TRUE_OBJECT (mp_const_true)
#else
MP_REGISTER_ROOT_POINTER(void* weft_state[18]);
typedef char state_fits[sizeof(state_t) <= 18 * sizeof(void*) ? 1 : -1];
#define S (*(state_t*)MP_STATE_VM(weft_state))
extern const mp_obj_type_t proc_type, chan_type, rd_type, wr_type, done_type, once_type, buf_type,
    sel_type;
static const mp_obj_base_t done_object = {&done_type}, once_object = {&once_type};
static const chan_t closed = {
    {&chan_type}, MP_ROM_FALSE, MP_ROM_NONE, MP_ROM_NONE,
    MP_ROM_NONE,  MP_ROM_NONE,  MP_ROM_NONE, MP_ROM_NONE,
};
static const mp_rom_obj_tuple_t ends = {
    {&mp_type_tuple}, 2, {MP_ROM_PTR(&rd_type), MP_ROM_PTR(&wr_type)}};
#define TYPE(t) (&t)
#endif
#define DONE (MP_OBJ_FROM_PTR(&done_object))
#define ONCE (MP_OBJ_FROM_PTR(&once_object))
#define IS(o, t) (mp_obj_is_obj(o) && ((mp_obj_base_t*)MP_OBJ_TO_PTR(o))->type == TYPE(t))
#define BUF(o) ((buf_t*)MP_OBJ_TO_PTR(o))
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

// --- waiting queues

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

#if !NATMOD
// --- buffers

static void buf_put(buf_t* b, mp_obj_t v) {
  size_t at = b->first + b->count++;
  b->values[at < b->size ? at : at - b->size] = v;
}

static mp_obj_t buf_take(buf_t* b) {
  mp_obj_t v = b->values[b->first];
  b->values[b->first] = mp_const_none;
  if (++b->first == b->size) {
    b->first = 0;
  }
  b->count--;
  return v;
}
#endif
