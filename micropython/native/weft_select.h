// The core itself does a fair select of readers of plain channels, if their waiting queues hold
// only processes. A select that waits is in no queue: `ok` of each of its channels is the sel_t
// itself. A writer that arrives commits it. Any other code that touches one of the channels, or
// reads where the process waits, is Python code: chan_attr() and proc_attr() notice such an access,
// and first replace the sel_t by an Alternative of weft/_alt.py (sel_settle).
//
// weft_native.c includes this file, after its code for reading and writing. A natmod has no select.
#pragma once

static chan_t* sel_chan(sel_t* s, mp_int_t i) { return s->guards[s->size + i]; }

static void sel_unmark(sel_t* s) {
  for (mp_int_t i = 0; i < s->size; i++) {
    sel_chan(s, i)->ok = mp_const_true;
  }
}

static void sel_commit(sel_t* s, chan_t* c, mp_obj_t v) {
  sel_unmark(s);
  for (s->won = 0; sel_chan(s, s->won) != c; s->won++) {
  }
  s->v = v;
  push(s->p);
}

static void sel_settle(sel_t* s) {
  if (s->won < 0) {
    sel_unmark(s);
  }
  s->p->at = mp_const_none;
  mp_obj_t args[4] = {mp_obj_new_tuple(s->size, (const mp_obj_t*)s->guards), MP_OBJ_FROM_PTR(s->p),
                      MP_OBJ_NEW_SMALL_INT(s->won), s->v};
  s->alt = mp_call_function_n_kw(S.settle, 4, 0, args);
}

// Returns the entry of this select in the process's table `rots`, which holds the guard at which
// the next scan begins. Returns NULL if there is no such table yet, or if it is full.
static mp_map_elem_t* sel_turn(sel_t* s, proc_t* p) {
  mp_obj_t rots = mp_load_attr(p->x, MP_QSTR_rots);
  if (!mp_obj_is_type(rots, &mp_type_dict)) {
    return NULL;
  }
  mp_map_t* map = mp_obj_dict_get_map(rots);
  mp_int_t mark = (mp_int_t)s->guards[0] ^ (mp_int_t)s->guards[s->size - 1];
  mp_obj_t key = MP_OBJ_NEW_SMALL_INT(mark + s->size);  // the key that weft/_alt.py uses
  mp_map_elem_t* found = mp_map_lookup(map, key, MP_MAP_LOOKUP);
  if (found == NULL && map->used < 8) {
    found = mp_map_lookup(map, key, MP_MAP_LOOKUP_ADD_IF_NOT_FOUND);
    found->value = MP_OBJ_NEW_SMALL_INT(0);
  }
  return found;
}

static mp_obj_t sel_result(sel_t* s, mp_map_elem_t* turn, mp_int_t i, mp_obj_t v) {
  turn->value = MP_OBJ_NEW_SMALL_INT(i + 1 < s->size ? i + 1 : 0);
  mp_obj_t pair[2] = {MP_OBJ_NEW_SMALL_INT(i), v};
  return mp_make_stop_iteration(mp_obj_new_tuple(2, pair));
}

// Returns whether the core may do this select for the running process; stores the channels.
static bool sel_open(sel_t* s) {
  proc_t* p = S.cur;
  if (p == NULL || p->at != mp_const_none || p->x == mp_const_none) {
    return false;
  }
  for (mp_int_t i = 0; i < s->size; i++) {
    chan_t* c = ((end_t*)s->guards[i])->c;
    if (c->ok != mp_const_true) {
      return false;
    }
    s->guards[s->size + i] = c;
  }
  return true;
}

