// A component and its host in one program, without CPython, for ThreadSanitizer: the host is the
// table of component_abi.h over channels made of a mutex and a condition variable.
// It tests parts of <weft/component.hpp>: the run functions on many threads, the conversions, the
// blocks.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <weft/component.hpp>

using namespace weft::native;

namespace {

// --- the component -------------------------------------------------------------------------------

struct Sample {
  double time = 0;
  std::vector<std::int64_t> values;
  std::optional<std::string> note;
};
WEFT_FIELDS(Sample, time, values, note)
using Frame = std::tuple<std::int64_t, Array<double, 2>>;

void makes(Writer<Frame> out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    Array<double, 2> a(3, 4);
    a(2, 3) = static_cast<double>(i);
    out.write({i, std::move(a)});
  }
}
void doubles(Reader<Frame> in, Writer<Frame> out) {
  for (Frame& f : in) {
    for (double& x : std::get<1>(f)) x *= 2;
    out.write(std::move(f));
  }
}
void tells(Reader<Frame> in, Writer<Value> out) {
  for (Frame& f : in)
    out.write(Value::Dict{{"n", std::get<0>(f)},
                          {"last", std::get<1>(f)[2][3]},
                          {"all", Value::List{1, "two", nullptr}}});
}
void samples(Reader<Value> in, Writer<Sample> out) {
  for (const Value& v : in)
    out.write({v.at("last").as<double>(),
               {v.at("n").as<std::int64_t>()},
               v.at("all").list()[1].as<std::string>()});
}
void sums(Reader<Sample> in, Writer<double> out) {
  double sum = 0;
  try {
    for (;;) {
      for (const Sample& s : in.read_many(4)) sum += s.time;
    }
  } catch (const Retired&) {
  }
  out.write(sum);
}
void throws(std::int64_t n) { throw std::runtime_error("as asked: " + std::to_string(n)); }

// --- the host ------------------------------------------------------------------------------------

struct Head {
  Head *parts = nullptr, *next = nullptr;
  void* pad = nullptr;
  void* more = nullptr;
};
Head* head(void* block) { return static_cast<Head*>(block) - 1; }
void* allocate(std::size_t n) {
  void* const p = std::malloc(sizeof(Head) + n);
  return p ? new (p) Head + 1 : nullptr;
}
void release(void* block) {
  if (!block) return;
  while (Head* const p = head(block)->parts) {
    head(block)->parts = p->next;
    release(p + 1);
  }
  std::free(head(block));
}
void keep(void* block, void* part) {
  head(part)->next = head(block)->parts;
  head(block)->parts = head(part);
}
void take(void* block, void* part) {
  Head** at = &head(block)->parts;
  while (*at != head(part)) at = &(*at)->next;
  *at = head(part)->next;
}

class Channel {  // a rendezvous
 public:
  bool write(weft_value v) {
    std::unique_lock g(lock_);
    change_.wait(g, [&] { return !full_ || ended_; });
    if (ended_) return false;
    value_ = v;
    full_ = true;
    change_.notify_all();
    change_.wait(g, [&] { return !full_; });
    return true;
  }
  bool read(weft_value& v) {
    std::unique_lock g(lock_);
    change_.wait(g, [&] { return full_ || ended_; });
    if (!full_) return false;
    v = value_;
    full_ = false;
    change_.notify_all();
    return true;
  }
  void retire() {
    const std::lock_guard g(lock_);
    ended_ = true;
    change_.notify_all();
  }

 private:
  std::mutex lock_;
  std::condition_variable change_;
  weft_value value_{};
  bool full_ = false, ended_ = false;
};

struct Process {
  std::vector<Channel*> ends;
};
Process& of(weft_process* p) { return *reinterpret_cast<Process*>(p); }

