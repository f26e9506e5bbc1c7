// The look-up of a name of the network, for connect() (rule 18.11).
//
//   LookUp() queues a job ──► a thread calls getaddrinfo() for the job, keeps the result, and
//   closes its end of the pipe ──► the other end, watched(), is ready: is_over() ──► result()
//
// Invariants
//  1 The job and the LookUp each have one end of the pipe, and the job has the result. So a process
//    may stop waiting at any moment: the look-up still ends later, and its result is dropped.
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
// form, or if its host could be an address in numbers; io::Address then reports the fault.
std::pair<std::string, std::string> name_and_port(const std::string& address);

class LookUp {
 public:
  // Begins the look-up. Throws std::system_error if no descriptor is left, or if no thread of
  // look-ups runs and none can be started.
  LookUp(std::string name, std::string port);
  // The descriptor that is ready to be read once the look-up has ended.
  io::detail::Watched& watched() noexcept { return *watched_; }
  bool is_over() const noexcept;
  // Returns the addresses of the name. Called once, after is_over(). Throws std::system_error, of
  // the category look_up_category() if the name is unknown.
  std::vector<io::Address> result();

 private:
  struct Job;
  class Threads;
  std::shared_ptr<Job> job_;
  std::shared_ptr<io::detail::Watched> watched_;
};

}  // namespace weft::py
