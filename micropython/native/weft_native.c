// weft_native: the core in C, in the place of weft/_plain.py. It contains the parts that every
// communication uses: the run queue, resuming a process, and a plain read or write at an open
// rendezvous. ../README.md ("Inside") specifies each part. The Python functions that hooks()
// registers handle all other cases: ends of channels, cancellation, and the cases named below.
// weft_native.h contains the objects and their invariants, and the queues.
//
// This source has two builds. A user C module is linked into the firmware. A natmod (.mpy) is
// loaded at run time, reaches MicroPython only through its function table, and lies in RAM, where
// it should not exceed 4 KB: so it has no buffers, and no select of readers.
#include "weft_native.h"
#define ABI (2)

// --- reading and writing

static mp_obj_t or_none(proc_t* p) { return p == NULL ? mp_const_none : MP_OBJ_FROM_PTR(p); }

enum { AT_ONCE = 1000 };  // operations in a row that a process may do without being suspended

// Counts an operation of p that completed immediately, for which no other process waited. Returns
// true if there were too many in a row, so that other processes must run first (rule 7.7).
static bool at_once(proc_t* p) {
  if (S.who != p) {
    S.who = p;
    S.left = AT_ONCE;
  }
  if (--S.left >= 0) {
    return false;
  }
  S.left = AT_ONCE;
  return true;
}

static bool is_end(mp_obj_t v) { return IS(v, rd_type) || IS(v, wr_type); }

// One step of a read. Returns the value, or MP_OBJ_NULL if the process must be suspended.
static mp_obj_t rd_step(end_t* e) {
  proc_t* p = S.cur;
  if (p != NULL) {
    if (p->at == mp_const_none) {
      chan_t* c = e->c;
      if (c->ok == mp_const_true) {
        if (c->w != mp_const_none) {
          proc_t* w = take_first(&c->w);
          w->at = mp_const_none;
          push(w);
          return w->v;
        }
        p->at = MP_OBJ_FROM_PTR(e);
        line_up(&c->r, &c->rt, p);
        return MP_OBJ_NULL;
      }
#if !NATMOD
      if (c->q != mp_const_none) {
        buf_t* b = BUF(c->q);
        if (b->count == 0) {
          p->at = MP_OBJ_FROM_PTR(e);
          line_up(&c->r, &c->rt, p);
          return MP_OBJ_NULL;
        }
        if (!is_end(b->values[b->first])) {
          p->v = buf_take(b);
          if (c->w != mp_const_none) {
            proc_t* w = take_first(&c->w);
            w->at = mp_const_none;
            buf_put(b, w->v);
            push(w);
          }
          if (!at_once(p)) {
            return p->v;
          }
          p->at = MP_OBJ_FROM_PTR(e);  // as if p had waited and a writer had arrived
          push(p);
          return MP_OBJ_NULL;
        }
      }
#endif
    } else if (p->at == MP_OBJ_FROM_PTR(e)) {
      p->at = mp_const_none;
      return p->v;
    }
  }
  mp_obj_t args[2] = {MP_OBJ_FROM_PTR(e), or_none(p)};
  mp_obj_t got = mp_call_function_n_kw(S.read, 2, 0, args);
  if (got == mp_const_none) {
    return MP_OBJ_NULL;
  }
  return ((mp_obj_tuple_t*)MP_OBJ_TO_PTR(got))->items[0];
}

static mp_obj_t rd_iternext(mp_obj_t self) {
  mp_obj_t v = rd_step(MP_OBJ_TO_PTR(self));
  if (v == MP_OBJ_NULL) {
    return mp_const_none;
  }
#if NATMOD
  // A natmod cannot use MicroPython's own "stop with a value". So one exception is made once, and
  // its value is replaced each time: the frame that awaits removes the value immediately.
  S.stop_args->items[0] = v;
  nlr_raise(S.stop);
#else
  return mp_make_stop_iteration(v);
#endif
}

#if !NATMOD
#include "weft_select.h"
#endif

