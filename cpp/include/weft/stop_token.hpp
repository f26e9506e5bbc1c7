// The names of std::stop_token and of its callback. With libstdc++ without <stop_token>, for who uses
// them has included it.
#pragma once
#include <version>
#if defined(__GLIBCXX__) && !_GLIBCXX_INLINE_VERSION
namespace std {
class stop_token;
template <class F>
class stop_callback;
}  // namespace std
#else
#include <stop_token>
#endif
