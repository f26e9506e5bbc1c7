// Expands a macro once for each argument:
//
//   WEFT_EACH(MACRO, WITH, a, b, c)    expands to    MACRO(WITH, a) MACRO(WITH, b) MACRO(WITH, c)
//
// WITH is the same each time, and may be empty. At most 86 arguments are allowed; without arguments
// the expansion is empty. The expansion of one WEFT_EACH cannot contain another.
#pragma once

#define WEFT_EACH(MACRO, WITH, ...) \
  __VA_OPT__(WEFT_EACH_EXPAND(WEFT_EACH_STEP(MACRO, WITH, __VA_ARGS__)))
#define WEFT_EACH_STEP(MACRO, WITH, FIRST, ...) \
  MACRO(WITH, FIRST)                            \
  __VA_OPT__(WEFT_EACH_AGAIN WEFT_EACH_PARENTHESES(MACRO, WITH, __VA_ARGS__))
#define WEFT_EACH_AGAIN() WEFT_EACH_STEP
#define WEFT_EACH_PARENTHESES ()
#define WEFT_EACH_EXPAND(...) \
  WEFT_EACH_EXPAND_2(WEFT_EACH_EXPAND_2(WEFT_EACH_EXPAND_2(WEFT_EACH_EXPAND_2(__VA_ARGS__))))
#define WEFT_EACH_EXPAND_2(...) \
  WEFT_EACH_EXPAND_1(WEFT_EACH_EXPAND_1(WEFT_EACH_EXPAND_1(WEFT_EACH_EXPAND_1(__VA_ARGS__))))
#define WEFT_EACH_EXPAND_1(...) \
  WEFT_EACH_EXPAND_0(WEFT_EACH_EXPAND_0(WEFT_EACH_EXPAND_0(WEFT_EACH_EXPAND_0(__VA_ARGS__))))
#define WEFT_EACH_EXPAND_0(...) __VA_ARGS__
