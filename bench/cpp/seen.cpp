// Measures what a look from another OS process (rules 14.9, 14.10) costs a C++ program.
//
//   seen HOW SAMPLES PER      PER: how many rounds of the network are one sample
//
// alone          ns for a communication of CommsTime on local channels that nobody looks at
// attached       the same while another OS process takes a look of 100 ms every second
// many-alone     the same as alone, beside 10,000 processes that wait
// many-attached  the same as attached, beside 10,000 processes that wait
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "commstime.hpp"

namespace {

using weft::Local;
using weft::Process;
using namespace std::chrono_literals;

Process waits(weft::Reader<int, Local> in) { co_await in.read(); }

// Takes a look each second until the observed program has ended.
[[noreturn]] void looks(const std::string& folder, pid_t at) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder + "/weft/" + std::to_string(at) + ".sock";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  while (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    std::this_thread::sleep_for(1ms);  // the first run makes the socket, and no event reports that
  const std::string_view ask = R"({"weft":1,"ask":"look","interval":0.1,"most":2000})";
  const char length[4] = {0, 0, 0, static_cast<char>(ask.size())};
  const auto read_all = [fd](char* to, std::size_t n) {
    for (std::size_t got = 0; got < n;) {
      const ssize_t r = read(fd, to + got, n - got);
      if (r <= 0) _exit(0);
      got += static_cast<std::size_t>(r);
    }
  };
  for (std::string answer;;) {
    if (write(fd, length, sizeof length) != sizeof length ||
        write(fd, ask.data(), ask.size()) != static_cast<ssize_t>(ask.size()))
      _exit(0);
    unsigned char n[4];
    read_all(reinterpret_cast<char*>(n), sizeof n);
    answer.resize(std::size_t{n[0]} << 24 | n[1] << 16 | n[2] << 8 | n[3]);
    read_all(answer.data(), answer.size());
    if (answer.find("\"processes\"") == answer.npos) bench::fail("seen: " + answer);
    std::this_thread::sleep_for(900ms);  // one look of 100 ms in each second is measured
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view how = argc == 4 ? argv[1] : "";
  const bool many = how.starts_with("many-");
  if (many) how.remove_prefix(5);
  if (how != "alone" && how != "attached")
    bench::fail("usage: seen alone|attached|many-alone|many-attached SAMPLES PER");
  const long samples = bench::number(argv[2]), per = bench::number(argv[3]);
  // In many containers the user has no runtime directory, in which the socket would be. The folder
  // is in /tmp because the path of a socket has at most 107 bytes.
  char folder[] = "/tmp/seenXXXXXX";
  if (!mkdtemp(folder)) bench::fail("seen: no directory in /tmp");
  setenv("XDG_RUNTIME_DIR", folder, 1);
  const pid_t me = getpid();
  const pid_t looker = how == "attached" ? fork() : -1;
  if (looker == 0) looks(folder, me);

  weft::Channel<int, Local> a, b, c, d, e;
  std::vector<Process> waiting;
  for (int i = 0; i < (many ? 10'000 : 0); ++i) waiting.push_back(waits(e.reader()));
  weft::run(weft::par(
      bench::prefix(c.reader(), a.writer()), bench::delta(a.reader(), b.writer(), d.writer()),
      bench::successor<Local>(b.reader(), c.writer()),
      // This writer is the only writer of the channel at which the other processes wait.
      bench::consumer(d.reader(), samples, per, e.writer()), bench::together(std::move(waiting))));
  if (looker > 0) {
    kill(looker, SIGKILL);
    waitpid(looker, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
}