static mp_obj_t sel_iternext(mp_obj_t self) {
  sel_t* s = MP_OBJ_TO_PTR(self);
  proc_t* p = S.cur;
  if (s->alt != mp_const_none) {  // an Alternative, or the coroutine of the select in Python
    if (s->p == NULL) {
      mp_obj_t ret = MP_OBJ_NULL;
      mp_vm_return_kind_t kind = mp_resume(s->alt, mp_const_none, MP_OBJ_NULL, &ret);
      if (kind == MP_VM_RETURN_YIELD) {
        return ret;
      }
      if (kind == MP_VM_RETURN_EXCEPTION) {
        nlr_raise(ret);
      }
      return mp_make_stop_iteration(ret);
    }
    mp_obj_t pair = mp_call_function_2(S.chosen, s->alt, MP_OBJ_FROM_PTR(p));
    mp_map_elem_t* turn = sel_turn(s, p);
    if (turn != NULL) {
      mp_int_t i = MP_OBJ_SMALL_INT_VALUE(((mp_obj_tuple_t*)MP_OBJ_TO_PTR(pair))->items[0]);
      turn->value = MP_OBJ_NEW_SMALL_INT(i + 1 < s->size ? i + 1 : 0);
    }
    return mp_make_stop_iteration(pair);
  }
  if (s->p != NULL) {
    p->at = mp_const_none;
    return sel_result(s, sel_turn(s, p), s->won, s->v);
  }
  bool open = sel_open(s);
  mp_map_elem_t* turn = open ? sel_turn(s, p) : NULL;
  if (turn != NULL) {
    mp_int_t i = MP_OBJ_SMALL_INT_VALUE(turn->value);
    for (mp_int_t n = 0; n < s->size; n++) {
      chan_t* c = sel_chan(s, i);
      if (c->w != mp_const_none) {
        proc_t* w = take_first(&c->w);
        w->at = mp_const_none;
        push(w);
        return sel_result(s, turn, i, w->v);
      }
      open = open && c->r == mp_const_none;
      i = i + 1 < s->size ? i + 1 : 0;
    }
    for (mp_int_t k = 0; open && k < s->size; k++) {
      open = sel_chan(s, k)->ok == mp_const_true;  // false if two guards are of one channel
      if (!open) {
        while (k > 0) {
          sel_chan(s, --k)->ok = mp_const_true;
        }
        break;
      }
      sel_chan(s, k)->ok = self;
    }
    if (open) {
      s->p = p;
      p->at = self;
      return mp_const_none;
    }
  }
  s->alt = mp_call_function_n_kw(S.slow, s->size, 0, (const mp_obj_t*)s->guards);
  return sel_iternext(self);
}

static mp_obj_t core_select(size_t n_args, const mp_obj_t* args, mp_map_t* kw) {
  bool plain = kw->used == 0 && n_args > 0;
  for (size_t i = 0; plain && i < n_args; i++) {
    plain = IS(args[i], rd_type);
  }
  if (!plain) {
    mp_obj_t all[16];
    if (n_args + 2 * kw->used > 16) {
      mp_raise_msg(&mp_type_TypeError, MP_ERROR_TEXT("select: too many guards"));
    }
    for (size_t i = 0; i < n_args; i++) {
      all[i] = args[i];
    }
    size_t at = n_args;
    for (size_t i = 0; i < kw->alloc; i++) {
      if (mp_map_slot_is_filled(kw, i)) {
        all[at++] = kw->table[i].key;
        all[at++] = kw->table[i].value;
      }
    }
    return mp_call_function_n_kw(S.slow, n_args, kw->used, all);
  }
  sel_t* s = m_malloc(sizeof(sel_t) + 2 * n_args * sizeof(s->guards[0]));
  s->base.type = &sel_type;
  s->p = NULL;
  s->alt = s->v = mp_const_none;
  s->won = -1;
  s->size = (mp_int_t)n_args;
  for (size_t i = 0; i < n_args; i++) {
    s->guards[i] = MP_OBJ_TO_PTR(args[i]);
  }
  if (!sel_open(s)) {
    return mp_call_function_n_kw(S.slow, n_args, 0, args);
  }
  return MP_OBJ_FROM_PTR(s);
}
static MP_DEFINE_CONST_FUN_OBJ_KW(core_select_obj, 0, core_select);

static mp_obj_t core_choices(mp_obj_t slow, mp_obj_t settle, mp_obj_t chosen) {
  S.slow = slow;
  S.settle = settle;
  S.chosen = chosen;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(core_choices_obj, core_choices);
