// Starts the firmware as QEMU's port does, and runs _boot.py and main.py before the prompt.
#include <stdlib.h>

#include "py/compile.h"
#include "py/gc.h"
#include "py/mperrno.h"
#include "py/runtime.h"
#include "py/stackctrl.h"
#include "shared/runtime/gchelper.h"
#include "shared/runtime/pyexec.h"

static uint32_t gc_heap[MICROPY_HEAP_SIZE / sizeof(uint32_t)];

// A measurement may request a heap of another size: the emulator stores the number of bytes at
// HEAP_ASKED before the start (tests/board.py), and the heap begins at HEAP_THERE. Both are in the
// board's outer RAM, behind its disk.
#define HEAP_ASKED (*(volatile uint32_t*)0x21fffffc)
#define HEAP_THERE ((char*)0x21800000)

void weft_board_init(void);

int main(int argc, char** argv) {
  weft_board_init();
  mp_stack_ctrl_init();
  mp_stack_set_limit(10240);
  if (HEAP_ASKED) {
    gc_init(HEAP_THERE, HEAP_THERE + HEAP_ASKED);
  } else {
    gc_init(gc_heap, (char*)gc_heap + MICROPY_HEAP_SIZE);
  }
  for (;;) {
    mp_init();
    pyexec_frozen_module("_boot.py", false);
    if (pyexec_mode_kind == PYEXEC_MODE_FRIENDLY_REPL) {
      pyexec_file_if_exists("main.py");
    }
    for (;;) {
      int again =
          pyexec_mode_kind == PYEXEC_MODE_RAW_REPL ? pyexec_raw_repl() : pyexec_friendly_repl();
      if (again != 0) {
        break;
      }
    }
    mp_printf(&mp_plat_print, "MPY: soft reboot\n");
    weft_board_init();
    gc_sweep_all();
    mp_deinit();
  }
}

void gc_collect(void) {
  gc_collect_start();
  gc_helper_collect_regs_and_stack();
  gc_collect_end();
}

void nlr_jump_fail(void* val) {
  mp_printf(&mp_plat_print, "uncaught NLR\n");
  exit(1);
}