static mp_obj_t wr_write(mp_obj_t self, mp_obj_t v) {
  end_t* e = MP_OBJ_TO_PTR(self);
  chan_t* c = e->c;
  proc_t* p = S.cur;
  if (p != NULL && p->at == mp_const_none && !is_end(v)) {
    bool open = c->ok == mp_const_true;
#if !NATMOD
    if (!open) {
      if (IS(c->ok, sel_type)) {
        sel_commit(MP_OBJ_TO_PTR(c->ok), c, v);
        return DONE;
      }
      open = c->q != mp_const_none && (S.who != p || S.left != 0);  // otherwise the hook handles it
      bool room = open && BUF(c->q)->count < BUF(c->q)->size;
      if (room) {
        (void)at_once(p);
        if (c->r == mp_const_none) {
          buf_put(BUF(c->q), v);
          return DONE;
        }
      }
    }
#endif
    if (open) {
      if (c->r != mp_const_none) {
        proc_t* r = take_first(&c->r);
        r->v = v;
        push(r);
        return DONE;
      }
      p->at = self;
      p->v = v;
      line_up(&c->w, &c->wt, p);
      return ONCE;
    }
  }
  mp_obj_t args[3] = {self, v, or_none(p)};
  return mp_call_function_n_kw(S.write, 3, 0, args);
}
static MP_DEFINE_CONST_FUN_OBJ_2(wr_write_obj, wr_write);

static mp_obj_t rd_read(mp_obj_t self) { return self; }
static MP_DEFINE_CONST_FUN_OBJ_1(rd_read_obj, rd_read);

static mp_obj_t rd_call(mp_obj_t self, size_t n_args, size_t n_kw, const mp_obj_t* args) {
  mp_arg_check_num(n_args, n_kw, 0, 0, false);
  return self;
}

static mp_obj_t wr_call(mp_obj_t self, size_t n_args, size_t n_kw, const mp_obj_t* args) {
  mp_arg_check_num(n_args, n_kw, 1, 1, false);
  return wr_write(self, args[0]);
}

static mp_obj_t done_iternext(mp_obj_t self) { return MP_OBJ_STOP_ITERATION; }

// Suspends the process once: the step that suspends it sets the mark in `go`, the next clears it.
static mp_obj_t once_iternext(mp_obj_t self) {
  proc_t* p = S.cur;
  if (p == NULL) {
    mp_raise_TypeError(MP_ERROR_TEXT("ONCE is for processes"));
  }
  if (p->go == self) {
    p->go = mp_const_none;
    return MP_OBJ_STOP_ITERATION;
  }
  p->go = self;
  return mp_const_none;
}

// --- objects

// Reads or sets a field, as `dest` requests.
static void use_field(mp_obj_t* field, mp_obj_t* dest) {
  if (dest[0] == MP_OBJ_NULL) {
    dest[0] = *field;
  } else if (dest[1] != MP_OBJ_NULL) {
    *field = dest[1];
    dest[0] = MP_OBJ_NULL;
  }
}

static void* make(size_t size, const mp_obj_type_t* type, size_t n_args, size_t n_kw) {
  mp_arg_check_num(n_args, n_kw, 1, 1, false);
  mp_obj_base_t* o = m_malloc(size);
  o->type = type;
  for (mp_obj_t* field = (mp_obj_t*)(o + 1); (char*)field < (char*)o + size; field++) {
    *field = mp_const_none;
  }
  return o;
}

static mp_obj_t proc_make_new(const mp_obj_type_t* type, size_t n_args, size_t n_kw,
                              const mp_obj_t* args) {
  proc_t* p = make(sizeof(proc_t), TYPE(proc_type), n_args, n_kw);
  p->rn = NULL;
  p->x = args[0];
  return MP_OBJ_FROM_PTR(p);
}

