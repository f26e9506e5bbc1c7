/* savina.h: the parts that the programs of this directory share: their sizes from the
 * environment, random numbers, and the figure at the end. */
#ifndef SAVINA_H
#define SAVINA_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns N, the amount of work. */
static inline int savina_size(int otherwise) {
  const char* given = getenv("N");
  return given ? atoi(given) : otherwise;
}
static inline uint32_t savina_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}
static inline void savina_check(bool right, const char* what) {
  if (!right) {
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
  }
}
/* Prints ns for each of `count` operations since `began`; the first comment of a program defines
 * its operation. */
static inline void savina_end(int64_t began, double count) {
  printf("ns %.2f\n", (double)(lf_time_physical() - began) / count);
}
#endif
