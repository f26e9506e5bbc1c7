// A small HTTP/1.1 server (RFC 9112): connections stay open, a client may send requests before it
// has the earlier answers, bodies have a Content-Length, and everything that a client sends has
// limits. On SIGTERM or Ctrl-C the server takes no more connections, closes the connections that
// wait for a request, answers the requests that have begun, and ends.
//
//   http [ADDRESS [SECONDS]]    (default 127.0.0.1:8080 30; port 0: the system chooses one)
//
//   SECONDS is how long a client may take for one request, or for reading one answer, and how long
//   a connection may wait for its next request.
//
//   GET /       says hello
//   POST /echo  answers with the request's body
//
// A program that faces the internet should use a widely tested parser (such as llhttp), and TLS.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <weft/io.hpp>
#include <weft/weft.hpp>

namespace io = weft::io;

constexpr std::size_t kHead = 8 * 1024;   // in bytes: the longest request line with its fields
constexpr std::size_t kBody = 64 * 1024;  // in bytes: the longest body

struct Request {
  std::string method, target, body;
  std::map<std::string, std::string, std::less<>> fields;  // the names in small letters
  std::size_t length = 0;                                  // the length of the body, in bytes
  bool keep = true;                                        // whether the connection stays open

  std::string_view field(std::string_view name) const {
    const auto f = fields.find(name);
    return f == fields.end() ? std::string_view() : f->second;
  }
};
struct Answer {
  int status;
  std::string body;
};

const char* reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
  }
}

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string small(std::string_view s) {
  std::string r(s);
  std::transform(r.begin(), r.end(), r.begin(), [](char c) { return small(c); });
  return r;
}
bool is_token(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) {
    return (small(c) >= 'a' && small(c) <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}
std::string_view trimmed(std::string_view s) {
  const std::size_t from = s.find_first_not_of(" \t");
  return from == std::string_view::npos ? std::string_view()
                                        : s.substr(from, s.find_last_not_of(" \t") - from + 1);
}
// Removes the text before `mark`, and the mark, from the beginning of `rest`. Returns that text. If
// the mark is not there, all of `rest` is removed and returned.
std::string_view take(std::string_view& rest, std::string_view mark) {
  const std::size_t at = rest.find(mark);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + mark.size());
  return taken;
}

// Reads a request's head. Returns 200, or the status of the refusal. A head that two programs may
// understand in two ways is refused, because with it a client can smuggle a request past a proxy.
int parse(std::string_view head, Request& r) {
  const auto odd = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; };
  std::string_view line = take(head, "\r\n");
  r.method = take(line, " ");
  r.target = take(line, " ");
  if (!is_token(r.method) || r.target.empty() || std::any_of(line.begin(), line.end(), odd) ||
      std::any_of(r.target.begin(), r.target.end(), odd))
    return 400;
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return line.substr(0, 5) == "HTTP/" ? 505 : 400;
  r.keep = line == "HTTP/1.1";
  while (!head.empty()) {
    line = take(head, "\r\n");
    if (std::any_of(line.begin(), line.end(), odd) || line.find(':') == std::string_view::npos)
      return 400;
    const std::string_view name = take(line, ":");
    if (!is_token(name)) return 400;  // refuses also a line that continues the line before it
    if (!r.fields.emplace(small(name), trimmed(line)).second &&
        (small(name) == "content-length" || small(name) == "host"))
      return 400;
  }
  if (r.keep && r.fields.count("host") == 0) return 400;
  const std::string connection = small(r.field("connection"));
  if (connection == "close") r.keep = false;
  if (connection == "keep-alive") r.keep = true;
  if (r.fields.count("transfer-encoding") != 0) return r.fields.count("content-length") ? 400 : 411;
  if (r.fields.count("content-length") != 0) {
    const std::string_view n = r.field("content-length");
    if (n.empty() || n.find_first_not_of("0123456789") != std::string_view::npos) return 400;
    if (std::from_chars(n.data(), n.data() + n.size(), r.length).ec != std::errc() ||
        r.length > kBody)
      return 413;
  }
  return 200;
}

Answer answer(const Request& r) {
  if (r.method != "GET" && r.method != "HEAD" && r.method != "POST")
    return {501, "no such method\n"};
  if (r.target == "/")
    return r.method == "POST" ? Answer{405, "only GET\n"} : Answer{200, "hello from Weft\n"};
  if (r.target == "/echo")
    return r.method == "POST" ? Answer{200, r.body} : Answer{405, "only POST\n"};
  return {404, "nothing is there\n"};
}

