/*
 * Core interference: a benchmark runs on core 0, on a stack that the bench chooses, while core 1
 * idles, runs the same benchmark, or spins in a loop of one branch. Pin 2 is high during each run
 * on core 0, pin 3 during each run on core 1. The bench writes `setup` before the start.
 */
#include "fw.h"

struct setup {
  uint32_t work;   /* 0 fib, 1 matrix product, 2 sumsq */
  uint32_t amount; /* n for fib, otherwise the number of repetitions */
  uint32_t runs;
  uint32_t core1;    /* the work of core 1: 0 none (it sleeps), 1 the same work, 2 an empty loop */
  uint32_t stack[2]; /* top of the stack on which the work runs, separate from the caller's */
  uint32_t gap;      /* loops of pause between runs, so that the phases differ */
};
volatile struct setup setup = {0, 10, 1, 0, {0x20041c00, 0x20040c00}, 0};
volatile uint32_t result[2];

uint32_t fib(uint32_t n);
void spin(void);
uint32_t on_stack(uint32_t (*work)(uint32_t), uint32_t argument, uint32_t stack);

__asm(".syntax unified\n.thumb\n.text\n.balign 4\n"
      ".global fib\n.type fib,%function\n.thumb_func\n"
      "fib: push {r4, r5, r6, lr}\n"
      "  movs r5, r0\n  cmp r0, #1\n  bls 1f\n"
      "  subs r0, #1\n  bl fib\n"
      "  movs r4, r0\n  subs r0, r5, #2\n  bl fib\n"
      "  adds r0, r4, r0\n"
      "1: pop {r4, r5, r6, pc}\n.size fib,.-fib\n"
      ".balign 4\n.global spin\n.type spin,%function\n.thumb_func\n"
      "spin: b spin\n.size spin,.-spin\n"
      ".balign 4\n.global on_stack\n.type on_stack,%function\n.thumb_func\n"
      "on_stack: push {r4, lr}\n  mov r4, sp\n  mov sp, r2\n  movs r3, r0\n  movs r0, r1\n  blx "
      "r3\n  mov sp, r4\n  pop {r4, pc}\n"
      ".size on_stack,.-on_stack\n");

/* Computes 0*0 + 1*1 + ... + 5*5, `count` times. Each sum takes 45 cycles, which gives the
 * thesis's 90.0 us for 250 sums at 125 MHz on one core. */
uint32_t sums(uint32_t count);
__asm(
    ".syntax unified\n.thumb\n.text\n.balign 4\n.global sums\n.type sums,%function\n.thumb_func\n"
    "sums: movs r1, r0\n  movs r0, #0\n"
    ".balign 4\n  nop\n1: movs r3, #0\n"
    "2: movs r2, r3\n  muls r2, r3, r2\n  adds r3, #1\n  adds r0, r0, r2\n  cmp r3, #6\n  bne 2b\n"
    "  subs r1, #1\n  bne 1b\n"
    "  bx lr\n.size sums,.-sums\n");

#define N 10
static uint32_t matrices(uint32_t count) {
  volatile uint32_t a[N][N], b[N][N], c[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      a[i][j] = i + j, b[i][j] = i * j, c[i][j] = 0;
  for (uint32_t r = 0; r < count; r++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        uint32_t sum = 0;
        for (int k = 0; k < N; k++)
          sum += a[i][k] * b[k][j];
        c[i][j] = sum;
      }
  return c[3][4];
}

static void work(unsigned core) {
  uint32_t (*const kinds[])(uint32_t) = {fib, matrices, sums};
  uint32_t (*const kind)(uint32_t) = kinds[setup.work];
  for (uint32_t i = 0; i < setup.runs || core == 1; i++) {
    pin_high(2 + core);
    result[core] = on_stack(kind, setup.amount, setup.stack[core]);
    pin_low(2 + core);
    for (volatile uint32_t j = 0; j < setup.gap * (core ? i % 7 : i % 5); j++) {
    }
  }
}

static void core1(void) {
  if (setup.core1 == 2)
    spin();
  work(1);
}

int main(void) {
  pin_out(2);
  pin_out(3);
  if (setup.core1)
    start_core1(core1, 0x20041000);
  work(0);
  return 0;
}
