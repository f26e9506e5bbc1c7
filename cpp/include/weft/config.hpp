// How the library is compiled. cpp/docs/building.md tells a user what to choose.
//
//   header-only (the default)   each function is `inline`; the impl/*.ipp are included by their
//                               headers
//   compiled (-DWEFT_COMPILED)  impl/*.ipp are compiled in cpp/src/weft.cpp alone: CMake's
//                               weft::compiled, which sets the macro for whoever links it
//
// An .ipp has only what does not depend on a type of the user's and is not on a hot path.
//
// A virtual function that an .ipp defines is declared with WEFT_IMPL in its class too. Header-only
// the class then has no key function: its table, with all that it refers to, is compiled in files
// that make such an object, and not in every file that includes the header.
//
//   -DWEFT_CHECKS=1     debug checks (rule 11.2); off by default, whether NDEBUG is defined or not
//   -DWEFT_NO_FUTEX     the standard library's condition variables where Linux has its futex
//   -DWEFT_NO_BIAS      no biased locks
//
// All of these change the layout of the library's types, and so do the sanitizers. So everything is
// in an inline namespace, WEFT_ABI, whose name lists them: files that were compiled differently
// have different types, and do not link with each other. The name that the linker misses says how
// they differ (weft::v0_1_compiled_checks::…).
#pragma once

#if defined(WEFT_COMPILED)
#define WEFT_IMPL
#define WEFT_ABI_FORM _compiled
#else
#define WEFT_IMPL inline
#define WEFT_ABI_FORM _headers
#endif

// What only some programs use: at its declaration, and where an .ipp defines it. Header-only it is
// a template, of which a file that does not call it compiles nothing. (Of an inline function g++
// instantiates all that its body names, called or not; and it compiles every override of a virtual
// function that is called, since that might be the one that is meant.)
#if defined(WEFT_COMPILED)
#define WEFT_IF_USED
#define WEFT_IF_USED_IMPL
#else
#define WEFT_IF_USED template <class = void>
#define WEFT_IF_USED_IMPL template <class>
#endif

#ifndef WEFT_CHECKS
#define WEFT_CHECKS 0
#endif
#if WEFT_CHECKS
#define WEFT_ABI_CHECKS _checks
#else
#define WEFT_ABI_CHECKS
#endif

// Inlined on hosted systems, where that costs only space; on a microcontroller every byte counts.
#if __STDC_HOSTED__
#define WEFT_INLINE_HOSTED [[gnu::always_inline]]
#else
#define WEFT_INLINE_HOSTED
#endif
// Not inlined on hosted systems, where that costs time of the compiler; a call costs little there.
#if __STDC_HOSTED__
#define WEFT_OUTLINE_HOSTED [[gnu::noinline]]
#else
#define WEFT_OUTLINE_HOSTED
#endif
// One function for both sides of a channel on hosted systems; on a microcontroller, where the side
// is a type (core/line.hpp), a part of its caller.
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

#define WEFT_ABI_JOINED(major, minor, form, checks, futex, bias, sanitizer) \
  v##major##_##minor##form##checks##futex##bias##sanitizer
#define WEFT_ABI_JOIN(...) WEFT_ABI_JOINED(__VA_ARGS__)
#define WEFT_ABI                                                                        \
  WEFT_ABI_JOIN(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_ABI_FORM, WEFT_ABI_CHECKS, \
                WEFT_ABI_FUTEX, WEFT_ABI_BIAS, WEFT_ABI_SANITIZER)

#include "version.hpp"
