/* check.h: the minimum for a C test. It contains checks that are counted, and a closing line that
 * tests/run evaluates. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H
#include <stdio.h>
#include <stdlib.h>
static int check_passed, check_failed, check_bad;
static const char *check_name = "?";
#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      if (check_bad++ < 3)                                                               \
        printf("%s:%d: %s: not true: %s\n", __FILE__, __LINE__, check_name, #condition); \
    }                                                                                    \
  } while (0)
#define TEST(fn)                                   \
  do {                                             \
    check_name = #fn, check_bad = 0;               \
    fn();                                          \
    check_bad ? check_failed++ : check_passed++;   \
    if (check_bad) printf("FAIL %s\n", #fn);       \
  } while (0)
static inline int check_end(void) {
  printf("%d passed, %d failed\n", check_passed, check_failed);
  return check_failed != 0;
}
#endif
