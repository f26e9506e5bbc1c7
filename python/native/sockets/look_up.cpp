// The threads that look up names, and the definitions of look_up.hpp.
#include "sockets/look_up.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "weft/runtime/affinity.hpp"

namespace weft::py {

std::pair<std::string, std::string> name_and_port(const std::string& address) {
  const auto is_letter = [](unsigned char c) { return (c | 32) - 'a' < 26u || c >= 128; };
  const auto is_digit = [](unsigned char c) { return c - '0' < 10u; };
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos || address.starts_with("unix:")) return {};
  const std::string_view host = std::string_view(address).substr(0, colon);
  const std::string_view port = std::string_view(address).substr(colon + 1);
  if (std::none_of(host.begin(), host.end(), is_letter) || host.find_first_of(":[]") != host.npos)
    return {};
  if (port.empty() || port.size() > 5 || !std::all_of(port.begin(), port.end(), is_digit) ||
      std::stoi(std::string(port)) > 65535)
    return {};
  return {std::string(host), std::string(port)};
}

struct LookUp::Job {
  std::string name, port;
  int end = -1;  // the end of the pipe that is closed after the look-up
  std::vector<io::Address> found;
  std::exception_ptr error;
  std::atomic<bool> over{false};  // set once found and error are final

  ~Job() {
    if (end >= 0) ::close(end);
  }
  void run() noexcept {
    try {
      found = io::detail::looked_up(name.c_str(), port.c_str());
    } catch (...) {
      error = std::current_exception();
    }
    over.store(true, std::memory_order_release);
    ::close(std::exchange(end, -1));
  }
};

// The threads of all look-ups of this program. The object is never destroyed, since a thread may
// still be in getaddrinfo() when the program ends.
class LookUp::Threads {
 public:
  static Threads& all() {
    static Threads* const threads = new Threads;
    return *threads;
  }
  // Queues the job, and starts a thread if there are fewer than kMaxThreads. Throws
  // std::system_error if no thread runs and none can be started.
  void submit(std::shared_ptr<Job> job) {
    const std::lock_guard g(mutex_);
    queue_.push_back(std::move(job));
    if (count_ == kMaxThreads) return;
    try {
      std::thread([this] { work(); }).detach();
      ++count_;
    } catch (const std::system_error&) {
      if (count_ != 0) return;  // a thread that runs will take this job too
      queue_.pop_back();
      throw;
    }
  }

 private:
  static constexpr unsigned kMaxThreads =
      64;  // as many as weft::blocking has (runtime/blocking.hpp)

  void work() noexcept {
    runtime::name_this_thread("weft look-up");
    for (;;) {
      std::shared_ptr<Job> job;
      {
        const std::lock_guard g(mutex_);
        if (queue_.empty()) {
          --count_;
          return;
        }
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      job->run();
    }
  }

  std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> queue_;
  unsigned count_ = 0;  // how many threads there are
};

LookUp::LookUp(std::string name, std::string port) : job_(std::make_shared<Job>()) {
  job_->name = std::move(name);
  job_->port = std::move(port);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "look up " + job_->name);
  job_->end = ends[1];
  try {
    watched_ = io::detail::Watched::owned(ends[0], false, false);
  } catch (...) {
    ::close(ends[0]);
    throw;
  }
  Threads::all().submit(job_);
}

bool LookUp::is_over() const noexcept { return job_->over.load(std::memory_order_acquire); }

std::vector<io::Address> LookUp::result() {
  if (job_->error) std::rethrow_exception(job_->error);
  return std::move(job_->found);
}

}  // namespace weft::py
#endif
