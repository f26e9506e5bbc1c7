// The look-up of a network name, for connect() (rule 18.11).
//
//   LookUp(): a thread calls getaddrinfo() ──► the thread keeps the result, and closes its end of
//   the pipe ──► the other end, watched(), is ready: is_over() ──► result()
//
// The thread and the LookUp share the result, and each has its own end of the pipe. So a process
// may stop waiting at any moment: the thread then ends later, and drops the result.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/io.hpp"

namespace weft::py {

// Returns the name and the port of an address "NAME:PORT". Both are empty if the text has another
// form, or if its host could be an address in numbers; io::Address then reports the fault.
std::pair<std::string, std::string> name_and_port(const std::string& address);

class LookUp {
 public:
  // Starts the look-up. Throws std::system_error if there is no descriptor or no thread left.
  LookUp(std::string name, std::string port);
  // The descriptor that is ready to be read once the look-up has ended.
  io::detail::Watched& watched() noexcept { return *watched_; }
  bool is_over() const noexcept;
  // Returns the addresses of the name. Called once, after is_over(). Throws std::system_error, of
  // the category look_up_category() if the name is unknown.
  std::vector<io::Address> result();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<io::detail::Watched> watched_;
};

}  // namespace weft::py
