// The definitions of tokens.hpp.
#include <weft/config.hpp>

#if WEFT_CHECKED
#include <cctype>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <weft/tokens.hpp>

#include <weft/errors.hpp>

namespace weft::inline WEFT_ABI::detail {
namespace {

using checking::Kind;

constexpr std::string_view kRoot = "main/";

bool digits(std::string_view s) noexcept {
  for (const char c : s)
    if (!std::isdigit(static_cast<unsigned char>(c))) return false;
  return !s.empty();
}
// Returns whether the path begins with `main`, with or without an index.
bool begins_at_main(std::string_view s) noexcept {
  std::string_view first = s.substr(0, s.find('/'));
  if (!first.starts_with("main")) return false;
  first.remove_prefix(4);
  return first.empty() || (first.front() == '[' && first.back() == ']');
}

template <class F>
std::string each_part(std::string_view path, F&& f) {
  std::string all;
  for (;;) {
    const std::size_t slash = path.find('/');
    all += f(path.substr(0, slash));
    if (slash == path.npos) return all;
    all += '/';
    path.remove_prefix(slash + 1);
  }
}

// Returns a path in the form that a token has: without `main/`, with a.3 for a[3], and other
// letters encoded.
std::string name_of(std::string_view path) {
  std::string_view name = path;
  if (name.starts_with(kRoot)) name.remove_prefix(kRoot.size());
  if (name.size() == path.size() || begins_at_main(name)) name = path;
  return each_part(name, [](std::string_view part) {
    std::string index;
    if (const std::size_t open = part.rfind('[');
        open != part.npos && part.back() == ']' &&
        digits(part.substr(open + 1, part.size() - open - 2))) {
      index = "." + std::string(part.substr(open + 1, part.size() - open - 2));
      part = part.substr(0, open);
    }
    std::string s;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
          (c == '.' && !digits(part.substr(i + 1)))) {
        s += c;
      } else {
        char code[4];
        std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(c));
        s += code;
      }
    }
    return s + index;
  });
}

std::string path_of(std::string_view name) {
  const std::string path = each_part(name, [](std::string_view part) {
    std::string index;
    if (const std::size_t dot = part.rfind('.'); dot != part.npos && digits(part.substr(dot + 1))) {
      index = "[" + std::string(part.substr(dot + 1)) + "]";
      part = part.substr(0, dot);
    }
    std::string s;
    for (std::size_t i = 0; i < part.size(); ++i) {
      unsigned code = 0;
      if (part[i] == '%' && i + 2 < part.size() &&
          std::from_chars(part.data() + i + 1, part.data() + i + 3, code, 16).ptr ==
              part.data() + i + 3) {
        s += static_cast<char>(code);
        i += 2;
      } else {
        s += part[i];
      }
    }
    return s + index;
  });
  if (path.starts_with('/')) return path.substr(1);
  return begins_at_main(path) ? path : std::string(kRoot) + path;
}

[[noreturn]] void no_token(const std::string& token, const std::string& why) {
  throw BadUse("'" + token + "' " + why);
}

template <class N>
bool number_in(std::string_view s, N& n) {
  return digits(s) && std::from_chars(s.data(), s.data() + s.size(), n).ec == std::errc();
}

template <class F>
void each_between(std::string_view s, char mark, F&& f) {
  for (;;) {
    const std::size_t at = s.find(mark);
    f(s.substr(0, at));
    if (at == s.npos) return;
    s.remove_prefix(at + 1);
  }
}

}  // namespace

std::string token_of(const std::vector<Replay::Deviation>& deviations) {
  std::string s = "w1";
  for (const Replay::Deviation& d : deviations) {
    s += s.size() == 2 ? ":" : ",";
    s += name_of(d.process) + "@" + std::to_string(d.step);
    if (d.nth > 0) s += "." + std::to_string(d.nth + 1);
    if (d.kind == Kind::go || d.kind == Kind::time)
      s += "=" + (d.kind == Kind::go ? name_of(d.who) : "");
    else
      s += (d.kind == Kind::guard ? "+" : ":") + std::to_string(d.number);
  }
  return s;
}

std::vector<Replay::Deviation> deviations_of(const std::string& token,
                                             std::vector<Replay::ByNumber>& numbers) {
  const std::string_view all = token;
  std::vector<Replay::Deviation> found;
  if (all.size() < 2 || all[0] != 'w' || !std::isdigit(static_cast<unsigned char>(all[1])))
    no_token(token,
             "is no token: take the word that a report has after .replay, such as "
             "w1:clerk@3=van");
  const std::string_view version = all.substr(0, all.find_first_of(":-"));
  if (version != "w1")
    no_token(token, "is a token of another version of Weft (" + std::string(version) +
                        "; this one has w1): check the program again, which finds the order anew");
  if (all == "w1" || all == "w1-0") return found;
  const auto half = [&](std::string_view part) {
    no_token(token, "is not a whole token: '" + std::string(part) +
                        "' cannot be read; copy all of it from the report");
  };
  if (all[2] == '-') {
    each_between(all.substr(3), '-', [&](std::string_view part) {
      Replay::ByNumber n{};
      const std::size_t dot = part.find('.');
      if (dot == part.npos || !number_in(part.substr(0, dot), n.decision) ||
          !number_in(part.substr(dot + 1), n.choice))
        half(part);
      if (!numbers.empty() && numbers.back().decision >= n.decision)
        no_token(
            token,
            ": the numbers of its decisions must increase; copy the whole token from the report");
      numbers.push_back(n);
    });
    return found;
  }
  each_between(all.substr(3), ',', [&](std::string_view part) {
    Replay::Deviation d{"", 0, Kind::go, "", 0, 0};
    const std::size_t at = part.find('@');
    const std::size_t mark = at == part.npos ? at : part.find_first_of("=+:", at);
    if (at == 0 || mark == part.npos) half(part);
    const std::string_view step = part.substr(at + 1, mark - at - 1);
    const std::size_t dot = step.find('.');
    if (!number_in(step.substr(0, dot), d.step)) half(part);
    if (dot != step.npos) {
      if (!number_in(step.substr(dot + 1), d.nth) || d.nth-- == 0 || part[mark] == '=') half(part);
    }
    const std::string_view rest = part.substr(mark + 1);
    d.process = path_of(part.substr(0, at));
    if (part[mark] == '=') {
      d.kind = rest.empty() ? Kind::time : Kind::go;
      if (!rest.empty()) d.who = path_of(rest);
    } else {
      d.kind = part[mark] == '+' ? Kind::guard : Kind::fault;
      if (!number_in(rest, d.number)) half(part);
    }
    found.push_back(std::move(d));
  });
  return found;
}

std::string said(const Replay::Deviation& d) {
  const std::string step = "step " + std::to_string(d.step) + " of " + d.process;
  switch (d.kind) {
    case Kind::go: return "after " + step + ", " + d.who + " goes first";
    case Kind::time: return "after " + step + ", a time comes, although a process could go on";
    default:
      return "at " + step + " its " +
             (d.nth > 0 ? "select number " + std::to_string(d.nth + 1) : "select") +
             " takes guard " + std::to_string(d.number) + " of those that are ready";
  }
}

}  // namespace weft::inline WEFT_ABI::detail
#endif
