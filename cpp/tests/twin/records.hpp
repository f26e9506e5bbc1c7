// Records of a history, and the names of exceptions in them.
#pragma once
#include <unistd.h>
#include <cstdlib>
#include <string>
#include <utility>

#include <weft/weft.hpp>

namespace twin {

struct Fail {};
struct Late {};  // the exception that leaves a block whose limit has ended it (rule 7.12)

// Receives the records of a run, unless it is null (checked.cpp).
inline void (*listener)(std::string) = nullptr;

// Writes a record by one write, so that several programs may write into one pipe.
inline void say(std::string record) {
  if (listener) return listener(std::move(record));
  record += '\n';
  if (::write(STDOUT_FILENO, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
    std::abort();
}

inline std::string name_of(const std::exception_ptr& x) {
  try {
    std::rethrow_exception(x);
  } catch (const weft::Retired&) {
    return "Retired";
  } catch (const weft::Poisoned&) {
    return "Poisoned";
  } catch (const weft::PeerDied&) {
    return "PeerDied";
  } catch (const weft::Cancelled&) {
    return "Cancelled";
  } catch (const weft::BadUse&) {
    return "BadUse";
  } catch (const weft::Failures&) {
    return "Group";
  } catch (const Fail&) {
    return "Fail";
  } catch (const weft::TimedOut&) {
    return "Cancelled";
  } catch (const Late&) {
    return "Timeout";
  } catch (const std::exception& e) {
    return std::string("unexpected: ") + e.what();
  }
}
inline bool quiet(const std::exception_ptr& x) {
  try {
    std::rethrow_exception(x);
  } catch (const weft::PeerDied&) {
    return false;
  } catch (const weft::ChannelEnd& e) {
    return e.met;
  } catch (const weft::Cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Makes an exception from the text of name_of(), with the mark of an end that an operation has met.
inline std::exception_ptr told(const std::string& said) {
  const std::string what = "in another program: " + said;
  const std::string name = said.substr(0, said.find(' '));
  const bool met = said.ends_with(" met");
  if (name == "Retired") return std::make_exception_ptr(weft::Retired(what, -1, met));
  if (name == "Poisoned") return std::make_exception_ptr(weft::Poisoned(what, -1, 1, met));
  if (name == "PeerDied") return std::make_exception_ptr(weft::PeerDied(what, -1, met));
  if (name == "Cancelled") return std::make_exception_ptr(weft::Cancelled());
  if (name == "BadUse") return std::make_exception_ptr(weft::BadUse(what));
  if (name == "Fail") return std::make_exception_ptr(Fail());
  if (name == "Timeout") return std::make_exception_ptr(Late());
  return std::make_exception_ptr(std::runtime_error(what));
}
inline std::string told_of(const std::exception_ptr& x) {
  return name_of(x) + (quiet(x) ? " met" : "");
}

inline std::string knot(const weft::Deadlock& d) {
  std::string r;
  for (const std::string& path : d.knot) {
    const std::size_t p = path.rfind("/p");
    r += (r.empty() ? "" : ", ") + path.substr(p + 2);
  }
  return r;
}

}  // namespace twin
