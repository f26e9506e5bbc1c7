// A chat server: each line that a client writes is sent to all other clients.
//
//   member ──► lines ──► room ──► outbox ──► member      a process for each client, and the room
//
// The room never waits for a client: an outbox is a buffer of 64 lines, which drops the oldest. So
// a slow client misses lines, and holds up no other client. A client that does not take a line
// within ten seconds is disconnected. On SIGTERM or Ctrl-C the server cancels its members, and
// ends.
//
//   chat [ADDRESS]       (default 127.0.0.1:7778; port 0: the system chooses one)
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include <weft/io.hpp>
#include <weft/weft.hpp>

namespace io = weft::io;
using namespace std::chrono_literals;

constexpr std::size_t kLongest = 1000;  // in bytes; a longer line is cut into several

struct Line {
  int from;
  std::string text;
};
struct Joined {
  int who;
  weft::Writer<std::string> outbox;
};

weft::Process room(weft::Reader<Joined> joins, weft::Reader<Line> lines) {
  std::map<int, weft::Writer<std::string>> members;
  for (;;) {
    auto [which, value] = co_await weft::select(weft::in(joins).ends(), weft::in(lines));
    if (which == 0) {
      auto& [who, outbox] = std::get<Joined>(value);
      co_await outbox.write("you are " + std::to_string(who) + "\n");
      members.emplace(who, std::move(outbox));
      continue;
    }
    const Line& line = std::get<Line>(value);
    for (auto m = members.begin(); m != members.end();) {
      bool there = true;
      try {
        if (m->first != line.from) co_await m->second.write(line.text);
      } catch (const weft::Retired&) {
        there = false;  // The client with this number has left.
      }
      m = there ? std::next(m) : members.erase(m);
    }
  }
}

weft::Process member(int me, io::Stream client, weft::Writer<Joined> joins,
                     weft::Writer<Line> lines) {
  weft::Channel<std::string> outbox(weft::buffer(64, weft::Overflow::drop_oldest));
  weft::Reader<std::string> mine = outbox.reader();
  // The value to write is a variable, because g++ 12 would destroy a temporary twice
  // (cpp/docs/lifetimes.md).
  Joined joined{me, outbox.writer()};
  co_await joins.write(std::move(joined));
  std::string begun;
  char bytes[4096];
  try {
    for (;;) {
      auto [which, text] = co_await weft::select(io::readable(client), mine);
      if (which == 1) {
        weft::Timeout limit(10s);
        co_await client.write_all(*text);
        continue;
      }
      const std::size_t n = co_await client.read_some(bytes);
      if (n == 0) break;
      begun.append(bytes, n);
      for (std::size_t end = 0;
           (end = begun.find('\n')) != std::string::npos || begun.size() > kLongest;) {
        end = std::min(end, kLongest);
        Line line{me, std::to_string(me) + ": " + begun.substr(0, end) + "\n"};
        co_await lines.write(std::move(line));
        begun.erase(0, begun[end] == '\n' ? end + 1 : end);
      }
    }
  } catch (const std::system_error&) {
    // The connection has failed.
  } catch (const weft::TimedOut&) {
    // The client has not taken a line within ten seconds.
  }
}

weft::Process serve(io::Listener door, weft::Reader<int> stop, weft::Writer<Joined> joins,
                    weft::Writer<Line> lines) {
  weft::Group members;
  int count = 0;
  while ((co_await weft::select(weft::Mode::priority, stop, io::readable(door))).index != 0) {
    io::Stream client = co_await door.accept();
    members.start(member(++count, std::move(client), joins, lines));
  }
  members.cancel();
  co_await members.wait();
}

int main(int argc, char** argv) try {
  io::Listener door(io::Address(argc > 1 ? argv[1] : "127.0.0.1:7778"));
  weft::signals stop{SIGTERM, SIGINT};
  std::printf("listening at %s\n", door.address().text().c_str());
  std::fflush(stdout);
  weft::Channel<Joined> joins;
  weft::Channel<Line> lines;
  weft::run(room(joins.reader(), lines.reader()),
            serve(std::move(door), stop.reader(), joins.writer(), lines.writer()));
  std::puts("closed");
} catch (const std::exception& e) {
  std::fprintf(stderr, "chat: %s\n", e.what());
  return 2;
}
