// The version of Weft, written here and nowhere else.
//
// Invariant: CMakeLists.txt and pyproject.toml read the three numbers below from the `#define`
// lines; keep the form of these lines.
#pragma once

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#define WEFT_DETAIL_STRING_OF(x) #x
#define WEFT_DETAIL_STRING(x) WEFT_DETAIL_STRING_OF(x)

/// The version as text, "MAJOR.MINOR.PATCH".
#define WEFT_VERSION                     \
  WEFT_DETAIL_STRING(WEFT_VERSION_MAJOR) \
  "." WEFT_DETAIL_STRING(WEFT_VERSION_MINOR) "." WEFT_DETAIL_STRING(WEFT_VERSION_PATCH)

/// The version as one number that can be compared in an #if: MAJOR * 10000 + MINOR * 100 + PATCH.
#define WEFT_VERSION_NUMBER \
  (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)

#include "config.hpp"

namespace weft::inline WEFT_ABI {

/// The version of the headers that a file was compiled with.
struct version_t {
  int major;
  int minor;
  int patch;
  const char* text;
};

inline constexpr version_t version{WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH,
                                   WEFT_VERSION};

}  // namespace weft::inline WEFT_ABI