// Reads the next request. Returns 200, the status of a refusal, or 0 if the client has ended the
// connection. `came` holds the bytes that have arrived and belong to no request yet.
weft::ProcessOf<int> receive(io::Stream client, std::string& came, Request& r,
                             weft::Span patience) {
  char bytes[4096];
  try {
    const weft::Timeout limit(patience);
    std::size_t end = 0;
    while ((end = came.find("\r\n\r\n")) == std::string::npos && came.size() <= kHead) {
      const std::size_t n = co_await client.read_some(bytes);
      if (n == 0) co_return came.empty() ? 0 : 400;
      came.append(bytes, n);
      if (came.compare(0, 2, "\r\n") == 0) came.erase(0, 2);  // some clients end a body like this
    }
    if (end > kHead) co_return 431;
    const int status = parse(std::string_view(came).substr(0, end), r);
    if (status != 200) co_return status;
    came.erase(0, end + 4);
    if (came.size() < r.length && small(r.field("expect")) == "100-continue")
      co_await client.write_all("HTTP/1.1 100 Continue\r\n\r\n");
    while (came.size() < r.length) {
      const std::size_t n = co_await client.read_some(bytes);
      if (n == 0) co_return 400;
      came.append(bytes, n);
    }
    r.body = came.substr(0, r.length);
    came.erase(0, r.length);
    co_return 200;
  } catch (const weft::TimedOut&) {
    co_return 408;
  }
}

// Waits until a request begins. Returns false if the server ends or the time limit expires before a
// request begins. A request that has arrived is answered even if the server ends.
weft::ProcessOf<bool> begins(io::Stream client, weft::Reader<int> open, weft::Span patience) {
  try {
    co_return (co_await weft::select(weft::Mode::priority, io::readable(client),
                                     weft::in(open).ends(), weft::after(patience)))
            .index == 0;
  } catch (const weft::Retired&) {
    co_return false;
  }
}
// Returns whether the server takes further requests.
weft::ProcessOf<bool> goes_on(weft::Reader<int> open) {
  try {
    co_await weft::select(weft::Mode::priority, weft::in(open).ends(), weft::skip());
    co_return true;
  } catch (const weft::Retired&) {
    co_return false;
  }
}

weft::Process connection(io::Stream client, weft::Reader<int> open, weft::Span patience) {
  std::string came;
  try {
    for (bool keep = true; keep;) {
      if (came.empty() && !co_await begins(client, open, patience)) break;
      Request r;
      const int status = co_await receive(client, came, r, patience);
      if (status == 0) break;
      const Answer a =
          status == 200 ? answer(r) : Answer{status, std::string(reason(status)) + "\n"};
      keep = status == 200 && r.keep && co_await goes_on(open);
      std::string text =
          "HTTP/1.1 " + std::to_string(a.status) + " " + reason(a.status) +
          "\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(a.body.size()) +
          (keep ? "\r\nConnection: keep-alive\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
      if (r.method != "HEAD") text += a.body;
      const weft::Timeout limit(patience);
      co_await client.write_all(text);
      if (keep) continue;
      // If the socket were closed with bytes unread, the client might lose the answer.
      client.shutdown_write();
      char rest[4096];
      while (co_await client.read_some(rest) != 0) {
      }
    }
  } catch (const std::system_error&) {
    // The client has reset the connection, or no longer reads.
  } catch (const weft::TimedOut&) {
    // The client has not read its answer in time.
  }
}

weft::Process serve(io::Listener door, weft::Reader<int> stop, weft::Span patience) {
  weft::Channel<int> open;  // retires when the server ends; nothing is ever written
  weft::Writer<int> keeps_open = open.writer();
  const weft::Reader<int> one = open.reader();  // `open` must not retire while there is no client
  weft::Group clients;
  while ((co_await weft::select(weft::Mode::priority, stop, io::readable(door))).index != 0)
    clients.start(connection(co_await door.accept(), open.reader(), patience));
  door.close();
  keeps_open.retire();
  std::puts("no more connections");
  std::fflush(stdout);
  co_await clients.wait();
}

int main(int argc, char** argv) try {
  io::Listener door(io::Address(argc > 1 ? argv[1] : "127.0.0.1:8080"));
  const double seconds = argc > 2 ? std::atof(argv[2]) : 30;
  if (!(seconds > 0 && seconds < 1e6)) throw std::invalid_argument("SECONDS must be 0 to 1000000");
  weft::signals stop{SIGTERM, SIGINT};
  std::printf("listening at %s\n", door.address().text().c_str());
  std::fflush(stdout);
  weft::run(serve(std::move(door), stop.reader(), weft::Span(std::int64_t(seconds * 1e9))));
  std::puts("drained");
} catch (const std::exception& e) {
  std::fprintf(stderr, "http: %s\n", e.what());
  return 2;
}
