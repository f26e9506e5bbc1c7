// A process that is written once, and that the build places in a C++ program, under Python or on a
// microcontroller (rules 19.1 to 19.6; the page is cpp/docs/anywhere.md):
//
//   #include <weft/anywhere.hpp>
//
//   weft::Process scale(weft::Reader<double> values, weft::Writer<double> scaled, double factor) {
//     while (auto x = co_await values.next()) co_await scaled.write(factor * *x);
//   }
//   WEFT_PLACEABLE(scale, values, scaled, factor = 2.0)
//
//   a C++ program           ──► anywhere_hosted.hpp: a coroutine of the hosted library
//   WEFT_PLACE_COMPONENT    ──► anywhere_component.hpp: a component for Python. weft.native.load()
//                               and CMake's weft_add_component() define this macro
//   -ffreestanding          ──► weft_mcu/csp_anywhere.hpp, of mcu/csp: a process of a board
//
// Invariant: a name that the page lists means the same in all three headers.
#pragma once
#if defined(WEFT_PLACE_COMPONENT)
#include "anywhere_component.hpp"
#elif __STDC_HOSTED__ == 0
#if !defined(WEFT_PLACE_HEADER)  // the platform's header, as WEFT_PRIM_HEADER is in prim.hpp
#define WEFT_PLACE_HEADER "weft_mcu/csp_anywhere.hpp"
#endif
#if !__has_include(WEFT_PLACE_HEADER)
#error \
    "weft: to build a placeable source for a board, add mcu/csp/include, mcu/include and a folder of mcu/ports to the include path"
#endif
#include WEFT_PLACE_HEADER
#else
#include "anywhere_hosted.hpp"
#endif

// WEFT_PLACEABLE(process, names of its parameters…) declares a process function as placeable. Write
// it once for each function, in the function's namespace. It names each parameter, in the order of
// the function. A parameter that is a value can have a default: `n = 8`. A Python program sees
// these names and defaults.
#define WEFT_PLACEABLE(F, ...)                                                              \
  static_assert(::weft::placing::kNamed<&F __VA_OPT__(, ) WEFT_PLACING_NAMES(__VA_ARGS__)>, \
                "weft: WEFT_PLACEABLE names each parameter of the process once, in order"); \
  [[maybe_unused]] static void weft_placeable_##F(                                          \
      [[maybe_unused]] ::weft::placing::Declared& weft_declared){                           \
      WEFT_EACH(WEFT_PLACING_PARAMETER, , __VA_ARGS__)} WEFT_PLACING_DECLARE(F)