weft_status read(weft_process* p, std::uint32_t end, weft_value* to, weft_place) {
  return of(p).ends[end]->read(*to) ? WEFT_OK : WEFT_RETIRED;
}
weft_status write(weft_process* p, std::uint32_t end, weft_value* from, weft_place) {
  return of(p).ends[end]->write(*from) ? WEFT_OK : WEFT_RETIRED;
}
weft_status read_many(weft_process* p, std::uint32_t end, weft_value* to, std::size_t,
                      std::size_t* n, weft_place at) {
  const weft_status s = read(p, end, to, at);
  *n = s == WEFT_OK;
  return s;
}

weft_api table() {
  weft_api a{};
  a.abi = WEFT_COMPONENT_ABI;
  a.size = sizeof a;
  a.allocate = &allocate;
  a.release = &release;
  a.read = &read;
  a.write = &write;
  a.read_many = &read_many;
  a.last_error = [](weft_process*) { return "bad use"; };
  a.keep = &keep;
  a.take = &take;
  return a;
}
const weft_api api = table();

// Starts a thread that runs the process with these ends and values. The ends retire when the
// process ends.
std::thread start(const weft_process_info& info, std::vector<Channel*> ends,
                  std::vector<std::uint64_t> values, weft_status expected) {
  return std::thread([&info, ends, values, expected] {
    Process p{ends};
    std::vector<weft_argument> arguments;
    for (std::uint32_t i = 0; i < ends.size(); ++i) arguments.push_back({i, {}});
    for (std::uint64_t v : values) arguments.push_back({0, {v, nullptr}});
    weft_failure f{};
    const weft_status s = info.run(&api, reinterpret_cast<weft_process*>(&p), arguments.data(), &f);
    for (Channel* c : ends) c->retire();
    if (s != expected) std::printf("%s ended with %d\n", info.name, static_cast<int>(s));
    if (s == WEFT_FAILED && std::string(f.text).rfind("as asked: 7", 0) != 0)
      std::printf("%s said %s\n", info.name, f.text);
    release(f.type);
    release(f.text);
  });
}

}  // namespace

WEFT_COMPONENT(alone, "For a program of its own.") {
  component.process<&makes>("makes").argument("out").argument("n");
  component.process<&doubles>("doubles").argument("source").argument("out");
  component.process<&tells>("tells").argument("source").argument("out");
  component.process<&samples>("samples").argument("source").argument("out");
  component.process<&sums>("sums").argument("source").argument("out");
  component.process<&throws>("throws").argument("n");
}

int main() {
  constexpr std::uint64_t n = 200, chains = 4;
  const weft_component& c = *weft_component_entry();
  if (c.error) return std::puts(c.error), 1;
  std::deque<Channel> channels(5 * chains);
  std::vector<std::thread> threads;
  for (std::uint64_t k = 0; k < chains; ++k) {
    Channel* const at = &channels[5 * k];
    Channel *const first = at, *const second = &channels[5 * k + 1],
                   *const third = &channels[5 * k + 2], *const fourth = &channels[5 * k + 3],
                   *const last = &channels[5 * k + 4];
    threads.push_back(start(c.processes[0], {first}, {n}, WEFT_OK));
    threads.push_back(start(c.processes[1], {first, second}, {}, WEFT_OK));
    threads.push_back(start(c.processes[2], {second, third}, {}, WEFT_OK));
    threads.push_back(start(c.processes[3], {third, fourth}, {}, WEFT_OK));
    threads.push_back(start(c.processes[4], {fourth, last}, {}, WEFT_OK));
    threads.push_back(start(c.processes[5], {}, {7}, WEFT_FAILED));
  }
  double total = 0;
  for (std::uint64_t k = 0; k < chains; ++k) {
    weft_value v;
    double sum;
    if (!channels[5 * k + 4].read(v)) return std::puts("nothing came"), 1;
    std::memcpy(&sum, &v.bits, 8);
    total += sum;
  }
  for (std::thread& t : threads) t.join();
  std::printf("%.1f\n", total);
}
