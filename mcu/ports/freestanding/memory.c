/* memory.c: the four functions that the compiler may call in a program without a C library. The
 * linker takes only the functions that are called. */
#include <stddef.h>
#include <stdint.h>
void *memset(void *to, int value, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
int memcmp(const void *a, const void *b, size_t n);

void *memset(void *to, int value, size_t n) {
  uint8_t *p = to;
  if (!((uintptr_t)p & 3) && n >= 4) { /* The compiler calls memset to clear structures. */
    uint32_t four = (uint8_t)value * 0x01010101u, *words = to;
    for (; n >= 4; n -= 4) *words++ = four;
    p = (uint8_t *)words;
  }
  while (n--) *p++ = (uint8_t)value;
  return to;
}
/* Most values of channels are whole words. The copy goes from the end to the beginning, so that n
 * is the only counter. */
void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  uint8_t *p = to;
  const uint8_t *f = from;
  uintptr_t odd = (uintptr_t)p | (uintptr_t)f;
  while (n)
    if ((odd | n) & 3) n--, p[n] = f[n];
    else n -= 4, *(uint32_t *)(void *)(p + n) = *(const uint32_t *)(const void *)(f + n);
  return to;
}
void *memmove(void *to, const void *from, size_t n) {
  uint8_t *p = to;
  const uint8_t *f = from;
  if (p <= f)
    while (n--) *p++ = *f++;
  else
    while (n--) p[n] = f[n];
  return to;
}
int memcmp(const void *a, const void *b, size_t n) {
  for (const uint8_t *p = a, *q = b; n--; p++, q++)
    if (*p != *q) return *p - *q;
  return 0;
}
