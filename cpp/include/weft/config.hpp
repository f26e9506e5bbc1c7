// How the library is compiled. cpp/docs/building.md explains what to choose.
//
// The headers contain the interface, the templates and the hot paths. All other code is in
// cpp/src/, which is compiled once, as CMake's weft::weft. cpp/src/weft.cpp includes all of it, for
// builds by hand.
//
//   -DWEFT_CHECKS=1     debug checks (rule 11.2); off by default, whether NDEBUG is defined or not
//   -DWEFT_CHECKED=1    operations ask a check which process runs (weft/check.hpp); only for tests
//   -DWEFT_NO_FUTEX     on Linux, the standard library's condition variables instead of the futex
//   -DWEFT_NO_BIAS      no biased locks
//
// These options, and the sanitizers, change the layout of the library's types; g++ and clang++
// order the captures of a lambda differently, and Weft passes lambdas between its functions. So
// everything is in an inline namespace, WEFT_ABI, whose name lists the options in use and clang++.
// Files that were compiled with different options have different types, and do not link with each
// other. The undefined name in the linker's message shows the options (weft::v0_1_checks::…).
#pragma once

#ifndef WEFT_CHECKS
#define WEFT_CHECKS 0
#endif
#if WEFT_CHECKS
#define WEFT_ABI_CHECKS _checks
#else
#define WEFT_ABI_CHECKS
#endif

#ifndef WEFT_CHECKED
#define WEFT_CHECKED 0
#endif
#if WEFT_CHECKED
#define WEFT_ABI_CHECKED _checked
#else
#define WEFT_ABI_CHECKED
#endif

// On hosted systems a function with this mark is always inlined, which costs only space. On a
// microcontroller, where every byte counts, the compiler decides.
#if __STDC_HOSTED__
#define WEFT_INLINE_HOSTED [[gnu::always_inline]]
#else
#define WEFT_INLINE_HOSTED
#endif
// On hosted systems a function with this mark is never inlined: inlining it would cost compile
// time, and a call costs little there.
#if __STDC_HOSTED__
#define WEFT_OUTLINE_HOSTED [[gnu::noinline]]
#else
#define WEFT_OUTLINE_HOSTED
#endif
// On hosted systems a function with this mark is one function for both sides of a channel. On a
// microcontroller the side is a type (core/waiting_queues.hpp), and the function is inlined into
// its caller.
#if __STDC_HOSTED__
#define WEFT_ONE_HOSTED [[gnu::noinline]]
#else
#define WEFT_ONE_HOSTED [[gnu::always_inline]]
#endif

#if defined(__linux__) && !defined(WEFT_NO_FUTEX)
#define WEFT_FUTEX 1
#define WEFT_ABI_FUTEX
#else
#define WEFT_FUTEX 0
#define WEFT_ABI_FUTEX _no_futex
#endif
#if defined(WEFT_NO_BIAS)
#define WEFT_ABI_BIAS _no_bias
#else
#define WEFT_ABI_BIAS
#endif

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#ifdef WEFT_ASAN
#define WEFT_ABI_SANITIZER _asan
#elif defined(WEFT_TSAN)
#define WEFT_ABI_SANITIZER _tsan
#else
#define WEFT_ABI_SANITIZER
#endif
#ifndef WEFT_ASAN
#define WEFT_ASAN 0
#endif
#ifndef WEFT_TSAN
#define WEFT_TSAN 0
#endif

#ifdef __clang__
#define WEFT_ABI_COMPILER _clang
#else
#define WEFT_ABI_COMPILER
#endif

// The reason for refusing a coroutine whose frame g++ 12 has laid out wrongly: g++ puts a variable
// of its own before the frame's two pointers if a condition of the function awaits, and nothing is
// declared at the function's outermost level (cpp/docs/lifetimes.md).
#define WEFT_WRONG_FRAME                                                                       \
  " can never run, because g++ 12 has laid out its frame wrongly: a condition awaits, and "    \
  "nothing is declared at the outermost level of the function. Declare a variable there, for " \
  "example the condition's value: const auto value = co_await …;"

#define WEFT_ABI_JOINED(major, minor, compiler, checks, checked, futex, bias, sanitizer) \
  v##major##_##minor##compiler##checks##checked##futex##bias##sanitizer
#define WEFT_ABI_JOIN(...) WEFT_ABI_JOINED(__VA_ARGS__)
#define WEFT_ABI                                                                            \
  WEFT_ABI_JOIN(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_ABI_COMPILER, WEFT_ABI_CHECKS, \
                WEFT_ABI_CHECKED, WEFT_ABI_FUTEX, WEFT_ABI_BIAS, WEFT_ABI_SANITIZER)

#include "version.hpp"
