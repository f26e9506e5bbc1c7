// The look-up of a name of the network, for connect() (rule 18.11).
//
//   LookUp() ──► queued ──a thread takes it: getaddrinfo()──► the result is kept, and the thread's end
//   of the pipe is closed ──► the other end, watched(), is ready: is_over() ──► result()
//
// Invariants
//  1 The thread and the LookUp share the result, and each has an end of the pipe of its own. So a
//    process may stop waiting at any moment: the look-up then ends later, and its result is dropped.
//  2 At most kMaxThreads look-ups are under way; the others are queued. A thread ends when it finds
//    the queue empty.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/io.hpp"

namespace weft::py {

// Returns the name and the port of an address "NAME:PORT". Both are empty if the text has another
// form, or if its host could be an address in numbers; io::Address then says what is wrong.
std::pair<std::string, std::string> name_and_port(const std::string& address);

class LookUp {
 public:
  // Begins the look-up. Throws std::system_error if there is no descriptor left, or no thread.
  LookUp(std::string name, std::string port);
  // The descriptor that is ready to be read once the look-up is over.
  io::detail::Watched& watched() noexcept { return *watched_; }
  bool is_over() const noexcept;
  // Returns the addresses of the name. Called once, after is_over(). Throws std::system_error, of
  // the category look_up_category() if nobody knows the name.
  std::vector<io::Address> result();

 private:
  struct Job;
  class Threads;
  std::shared_ptr<Job> job_;
  std::shared_ptr<io::detail::Watched> watched_;
};

}  // namespace weft::py
