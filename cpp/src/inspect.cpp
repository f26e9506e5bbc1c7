// The definitions of inspect.hpp.
#include <weft/inspect.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include <weft/compose.hpp>
#include <weft/runtime/door.hpp>
#include <weft/runtime/json.hpp>
#include <weft/runtime/look.hpp>
#include <weft/runtime/observer.hpp>
#include <weft/version.hpp>

namespace weft::inline WEFT_ABI::detail {

namespace {

using runtime::Json;
using runtime::JsonObject;
using runtime::JsonValue;

constexpr int kVersion = 1;          // the version of the protocol
constexpr int kSamples = 20;         // how many samples an interval has
constexpr double kLongestLook = 60;  // in s
constexpr std::size_t kMaxProcesses = 2'000;
constexpr int kPatience = 3'600;  // in s: how long a visitor may stay without a request

// --- messages ------------------------------------------------------------------------------------

// Returns a message: its length in four bytes, the highest first, and the JSON. Closes the object
// that `json` has begun.
std::string framed(Json& json) {
  json.close('}');
  const auto n = static_cast<std::uint32_t>(json.text.size());
  std::string s;
  for (const int shift : {24, 16, 8, 0}) s += static_cast<char>(n >> shift);
  return s + json.text;
}
Json message() {
  Json j;
  j.open('{').key("weft").number(std::uint64_t{kVersion});
  return j;
}
std::string error(std::string_view sentence) {
  Json j = message();
  j.key("error").string(sentence);
  return framed(j);
}

// Begins a message that says which program this is.
Json who() {
  Json j = message();
  j.key("pid").number(static_cast<std::uint64_t>(getpid()));
  j.key("parent").number(static_cast<std::uint64_t>(getppid()));
  j.key("program").open('[');
  std::ifstream words("/proc/self/cmdline");
  std::string one;
  for (int n = 0; n < 64 && std::getline(words, one, '\0'); ++n) j.string(one);
  j.close(']');
  j.key("version").string(WEFT_VERSION);
  j.key("language").string("C++");
  return j;
}

constexpr const char* kStates[] = {"runs", "due",     "reads", "writes", "either",
                                   "time", "barrier", "waits", "io"};

std::string key_of(const core::SyncObject* c) {
  char s[24];
  std::snprintf(s, sizeof s, "%p", static_cast<const void*>(c));
  return s;
}
void put_places(Json& j, const char* key, const std::vector<runtime::Look::Place>& places) {
  j.key(key).open('[');
  for (const auto& [place, writes] : places)
    j.open('[').string(key_of(place)).truth(writes).close(']');
  j.close(']');
}

// Returns for each process how many operations per second have passed at its ends. The number is
// below 0 if the process shares an end with another, or holds none.
std::vector<double> rates(const runtime::Look::Found& found, double seconds) {
  std::map<runtime::Look::Place, int> holders;
  std::unordered_map<const core::SyncObject*, double> rate;
  for (const auto& c : found.channels) rate[c.key] = static_cast<double>(c.passed) / seconds;
  for (const auto& r : found.rows)
    for (const auto& one : r.holds) ++holders[one];
  std::vector<double> all;
  for (const auto& r : found.rows) {
    double sum = r.holds.empty() ? -1 : 0;
    for (const auto& one : r.holds) {
      const auto at = rate.find(one.first);
      if (at == rate.end() || holders[one] != 1) {
        sum = -1;
        break;
      }
      sum += at->second;
    }
    all.push_back(sum);
  }
  return all;
}

void put_row(Json& j, const runtime::Look::Row& r, double rate) {
  j.open('{').key("id").number(std::uint64_t{r.id}).key("parent").number(std::uint64_t{r.parent});
  j.key("path").string(r.path).key("kind").string(r.kind).key("now").string(kStates[r.now]);
  j.key("for").number(static_cast<double>(r.ns) * 1e-9).key("before").truth(r.before);
  j.key("does").string(r.does);
  double samples = 0;
  for (const std::uint32_t n : r.found) samples += n;
  j.key("share").open('{');
  for (std::size_t i = 0; i < r.found.size(); ++i)
    if (r.found[i]) j.key(kStates[i]).number(r.found[i] / samples);
  j.close('}').key("cpu");
  if (r.cpu < 0)
    j.word("null");
  else
    j.number(static_cast<double>(r.cpu) * 1e-9);
  put_places(j, "holds", r.holds);
  put_places(j, "waits", r.waits);
  j.key("rate");
  if (rate < 0)
    j.word("null");
  else
    j.number(rate);
  j.close('}');
}

void put_channel(Json& j, const runtime::Look::Channel& c, double seconds, double samples) {
  std::string_view name = c.name;
  if (name.size() > 1 && name.front() == '\'' && name.back() == '\'')
    name = name.substr(1, name.size() - 2);
  j.key(key_of(c.key)).open('{').key("name").string(name).key("passed").number(c.passed);
  j.key("rate").number(static_cast<double>(c.passed) / seconds);
  j.key("dropped").number(c.dropped).key("depth").number(c.depth);
  j.key("capacity").number(c.capacity);
  j.key("reading").number(c.waits[0] / samples).key("writing").number(c.waits[1] / samples);
  j.key("readers").number(std::uint64_t{c.line[0]}).key("writers").number(std::uint64_t{c.line[1]});
  j.close('}');
}

std::string look_over(runtime::Look& look, double interval, std::size_t most) {
  using clock = std::chrono::steady_clock;
  look.begin();
  const auto start = clock::now();
  const std::chrono::duration<double> all(interval);
  for (int n = 1; n <= kSamples; ++n) {
    look.sample();
    if (clock::now() - start >= all) break;
    std::this_thread::sleep_until(start + std::chrono::duration_cast<clock::duration>(
                                              all * n / static_cast<double>(kSamples)));
  }
  const runtime::Look::Found found = look.end(most);
  const double seconds =
      std::max(std::chrono::duration<double>(clock::now() - start).count(), 1e-9);
  Json j = who();
  j.key("seconds").number(seconds).key("samples").number(std::uint64_t{found.samples});
  j.key("processes").open('[');
  const std::vector<double> rate = rates(found, seconds);
  for (std::size_t i = 0; i < found.rows.size(); ++i) put_row(j, found.rows[i], rate[i]);
  j.close(']').key("left_out").number(std::uint64_t{found.left_out}).key("channels").open('{');
  for (const auto& c : found.channels)
    put_channel(j, c, seconds, found.samples ? found.samples : 1);
  j.close('}').key("calls").open('{').close('}').key("away").open('{').close('}');
  return framed(j);
}

std::string stuck() {
  const runtime::Found found = runtime::Look::stuck(wait_op);
  Json j = message();
  j.key("stuck").open('[');
  for (const Waits& w : found.processes) {
    j.open('[').string(w.path).word("null").open('[');
    for (const std::string& other : w.waits_for) j.string(other);
    j.close(']').close(']');
  }
  j.close(']');
  return framed(j);
}

std::string flight(const JsonObject& request) {
  const auto at = request.find("path");
  const std::string* const path =
      at == request.end() ? nullptr : std::get_if<std::string>(&at->second);
  if (!path || path->empty() || (*path)[0] != '/' || path->find('\0') != std::string::npos)
    return error("the path of the file must be absolute");
  const auto write = runtime::write_flight.load(std::memory_order_acquire);
  const int failed = write ? write(path->c_str()) : -1;
  if (failed < 0)
    return error(
        "nothing is recorded: the program has no weft::flight, which keeps the last events while "
        "it "
        "lives");
  if (failed > 0)
    return error("cannot write " + *path + ": " + std::generic_category().message(failed));
  Json j = who();
  j.key("path").string(*path);
  return framed(j);
}

std::string answer(runtime::Look& look, const JsonObject& request) {
  const auto is = [&](const char* key) -> const JsonValue* {
    const auto at = request.find(key);
    return at == request.end() ? nullptr : &at->second;
  };
  const JsonValue* const ask = is("ask");
  const auto* const asked = ask ? std::get_if<std::string>(ask) : nullptr;
  if (asked && *asked == "who") {
    Json j = who();
    return framed(j);
  }
  if (asked && *asked == "stuck") return stuck();
  if (asked && *asked == "flight") return flight(request);
  if (!asked || *asked != "look")
    return error("the question must be \"who\", \"look\", \"stuck\" or \"flight\"");
  double interval = 0.1;
  if (const JsonValue* const v = is("interval")) {
    const auto* const whole = std::get_if<std::int64_t>(v);
    const auto* const real = std::get_if<double>(v);
    interval = whole ? static_cast<double>(*whole) : real ? *real : -1;
  }
  if (!(interval >= 0 && interval <= kLongestLook))
    return error("the interval must be from 0 to 60 s");
  std::size_t most = kMaxProcesses;
  if (const JsonValue* const v = is("most")) {
    const auto* const whole = std::get_if<std::int64_t>(v);
    if (!whole || *whole < 0) return error("the number of processes must be 0 or more");
    most = static_cast<std::size_t>(*whole);
  }
  return look_over(look, interval, most);
}

// Returns the answer to a message, or an error that says why the text is not a message. Sets `over`
// to true if no more messages are accepted.
std::string answer(runtime::Look& look, std::string_view text, bool& over) {
  JsonObject request;
  bool object = false;
  over = true;
  if (!runtime::JsonReader(text).object_of(request, object))
    return error("a message that is not JSON");
  const auto version = request.find("weft");
  if (!object || version == request.end())
    return error("a message that does not say which version of the protocol it is of");
  const auto* const number = std::get_if<std::int64_t>(&version->second);
  if (!number || *number != kVersion)
    return error("a message of version " + (number ? std::to_string(*number) : std::string("?")) +
                 " of the protocol; this one speaks version 1: take the weft command of the "
                 "program's own version");
  over = false;
  return answer(look, request);
}

// --- the door ------------------------------------------------------------------------------------

bool send_all(int fd, std::string_view data) noexcept {
  while (!data.empty()) {
    const ssize_t n = send(fd, data.data(), data.size(),
#ifdef MSG_NOSIGNAL
                           MSG_NOSIGNAL
#else
                           0
#endif
    );
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void serve(int fd) {
  timeval patience{};
  patience.tv_sec = kPatience;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  try {
    Answers answers;
    char data[Answers::kLongest];
    while (!answers.over) {
      const ssize_t n = recv(fd, data, sizeof data, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      if (!send_all(fd, answers.take({data, static_cast<std::size_t>(n)}))) return;
    }
  } catch (...) {  // no memory is left for an answer: the visitor sees that the socket is closed
  }
}

std::atomic<bool> tried{false};

// Set when the program ends. From then on nothing is read, since the objects that would be read are
// being destroyed.
std::atomic<bool> ended{false};
thread_local bool forks = false;

// Waits until a piece of a look has ended. This function must not block in lock(), because the end
// of the program keeps the lock for ever.
void before_fork() {
  while (!(forks = runtime::Look::at_work().try_lock()) && !ended) usleep(100);
}
void after_fork() {
  if (std::exchange(forks, false)) runtime::Look::at_work().unlock();
}
void in_child() {
  runtime::Look::forget();
  runtime::Door::forget();
  tried.store(false, std::memory_order_relaxed);
}

}  // namespace

struct Answers::Visit {
  runtime::Look look;
  std::string data;
};
Answers::Answers() : visit_(new Visit) {}
Answers::~Answers() { delete visit_; }

std::string Answers::take(std::string_view bytes) {
  std::string& data = visit_->data;
  data += bytes;
  std::string answers;
  while (!over && data.size() >= 4) {
    std::uint32_t length = 0;
    for (int i = 0; i < 4; ++i)
      length = length << 8 | static_cast<unsigned char>(data[static_cast<std::size_t>(i)]);
    if (length > kLongest) {
      over = true;
      return answers + error("a message of " + std::to_string(length) + " bytes; at most " +
                             std::to_string(kLongest) + " are taken");
    }
    if (data.size() < 4 + length) break;
    answers += answer(visit_->look, std::string_view(data).substr(4, length), over);
    data.erase(0, 4 + length);
  }
  return answers;
}

void can_be_looked_at() noexcept {
  if (tried.load(std::memory_order_relaxed)) [[likely]]
    return;
  if (tried.exchange(true)) return;
  runtime::Door::open(&serve);
  static const bool once = [] {
    pthread_atfork(&before_fork, &after_fork, &in_child);
    std::atexit([] {
      runtime::Look::at_work().lock();
      ended = true;
    });
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace weft::inline WEFT_ABI::detail

#else  // without Unix sockets the program cannot be inspected

namespace weft::inline WEFT_ABI::detail {
void can_be_looked_at() noexcept {}
}  // namespace weft::inline WEFT_ABI::detail
#endif
