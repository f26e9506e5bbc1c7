/* interference: chapter 6 with two actors, one on each core. Core 0 computes fib(n) or products of
 * 10 by 10 matrices, while core 1 is idle, computes the same, or spins in a loop of one
 * instruction. Pins 2 and 3 are high during each run.
 *
 * The actions run on their cores' stacks in scratch memory, or on a stack that the bench places
 * where an RTOS puts the stacks of its threads. Runs begin at random microseconds, so that the
 * cores meet in different phases.
 */
#include "board.h"
#include "weft_mcu/actors.h"

enum { FIB, MATRICES, IDLE = 0, SAME, LOOP, N = 10 };
volatile struct setup {
  uint32_t work, amount, runs, core1;
  uint32_t stack[2]; /* the top of the stack, or 0 for the core's own */
  uint32_t seed;
} setup = {FIB, 10, 10, IDLE, {0, 0}, 1};
volatile uint32_t result[2];
static weft_queue queues[2];
static weft_actor actors[2];

uint32_t fib(uint32_t n);
void spin(void);
uint32_t on_stack(uint32_t (*work)(uint32_t), uint32_t argument, uint32_t stack);
/* The code is in assembler, like the thesis's benchmarks, so that no compiler changes it. */
__asm(
    ".syntax unified\n.thumb\n.text\n.balign 4\n.global fib, spin, on_stack\n"
    ".type fib, %function\n.thumb_func\nfib:\n"
    "  push {r4, r5, r6, lr}\n  movs r5, r0\n  cmp r0, #1\n  bls 1f\n"
    "  subs r0, #1\n  bl fib\n  movs r4, r0\n  subs r0, r5, #2\n  bl fib\n  adds r0, r4, r0\n"
    "1: pop {r4, r5, r6, pc}\n.size fib, .-fib\n"
    ".balign 4\n.type spin, %function\n.thumb_func\nspin: b spin\n.size spin, .-spin\n"
    ".balign 4\n.type on_stack, %function\n.thumb_func\non_stack:\n"
    "  push {r4, lr}\n  mov r4, sp\n  mov sp, r2\n  movs r3, r0\n  movs r0, r1\n  blx r3\n  mov sp, r4\n  pop {r4, pc}\n"
    ".size on_stack, .-on_stack\n");

static uint32_t __attribute__((noinline)) matrices(uint32_t count) {
  volatile uint32_t a[N][N], b[N][N], c[N][N];
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t j = 0; j < N; j++) a[i][j] = i + j, b[i][j] = i * j, c[i][j] = 0;
  while (count--)
    for (uint32_t i = 0; i < N; i++)
      for (uint32_t j = 0; j < N; j++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < N; k++) sum += a[i][k] * b[k][j];
        c[i][j] = sum;
      }
  return c[3][4];
}

static uint32_t measured(weft_event *e, uint32_t release) {
  static uint32_t done, random[2];
  unsigned core = weft_core();
  (void)e;
  uint32_t (*work)(uint32_t) = setup.work == FIB ? fib : matrices;
  pin_high(2 + core);
  result[core] =
      setup.stack[core] ? on_stack(work, setup.amount, setup.stack[core]) : work(setup.amount);
  pin_low(2 + core);
  if (!core && ++done == setup.runs) __asm volatile("bkpt 0");
  random[core] = (random[core] + setup.seed + core) * 1664525u + 1013904223u;
  return weft_now32() - release + 3 + (random[core] >> 28);
}
static weft_event events[2] = {WEFT_EVENT(measured, &actors[0]), WEFT_EVENT(measured, &actors[1])};

static void core1(void) {
  if (setup.core1 == LOOP) spin();
  weft_work(&queues[1]);
}

int main(void) {
  pin_out(2);
  pin_out(3);
  for (unsigned i = 0; i < 2; i++) weft_list_init(&queues[i], WEFT_SPINLOCK(i));
  uint32_t first = weft_now32() + 100;
  weft_post(&queues[0], &events[0], first);
  if (setup.core1 == SAME) weft_post(&queues[1], &events[1], first + 7);
  weft_start_core(core1, WEFT_STACK1, WEFT_STACK1_BYTES);
  weft_work(&queues[0]);
  return 0;
}
