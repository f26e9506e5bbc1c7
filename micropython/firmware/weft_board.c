// weft_board: a module for the emulated board. It provides memory for a disk, and a timer whose
// hard interrupt calls a function, as machine.Timer(hard=True) does on other ports.
//
// Invariants
// - The function runs with the heap locked, so it cannot allocate. If it raises, the exception is
//   printed and the timer is stopped.
// - The first use of the timer moves the vector table to RAM; the port's own entries are copied.
#include <string.h>

#include "py/gc.h"
#include "py/mphal.h"
#include "py/objarray.h"
#include "py/runtime.h"

#define VTOR (*(volatile uint32_t*)0xe000ed08)
#define NVIC_ISER (*(volatile uint32_t*)0xe000e100)
#define IRQ (10)  // the interrupt of the dual timer
typedef struct {
  volatile uint32_t LOAD, VALUE, CTRL, INTCLEAR;
} dual_timer;
#define DUAL ((dual_timer*)0x40002000)
#define DUAL_ON (0x80 | 0x40 | 0x20 | 0x02)  // enabled, periodic, with its interrupt, 32 bits

// The disk is in the board's second memory, which no other code uses. QEMU can load the image of a
// file system there before the start (-device loader,file=…,addr=0x21000000,force-raw=on).
#define DISK (384 * 1024)
#define DISK_MEMORY ((void*)0x21000000)
static uint32_t vectors[48] __attribute__((aligned(256)));

MP_REGISTER_ROOT_POINTER(mp_obj_t weft_board_handler);

static void on_timer(void) {
  DUAL->INTCLEAR = 1;
  mp_obj_t handler = MP_STATE_VM(weft_board_handler);
  if (handler == MP_OBJ_NULL) {
    return;
  }
  mp_sched_lock();
  gc_lock();
  nlr_buf_t nlr;
  if (nlr_push(&nlr) == 0) {
    mp_call_function_0(handler);
    nlr_pop();
  } else {
    DUAL->CTRL = 0;
    MP_STATE_VM(weft_board_handler) = MP_OBJ_NULL;
    mp_printf(&mp_plat_print, "weft_board.tick: the function raised, the timer is stopped:\n");
    mp_obj_print_exception(&mp_plat_print, MP_OBJ_FROM_PTR(nlr.ret_val));
  }
  gc_unlock();
  mp_sched_unlock();
}

// disk() returns the memory of the disk, as a bytearray.
static mp_obj_t disk(void) { return mp_obj_new_bytearray_by_ref(DISK, DISK_MEMORY); }
static MP_DEFINE_CONST_FUN_OBJ_0(disk_obj, disk);

// tick(us, function) calls the function in a hard interrupt every `us` microseconds; tick(0, None)
// stops the calls.
static mp_obj_t tick(mp_obj_t us_in, mp_obj_t handler) {
  mp_int_t us = mp_obj_get_int(us_in);
  DUAL->CTRL = 0;
  DUAL->INTCLEAR = 1;
  MP_STATE_VM(weft_board_handler) = MP_OBJ_NULL;
  if (us <= 0) {
    return mp_const_none;
  }
  if (!mp_obj_is_callable(handler)) {
    mp_raise_TypeError(MP_ERROR_TEXT("tick: needs a function to call"));
  }
  if (VTOR != (uint32_t)vectors) {
    memcpy(vectors, (const void*)VTOR, 16 * sizeof(uint32_t));
    vectors[16 + IRQ] = (uint32_t)&on_timer;
    VTOR = (uint32_t)vectors;
  }
  MP_STATE_VM(weft_board_handler) = handler;
  DUAL->LOAD = us * 25;
  DUAL->CTRL = DUAL_ON;
  NVIC_ISER = 1u << IRQ;
  return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(tick_obj, tick);

static const mp_rom_map_elem_t board_globals_table[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_weft_board)},
    {MP_ROM_QSTR(MP_QSTR_disk), MP_ROM_PTR(&disk_obj)},
    {MP_ROM_QSTR(MP_QSTR_tick), MP_ROM_PTR(&tick_obj)},
};
static MP_DEFINE_CONST_DICT(board_globals, board_globals_table);
const mp_obj_module_t weft_board_module = {.base = {&mp_type_module},
                                           .globals = (mp_obj_dict_t*)&board_globals};
MP_REGISTER_MODULE(MP_QSTR_weft_board, weft_board_module);
