// std::unique_ptr and std::shared_ptr. With libstdc++ without the rest of <memory>, which takes as
// long again to parse.
#pragma once
#include <version>
#if defined(__GLIBCXX__) && __has_include(<bits/unique_ptr.h>) && __has_include(<bits/shared_ptr.h>)
#include <bits/unique_ptr.h>

#include <bits/shared_ptr.h>
#else
#include <memory>
#endif
