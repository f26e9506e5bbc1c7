// Aggregates: a C++ struct becomes a dataclass or a NamedTuple of Python, if its fields are named
// in the namespace of the struct:
//
//   struct Sample { double time; std::int64_t value; };
//   WEFT_FIELDS(Sample, time, value)
//
// From then on the struct can be used like any other type: Reader<Sample>, std::vector<Sample>, a
// field of another struct. Python receives objects of a dataclass of that name, which the loaded
// component defines. Python may write such an object, or any dataclass or NamedTuple with the same
// fields.
//
// Invariant: a struct is described in one place, by weft_fields(), which is found through the
// struct's namespace.
#pragma once
#include "component_values.hpp"
#include "each.hpp"

namespace weft::native {

template <class S, class T>
struct Field {
  const char* name;
  T S::*at;
};
template <class S, class T>
Field(const char*, T S::*) -> Field<S, T>;

namespace detail {

template <class T>
concept Told = requires {
  weft_fields(static_cast<const T*>(nullptr));
};
template <Told T>
auto fields_of() {
  return weft_fields(static_cast<const T*>(nullptr)).second;
}
template <class S, class... T>
constexpr bool any_parts(const std::tuple<Field<S, T>...>*) {
  return (kParts<T> || ...);
}
template <class S, class... T>
constexpr bool all_cross(const std::tuple<Field<S, T>...>*) {
  return (Crosses<T> && ...);
}
template <Told T>
inline constexpr bool kParts<T> = any_parts(static_cast<decltype(fields_of<T>())*>(nullptr));

template <Told T>
struct Codec<T> {
  static_assert(all_cross(static_cast<decltype(fields_of<T>())*>(nullptr)),
                "WEFT_FIELDS: a field is of a type that does not cross to Python");
  static constexpr bool kInline = false;
  template <class S, class F>
  static std::string one(const Field<S, F>& f) {
    return std::string(" ") + f.name + " " + Codec<F>::name();
  }
  static std::string name() {
    const auto fields = weft_fields(static_cast<const T*>(nullptr));
    return std::string("<") + fields.first +
           std::apply([](const auto&... f) { return (std::string() + ... + one(f)); },
                      fields.second) +
           ">";
  }
  template <class S, class F>
  static void put_one(Out& to, const T& v, const Field<S, F>& f) {
    Codec<F>::put(to, v.*f.at);
  }
  template <class S, class F>
  static void get_one(In& from, T& v, const Field<S, F>& f) {
    v.*f.at = Codec<F>::get(from);
  }
  static void put(Out& to, const T& v) {
    std::apply([&](const auto&... f) { (put_one(to, v, f), ...); }, fields_of<T>());
  }
  static T get(In& from) {
    T v{};
    std::apply([&](const auto&... f) { (get_one(from, v, f), ...); }, fields_of<T>());
    return v;
  }
};

}  // namespace detail

}  // namespace weft::native

#define WEFT_DETAIL_FIELD(T, F) \
  ::weft::native::Field { #F, &T::F }
#define WEFT_DETAIL_NEXT_FIELD(T, F) , WEFT_DETAIL_FIELD(T, F)

#define WEFT_FIELDS(T, FIRST, ...)                                                           \
  [[maybe_unused]] inline auto weft_fields(const T*) {                                       \
    return std::pair(#T, std::tuple(WEFT_DETAIL_FIELD(T, FIRST)                              \
                                        WEFT_EACH(WEFT_DETAIL_NEXT_FIELD, T, __VA_ARGS__))); \
  }
