// A Value holds None, a bool, int, float, str or bytes, or a list or dict of these, as Python wrote
// it.
//
//   Reader<Value> in;   Value v = in.read();
//   if (const Value* limit = v.find("limit")) use(limit->as<double>());
//   out.write(Value::Dict{{"sum", sum}, {"names", Value::List{"a", "b"}}});
#pragma once
#include <string_view>

#include "component_values.hpp"

namespace weft::native {

class Value {
 public:
  using List = std::vector<Value>;
  // The items are in the order in which Python's dict has them.
  using Dict = std::vector<std::pair<Value, Value>>;
  using Any =
      std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes, List, Dict>;

  Value() = default;  // The default value is None.
  Value(std::nullptr_t) {}
  Value(std::monostate) {}
  template <class T>
    requires std::is_same_v<T, bool> Value(T v) : any_(v) {}
    template <class T>
      requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    Value(T v) : any_(static_cast<std::int64_t>(detail::Codec<T>::bits(v))) {}
    template <class T>
      requires std::is_floating_point_v<T> Value(T v) : any_(static_cast<double>(v)) {}
      Value(const char* v) : any_(std::string(v)) {}
      Value(std::string_view v) : any_(std::string(v)) {}
      Value(std::string v) : any_(std::move(v)) {}
      Value(Bytes v) : any_(std::move(v)) {}
      Value(List v) : any_(std::move(v)) {}
      Value(Dict v) : any_(std::move(v)) {}

      const Any& any() const noexcept { return any_; }
      Any& any() noexcept { return any_; }
      // Returns Python's name of the value's type.
      const char* type() const noexcept {
        constexpr const char* names[] = {"None", "bool",  "int",  "float",
                                         "str",  "bytes", "list", "dict"};
        return names[any_.index()];
      }
      bool is_none() const noexcept { return any_.index() == 0; }
      // Returns the value as a T: bool, an integer type, double or float (also from an int),
      // std::string, Bytes, List or Dict. Throws BadUse if it is of another type.
      template <class T>
      T as() const {
        if constexpr (std::is_floating_point_v<T>) {
          if (const auto* const d = std::get_if<double>(&any_)) return static_cast<T>(*d);
          if (const auto* const i = std::get_if<std::int64_t>(&any_)) return static_cast<T>(*i);
        } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (const auto* const i = std::get_if<std::int64_t>(&any_))
            return detail::Codec<T>::of(static_cast<std::uint64_t>(*i));
        } else if (const T* const v = std::get_if<T>(&any_)) {
          return *v;
        }
        throw BadUse(std::string("expected a Value that is ") + Value(T{}).type() +
                     ", and this one is " + type());
      }
      const List& list() const { return of<List>("list"); }
      const Dict& dict() const { return of<Dict>("dict"); }
      // Returns the value of a key in a dict; null if there is no such key. Throws BadUse if this
      // is not a dict.
      const Value* find(const Value& key) const {
        for (const auto& [k, v] : dict())
          if (k == key) return &v;
        return nullptr;
      }
      const Value& at(const Value& key) const {
        if (const Value* const v = find(key)) return *v;
        const auto* const text = std::get_if<std::string>(&key.any_);
        throw BadUse(text ? "a Value is a dict without the key \"" + *text + "\""
                          : "a Value is a dict without that key");
      }
      // Values of different types are not equal: 1 is not 1.0.
      friend bool operator==(const Value& a, const Value& b) { return a.any_ == b.any_; }

     private:
      template <class T>
      const T& of(const char* wanted) const {
        if (const T* const v = std::get_if<T>(&any_)) return *v;
        throw BadUse(std::string("expected a Value that is ") + wanted + ", and this one is " +
                     type());
      }
      Any any_;
};

namespace detail {

template <>
struct Codec<Value> {
  static constexpr bool kInline = false;
  // How deeply a Value may be nested: the same limit as in Python.
  static constexpr int kDeepest = 100;
  static std::string name() { return "v"; }
  static void put(Out& to, const Value& v) { put_at(to, v, 0); }
  static Value get(In& from) { return get_at(from, 0); }

 private:
  static void check_depth(int depth) {
    if (depth > kDeepest)
      throw BadUse("a Value holds lists and dicts up to 100 deep: this one is deeper");
  }
  static void put_at(Out& to, const Value& value, int depth) {
    check_depth(depth);
    to.push_back("nbidsy[{"[value.any().index()]);
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Value::List>) {
            put_count(to, v.size());
            for (const Value& x : v) put_at(to, x, depth + 1);
          } else if constexpr (std::is_same_v<T, Value::Dict>) {
            put_count(to, v.size());
            for (const auto& [k, x] : v) {
              put_at(to, k, depth + 1);
              put_at(to, x, depth + 1);
            }
          } else {
            Codec<T>::put(to, v);
          }
        },
        value.any());
  }
  static Value get_at(In& from, int depth) {
    check_depth(depth);
    switch (*from.take(1)) {
      case 'n': return {};
      case 'b': return Codec<bool>::get(from);
      case 'i': return Codec<std::int64_t>::get(from);
      case 'd': return Codec<double>::get(from);
      case 's': return Codec<std::string>::get(from);
      case 'y': return Codec<Bytes>::get(from);
      case '[': {
        Value::List all;
        for (std::size_t n = from.count(); n > 0; --n) all.push_back(get_at(from, depth + 1));
        return all;
      }
      case '{': {
        Value::Dict all;
        for (std::size_t n = from.count(); n > 0; --n) {
          Value k = get_at(from, depth + 1);
          all.emplace_back(std::move(k), get_at(from, depth + 1));
        }
        return all;
      }
      default: throw BadUse("a malformed value was received: its type is unknown");
    }
  }
};

}  // namespace detail

}  // namespace weft::native
