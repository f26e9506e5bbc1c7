/* sumsq.h: the thesis's unit of work, 0^2 + 1^2 + … + 5^2: 45 cycles in SRAM with the loop around
 * it, so 250 of them take 90.0 us at
 * 125 MHz, the time that the thesis measured on one undisturbed core. */
#ifndef WEFT_BENCH_SUMSQ_H
#define WEFT_BENCH_SUMSQ_H
static int __attribute__((noipa)) sumsq(int sum, int n) {
  do sum += n * n;
  while (--n);
  return sum;
}
static inline void work_loops(unsigned loops) {
  int sum = 0;
  do sum = sumsq(sum, 5);
  while (--loops);
  __asm volatile("" ::"r"(sum));
}
#endif