static mp_obj_t proc_start(mp_obj_t self, mp_obj_t g) {
  PROC(self)->g = g;
  PROC(self)->go = mp_const_none;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(proc_start_obj, proc_start);

static mp_obj_t proc_throw(mp_obj_t self, mp_obj_t e) {
  PROC(self)->go = e;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(proc_throw_obj, proc_throw);

static void proc_attr(mp_obj_t self, qstr attr, mp_obj_t* dest) {
  proc_t* p = PROC(self);
  mp_obj_t* field;
  if (attr == MP_QSTR_at) {
    field = &p->at;
#if !NATMOD
    if (IS(p->at, sel_type)) {
      sel_settle(MP_OBJ_TO_PTR(p->at));
    }
#endif
  } else if (attr == MP_QSTR_v) {
    field = &p->v;
  } else if (attr == MP_QSTR_x) {
    field = &p->x;
  } else if (attr == MP_QSTR_nx) {
    field = &p->nx;
  } else if (attr == MP_QSTR_g) {
    field = &p->g;
  } else if (attr == MP_QSTR_go) {
    field = &p->go;
  } else {
    if (dest[0] == MP_OBJ_NULL && (attr == MP_QSTR_start || attr == MP_QSTR_throw)) {
      dest[0] = attr == MP_QSTR_start ? MP_OBJ_FROM_PTR(&proc_start_obj)
                                      : MP_OBJ_FROM_PTR(&proc_throw_obj);
      dest[1] = self;
    }
    return;
  }
  use_field(field, dest);
}

static mp_obj_t chan_make_new(const mp_obj_type_t* type, size_t n_args, size_t n_kw,
                              const mp_obj_t* args) {
  chan_t* c = make(sizeof(chan_t), TYPE(chan_type), n_args, n_kw);
  c->ok = mp_const_true;
  c->x = args[0];
  return MP_OBJ_FROM_PTR(c);
}

static void chan_attr(mp_obj_t self, qstr attr, mp_obj_t* dest) {
  chan_t* c = MP_OBJ_TO_PTR(self);
#if !NATMOD
  if (attr != MP_QSTR_x && IS(c->ok, sel_type)) {
    sel_settle(MP_OBJ_TO_PTR(c->ok));
  }
#endif
  mp_obj_t* field;
  if (attr == MP_QSTR_ok) {
    field = &c->ok;
  } else if (attr == MP_QSTR_r) {
    field = &c->r;
  } else if (attr == MP_QSTR_rt) {
    field = &c->rt;
  } else if (attr == MP_QSTR_w) {
    field = &c->w;
  } else if (attr == MP_QSTR_wt) {
    field = &c->wt;
  } else if (attr == MP_QSTR_x) {
    field = &c->x;
  } else if (attr == MP_QSTR_q) {
    field = &c->q;
  } else {
    return;
  }
  if (c != &closed || dest[0] == MP_OBJ_NULL) {  // the fields of `closed` cannot be set
    use_field(field, dest);
  }
}

#if !NATMOD
// Buf(k, n) makes a buffer for the channel k. The buffer holds n values; the channel counts them.
static mp_obj_t buf_make_new(const mp_obj_type_t* type, size_t n_args, size_t n_kw,
                             const mp_obj_t* args) {
  mp_arg_check_num(n_args, n_kw, 2, 2, false);
  size_t n = (size_t)mp_obj_get_int(args[1]);
  buf_t* b = m_malloc(sizeof(buf_t) + n * sizeof(mp_obj_t));
  b->base.type = TYPE(buf_type);
  b->first = b->count = 0;
  b->size = n;
  for (size_t i = 0; i < n; i++) {
    b->values[i] = mp_const_none;
  }
  return MP_OBJ_FROM_PTR(b);
}

static mp_obj_t buf_append(mp_obj_t self, mp_obj_t v) {
  buf_put(BUF(self), v);
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(buf_append_obj, buf_append);

static mp_obj_t buf_popleft(mp_obj_t self) { return buf_take(BUF(self)); }
static MP_DEFINE_CONST_FUN_OBJ_1(buf_popleft_obj, buf_popleft);

static void buf_attr(mp_obj_t self, qstr attr, mp_obj_t* dest) {
  if (dest[0] == MP_OBJ_NULL && (attr == MP_QSTR_append || attr == MP_QSTR_popleft)) {
    dest[0] = attr == MP_QSTR_append ? MP_OBJ_FROM_PTR(&buf_append_obj)
                                     : MP_OBJ_FROM_PTR(&buf_popleft_obj);
    dest[1] = self;
  }
}

static mp_obj_t buf_unary_op(mp_unary_op_t op, mp_obj_t self) {
  if (op == MP_UNARY_OP_BOOL) {
    return mp_obj_new_bool(BUF(self)->count != 0);
  }
  return op == MP_UNARY_OP_LEN ? MP_OBJ_NEW_SMALL_INT(BUF(self)->count) : MP_OBJ_NULL;
}
#endif

static mp_obj_t end_make(const mp_obj_type_t* type, size_t n_args, size_t n_kw,
                         const mp_obj_t* args) {
  end_t* e = make(sizeof(end_t), type, n_args, n_kw);
  if (!IS(args[0], chan_type)) {
    mp_raise_TypeError(MP_ERROR_TEXT("an end needs a Chan"));
  }
  e->c = MP_OBJ_TO_PTR(args[0]);
  e->h = MP_OBJ_NEW_SMALL_INT(0);
  return MP_OBJ_FROM_PTR(e);
}

static mp_obj_t rd_make_new(const mp_obj_type_t* type, size_t n_args, size_t n_kw,
                            const mp_obj_t* args) {
  return end_make(TYPE(rd_type), n_args, n_kw, args);
}

static mp_obj_t wr_make_new(const mp_obj_type_t* type, size_t n_args, size_t n_kw,
                            const mp_obj_t* args) {
  return end_make(TYPE(wr_type), n_args, n_kw, args);
}

// Looks up an attribute of an end: a field, or a method of the class `methods`, set by methods().
static void end_attr(mp_obj_t self, mp_obj_t methods, qstr attr, mp_obj_t* dest) {
  end_t* e = MP_OBJ_TO_PTR(self);
  if (attr == MP_QSTR_c) {
    if (dest[0] == MP_OBJ_NULL) {
      dest[0] = MP_OBJ_FROM_PTR(e->c);
    } else if (dest[1] != MP_OBJ_NULL && IS(dest[1], chan_type)) {
      e->c = MP_OBJ_TO_PTR(dest[1]);
      dest[0] = MP_OBJ_NULL;
    }
  } else if (attr == MP_QSTR_h) {
    use_field(&e->h, dest);
  } else if (attr == MP_QSTR_x) {
    use_field(&e->x, dest);
  } else if (attr == MP_QSTR_closed || attr == MP_QSTR_channel) {
    if (dest[0] == MP_OBJ_NULL) {
      bool open = e->x == mp_const_none;
      if (attr == MP_QSTR_closed) {
        dest[0] = mp_obj_new_bool(!open);
      } else {
        dest[0] = open ? e->c->x : mp_obj_subscr(e->x, MP_OBJ_NEW_SMALL_INT(1), MP_OBJ_SENTINEL);
      }
    }
  } else if (dest[0] == MP_OBJ_NULL && methods != MP_OBJ_NULL) {
    mp_load_method_maybe(methods, attr, dest);
    if (dest[0] != MP_OBJ_NULL && dest[1] == MP_OBJ_NULL) {
      dest[1] = self;
    }
  }
}

static void rd_attr(mp_obj_t self, qstr attr, mp_obj_t* dest) {
  if (attr == MP_QSTR_read && dest[0] == MP_OBJ_NULL) {
    dest[0] = MP_OBJ_FROM_PTR(&rd_read_obj);
    dest[1] = self;
  } else {
    end_attr(self, S.reader, attr, dest);
  }
}

static void wr_attr(mp_obj_t self, qstr attr, mp_obj_t* dest) {
  if (attr == MP_QSTR_write && dest[0] == MP_OBJ_NULL) {
    dest[0] = MP_OBJ_FROM_PTR(&wr_write_obj);
    dest[1] = self;
  } else {
    end_attr(self, S.writer, attr, dest);
  }
}

// --- the loop

#if NATMOD
// Room for the registers that the firmware's nlr_push saves. It can save floating point registers
// even if this natmod was compiled without them.
typedef struct {
  nlr_buf_t buf;
  void* more[16];
} nlr_room_t;
#define NLR_PUSH(room) (mp_fun_table.nlr_push(&(room)->buf))
#define NLR_POP() (mp_fun_table.nlr_pop())
#define NLR_VALUE(room) (MP_OBJ_FROM_PTR((room)->buf.ret_val))
#else
typedef struct {
  nlr_buf_t buf;
} nlr_room_t;
#define NLR_PUSH(room) (nlr_push(&(room)->buf))
#define NLR_POP() (nlr_pop())
#define NLR_VALUE(room) (MP_OBJ_FROM_PTR((room)->buf.ret_val))
#endif

// Resumes a generator. On entry *ret is the exception to raise in it, or MP_OBJ_NULL; on return
// *ret is the object that it yielded, returned or raised.
static __attribute__((noinline)) mp_vm_return_kind_t resume(mp_obj_t g, mp_obj_t send,
                                                            mp_obj_t volatile* ret) {
#if !NATMOD
  if (mp_obj_is_type(g, &mp_type_gen_instance)) {
    mp_obj_t thrown = *ret;
    return mp_obj_gen_resume(g, thrown == MP_OBJ_NULL ? send : MP_OBJ_NULL, thrown, (mp_obj_t*)ret);
  }
#endif
  nlr_room_t nlr;
  if (NLR_PUSH(&nlr) == 0) {
#if NATMOD
    bool yielded = mp_fun_table.yield_from(g, send, (mp_obj_t*)ret);
    NLR_POP();
    return yielded ? MP_VM_RETURN_YIELD : MP_VM_RETURN_NORMAL;
#else
    mp_obj_t thrown = *ret;
    mp_vm_return_kind_t kind =
        mp_resume(g, thrown == MP_OBJ_NULL ? send : MP_OBJ_NULL, thrown, (mp_obj_t*)ret);
    NLR_POP();
    return kind;
#endif
  }
  *ret = NLR_VALUE(&nlr);
  return MP_VM_RETURN_EXCEPTION;
}

// Calls rd_step() for a process that yielded an Rd. *raised: the hook's exception, to be raised.
static __attribute__((noinline)) mp_obj_t guarded_step(end_t* e, mp_obj_t volatile* raised) {
  nlr_room_t nlr;
  if (NLR_PUSH(&nlr) == 0) {
    mp_obj_t v = rd_step(e);
    NLR_POP();
    return v;
  }
  *raised = NLR_VALUE(&nlr);
  return MP_OBJ_NULL;
}

static void report(mp_obj_t hook, proc_t* p, mp_obj_t what) {
  S.cur = NULL;  // an exception of the hook leaves the loop
  mp_obj_t args[2] = {MP_OBJ_FROM_PTR(p), what};
  mp_call_function_n_kw(hook, 2, 0, args);
}

// One step of a process: runs it until it parks or ends.
static void turn(proc_t* p) {
  mp_obj_t send = mp_const_none;
  mp_obj_t volatile ret = MP_OBJ_NULL;
  mp_obj_t go = p->go;
  if (go != mp_const_none && go != ONCE) {
    if (p->g == mp_const_none) {  // the process has no generator: `go` is a function to call
      mp_obj_t none = mp_const_none;
      mp_call_function_n_kw(go, 1, 0, &none);
      return;
    }
    p->go = mp_const_none;
    ret = go;
  }
  for (;;) {
    if (ret == MP_OBJ_NULL || !IS(ret, rd_type)) {
      mp_vm_return_kind_t kind = resume(p->g, send, &ret);
      mp_obj_t got = ret;
      if (kind != MP_VM_RETURN_YIELD) {
        report(kind == MP_VM_RETURN_NORMAL ? S.ended : S.failed, p, got);
        return;
      }
      if (got == DONE) {
        send = mp_const_none;
        ret = MP_OBJ_NULL;
        continue;
      }
      if (got == ONCE || (got == mp_const_none && (p->at != mp_const_none || p->rn != NULL))) {
        return;
      }
      if (!IS(got, rd_type)) {
        mp_obj_t args[2] = {MP_OBJ_FROM_PTR(p), got};
        ret = mp_call_function_n_kw(S.strange, 2, 0, args);
        continue;
      }
    }
    mp_obj_t rd = ret;
    ret = MP_OBJ_NULL;
    send = guarded_step(MP_OBJ_TO_PTR(rd), &ret);
    if (send == MP_OBJ_NULL && ret == MP_OBJ_NULL) {
      p->go = rd;
      return;
    }
  }
}

static mp_obj_t core_loop(mp_obj_t limit_in) {
  mp_int_t limit = mp_obj_get_int(limit_in);
  while (S.head != NULL) {
    proc_t* p = pop();
    S.cur = p;
    turn(p);
    if (limit != 0 && --limit == 0) {
      break;
    }
  }
  S.cur = NULL;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_loop_obj, core_loop);

// --- the module

static proc_t* need_proc(mp_obj_t o) {
  if (!IS(o, proc_type)) {
    mp_raise_TypeError(MP_ERROR_TEXT("needs a Proc"));
  }
  return PROC(o);
}

static mp_obj_t core_push(mp_obj_t p) {
  push(need_proc(p));
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_push_obj, core_push);

static mp_obj_t core_cur(void) { return or_none(S.cur); }
static MP_DEFINE_CONST_FUN_OBJ_0(core_cur_obj, core_cur);

static mp_obj_t core_setcur(mp_obj_t p) {
  S.cur = p == mp_const_none ? NULL : need_proc(p);
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_setcur_obj, core_setcur);

static mp_obj_t core_waiting(void) {
  mp_int_t n = 0;
  for (proc_t* p = S.head; p != NULL; p = p->rn == p ? NULL : p->rn) {
    n++;
  }
  return MP_OBJ_NEW_SMALL_INT(n);
}
static MP_DEFINE_CONST_FUN_OBJ_0(core_waiting_obj, core_waiting);

static mp_obj_t core_at_once(mp_obj_t p) {
  return mp_obj_new_bool(at_once(p == mp_const_none ? NULL : PROC(p)));
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_at_once_obj, core_at_once);

static mp_obj_t core_room(mp_obj_t n) {  // the queue needs no room: its links are in the processes
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(core_room_obj, core_room);

static mp_obj_t core_hooks(size_t n_args, const mp_obj_t* args) {
  S.read = args[0];
  S.write = args[1];
  S.ended = args[2];
  S.failed = args[3];
  S.strange = args[4];
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(core_hooks_obj, 5, 5, core_hooks);

static mp_obj_t core_methods(mp_obj_t reader, mp_obj_t writer) {
  S.reader = reader;
  S.writer = writer;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(core_methods_obj, core_methods);

// clang-format would break these lines in other places in each run.
// clang-format off
#define EXPORTS(X) \
  X(Proc, TYPE(proc_type)) X(Chan, TYPE(chan_type)) X(Rd, TYPE(rd_type)) \
  X(Wr, TYPE(wr_type)) X(CLOSED, &closed) X(DONE, &done_object) X(ONCE, &once_object) \
  X(push, &core_push_obj) X(cur, &core_cur_obj) X(setcur, &core_setcur_obj) \
  X(waiting, &core_waiting_obj) X(room, &core_room_obj) X(loop, &core_loop_obj) \
  X(hooks, &core_hooks_obj) X(methods, &core_methods_obj) X(at_once, &core_at_once_obj)
// clang-format on

#if NATMOD
static void define(mp_obj_full_type_t* type, qstr name, int flags) {
  type->base.type = &mp_type_type;
  type->flags = flags;
  type->name = name;
}

mp_obj_t mpy_init(mp_obj_fun_bc_t* self, size_t n_args, size_t n_kw, mp_obj_t* args) {
  MP_DYNRUNTIME_INIT_ENTRY
  if (mp_fun_table.setjmp_ != NULL) {
    mp_raise_msg(MP_OBJ_TO_PTR(mp_load_global(MP_QSTR_ImportError)),
                 MP_ERROR_TEXT("no natmod for setjmp"));
  }
  define(&proc_type, MP_QSTR_Proc, MP_TYPE_FLAG_NONE);
  MP_OBJ_TYPE_SET_SLOT(&proc_type, make_new, proc_make_new, 0);
  MP_OBJ_TYPE_SET_SLOT(&proc_type, attr, proc_attr, 1);
  define(&chan_type, MP_QSTR_Chan, MP_TYPE_FLAG_NONE);
  MP_OBJ_TYPE_SET_SLOT(&chan_type, make_new, chan_make_new, 0);
  MP_OBJ_TYPE_SET_SLOT(&chan_type, attr, chan_attr, 1);
  define(&rd_type, MP_QSTR_Rd, MP_TYPE_FLAG_ITER_IS_ITERNEXT);
  MP_OBJ_TYPE_SET_SLOT(&rd_type, make_new, rd_make_new, 0);
  MP_OBJ_TYPE_SET_SLOT(&rd_type, attr, rd_attr, 1);
  MP_OBJ_TYPE_SET_SLOT(&rd_type, call, rd_call, 2);
  MP_OBJ_TYPE_SET_SLOT(&rd_type, iter, rd_iternext, 3);
  define(&wr_type, MP_QSTR_Wr, MP_TYPE_FLAG_NONE);
  MP_OBJ_TYPE_SET_SLOT(&wr_type, make_new, wr_make_new, 0);
  MP_OBJ_TYPE_SET_SLOT(&wr_type, attr, wr_attr, 1);
  MP_OBJ_TYPE_SET_SLOT(&wr_type, call, wr_call, 2);
  define(&done_type, MP_QSTR_DONE, MP_TYPE_FLAG_ITER_IS_ITERNEXT);
  MP_OBJ_TYPE_SET_SLOT(&done_type, iter, done_iternext, 0);
  define(&once_type, MP_QSTR_ONCE, MP_TYPE_FLAG_ITER_IS_ITERNEXT);
  MP_OBJ_TYPE_SET_SLOT(&once_type, iter, once_iternext, 0);
  done_object.type = TYPE(done_type);
  once_object.type = TYPE(once_type);
  mp_obj_t none = mp_const_none;
  closed = (chan_t){{TYPE(chan_type)}, mp_const_false, none, none, none, none, none, none};
  mp_obj_t ends[2] = {MP_OBJ_FROM_PTR(&rd_type), MP_OBJ_FROM_PTR(&wr_type)};
  S.stop = mp_call_function_n_kw(mp_load_global(MP_QSTR_StopIteration), 1, 0, &none);
  S.stop_args = MP_OBJ_TO_PTR(mp_load_attr(S.stop, MP_QSTR_args));
  mp_store_global(MP_QSTR_stop, S.stop);
#define X(name, value) mp_store_global(MP_QSTR_##name, MP_OBJ_FROM_PTR(value));
  EXPORTS(X)
#undef X
  mp_store_global(MP_QSTR_ENDS, mp_obj_new_tuple(2, ends));
  mp_store_global(MP_QSTR_REQ, MP_OBJ_NEW_QSTR(MP_QSTR_cancelled));
  mp_store_global(MP_QSTR_NATIVE, mp_const_true);
  mp_store_global(MP_QSTR_ABI, MP_OBJ_NEW_SMALL_INT(ABI));
  MP_DYNRUNTIME_INIT_EXIT
}

#else
// The first import after a start or a soft reset calls this function, which clears the state.
static mp_obj_t core_init(void) {
  S = (state_t){NULL};
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_0(core_init_obj, core_init);

MP_DEFINE_CONST_OBJ_TYPE(proc_type, MP_QSTR_Proc, MP_TYPE_FLAG_NONE, make_new, proc_make_new, attr,
                         proc_attr);
MP_DEFINE_CONST_OBJ_TYPE(chan_type, MP_QSTR_Chan, MP_TYPE_FLAG_NONE, make_new, chan_make_new, attr,
                         chan_attr);
MP_DEFINE_CONST_OBJ_TYPE(rd_type, MP_QSTR_Rd, MP_TYPE_FLAG_ITER_IS_ITERNEXT, make_new, rd_make_new,
                         attr, rd_attr, call, rd_call, iter, rd_iternext);
MP_DEFINE_CONST_OBJ_TYPE(wr_type, MP_QSTR_Wr, MP_TYPE_FLAG_NONE, make_new, wr_make_new, attr,
                         wr_attr, call, wr_call);
MP_DEFINE_CONST_OBJ_TYPE(done_type, MP_QSTR_DONE, MP_TYPE_FLAG_ITER_IS_ITERNEXT, iter,
                         done_iternext);
MP_DEFINE_CONST_OBJ_TYPE(once_type, MP_QSTR_ONCE, MP_TYPE_FLAG_ITER_IS_ITERNEXT, iter,
                         once_iternext);
MP_DEFINE_CONST_OBJ_TYPE(buf_type, MP_QSTR_Buf, MP_TYPE_FLAG_NONE, make_new, buf_make_new, attr,
                         buf_attr, unary_op, buf_unary_op);
MP_DEFINE_CONST_OBJ_TYPE(sel_type, MP_QSTR_select, MP_TYPE_FLAG_ITER_IS_ITERNEXT, iter,
                         sel_iternext);

#define X(name, value) {MP_ROM_QSTR(MP_QSTR_##name), MP_ROM_PTR(value)},
static const mp_rom_map_elem_t weft_native_globals_table[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_weft_native)},
    {MP_ROM_QSTR(MP_QSTR___init__), MP_ROM_PTR(&core_init_obj)},
    {MP_ROM_QSTR(MP_QSTR_ABI), MP_ROM_INT(ABI)},
    {MP_ROM_QSTR(MP_QSTR_NATIVE), MP_ROM_TRUE},
    {MP_ROM_QSTR(MP_QSTR_REQ), MP_ROM_QSTR(MP_QSTR_cancelled)},
    {MP_ROM_QSTR(MP_QSTR_ENDS), MP_ROM_PTR(&ends)},
    {MP_ROM_QSTR(MP_QSTR_Buf), MP_ROM_PTR(&buf_type)},
    {MP_ROM_QSTR(MP_QSTR_select), MP_ROM_PTR(&core_select_obj)},
    {MP_ROM_QSTR(MP_QSTR_choices), MP_ROM_PTR(&core_choices_obj)},
    EXPORTS(X)};
#undef X
static MP_DEFINE_CONST_DICT(weft_native_globals, weft_native_globals_table);
const mp_obj_module_t weft_native_module = {
    .base = {&mp_type_module},
    .globals = (mp_obj_dict_t*)&weft_native_globals,
};
MP_REGISTER_MODULE(MP_QSTR_weft_native, weft_native_module);

// mpy_ld scans this text for the names of a natmod, and does not see those in X(): MP_QSTR_Proc
// MP_QSTR_Chan MP_QSTR_Rd MP_QSTR_Wr MP_QSTR_DONE MP_QSTR_ONCE MP_QSTR_push MP_QSTR_cur
// MP_QSTR_setcur MP_QSTR_waiting MP_QSTR_room MP_QSTR_loop MP_QSTR_hooks MP_QSTR_methods
// MP_QSTR_CLOSED MP_QSTR_at_once
#endif
