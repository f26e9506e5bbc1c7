// Goes through the arguments of a macro:
//
//   WEFT_EACH(MACRO, WITH, a, b, c)    expands to    MACRO(WITH, a) MACRO(WITH, b) MACRO(WITH, c)
//
// WITH is the same each time, and may be empty. Up to 86 arguments; without any it is nothing. One
// WEFT_EACH cannot stand in the expansion of another.
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
