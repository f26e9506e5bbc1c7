// A network as data, and the reader of its text, which is in the line format of
// conformance/README.md.
#pragma once
#include <algorithm>
#include <deque>
#include <istream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/channel.hpp>

namespace twin {

struct Body;
struct Proc;

struct Guard {
  std::string kind;   // in, out, timeout, deadline, skip, barrier, ended
  int at = -1;        // slot, time, barrier or process, depending on kind
  std::string fn;     // for an output: make, raise or ""
  bool ends = false;  // whether the retirement of its channel raises (rule 5.6)
  bool on = true;     // the precondition of the guard
};

struct Statement {
  std::string word;
  std::vector<int> args;
  std::string mode;                 // for a select: its mode; for a limit: its kind
  std::vector<Guard> guards;        // for a select
  std::vector<std::string> caught;  // for a try
  const Body* inner = nullptr;      // for loop, iter, ext, limit and try
  const Body* handler = nullptr;    // for a try
  std::vector<const Proc*> procs;   // for par, seq and spawn
};

struct Body {
  std::vector<Statement> statements;
};

struct End {
  int channel = -1;
  char side = ' ';  // r for a reader, w for a writer
  int slot = -1;
};

struct Proc {
  int id = 0;
  std::string name;  // p<id>
  std::vector<End> ends;
  const Body* body = nullptr;
};

struct ChannelSpec {
  unsigned capacity = 0;
  std::string overflow;
  unsigned immunity = 0;
};
inline weft::ChannelOptions options_of(const ChannelSpec& c) {
  weft::ChannelOptions o;
  o.capacity = c.capacity;
  o.immunity = static_cast<std::uint8_t>(c.immunity);
  o.overflow = c.overflow == "drop_oldest"   ? weft::Overflow::drop_oldest
               : c.overflow == "drop_newest" ? weft::Overflow::drop_newest
               : c.overflow == "unbounded"   ? weft::Overflow::unbounded
                                             : weft::Overflow::block;
  return o;
}

class Network {
 public:
  std::vector<ChannelSpec> channels;
  std::vector<unsigned> barriers;
  const Proc* main = nullptr;
  bool handles = false;  // whether a process cancels another process or awaits its end

  std::vector<int> ids() const {
    std::vector<int> r;
    for (const Proc& p : procs_) r.push_back(p.id);
    return r;
  }

  // Returns the process with that number. Throws std::out_of_range if there is none.
  const Proc* process(int id) const {
    for (const Proc& p : procs_)
      if (p.id == id) return &p;
    throw std::out_of_range("no process " + std::to_string(id));
  }
  const std::deque<Proc>& processes() const { return procs_; }

  // Returns whether every channel has at most one end on each side, held by one process.
  bool simple() const {
    std::vector<std::string> seen;
    for (const Proc& p : procs_)
      for (const End& e : p.ends) {
        std::string name = std::to_string(e.channel) + e.side;
        if (e.slot >= 0 || std::find(seen.begin(), seen.end(), name) != seen.end()) return false;
        seen.push_back(std::move(name));
      }
    return true;
  }

  // Throws std::runtime_error, with the line, if the text is not a network.
  explicit Network(std::istream& in) {
    for (std::string text; std::getline(in, text);) {
      std::istringstream words(text);
      std::vector<std::string> line;
      for (std::string w; words >> w;) line.push_back(w);
      if (!line.empty() && line[0][0] != '#') lines_.push_back(std::move(line));
    }
    if (next() != std::vector<std::string>{"weft-net", "1"})
      bad("a network begins with the line 'weft-net 1'");
    while (peek() == "channel" || peek() == "barrier") {
      const auto l = next();
      if (l[0] == "barrier")
        barriers.push_back(static_cast<unsigned>(std::stoul(l.at(1))));
      else
        channels.push_back({static_cast<unsigned>(std::stoul(l.at(1))), l.at(2),
                            static_cast<unsigned>(std::stoul(l.at(3)))});
    }
    main = process();
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    throw std::runtime_error("line " + std::to_string(at_) + ": " + what);
  }
  std::string peek() const { return at_ < lines_.size() ? lines_[at_][0] : ""; }
  std::vector<std::string> next() {
    if (at_ >= lines_.size()) bad("the network breaks off: an 'end' is missing");
    return lines_[at_++];
  }

  const Proc* process() {
    const auto l = next();
    if (l[0] != "process") bad("a process was expected, not '" + l[0] + "'");
    Proc p;
    p.id = std::stoi(l.at(1));
    p.name = "p" + l[1];
    for (std::size_t i = 2; i < l.size(); ++i) {
      const std::string& e = l[i];
      if (e[0] == 's')
        p.ends.push_back({-1, ' ', std::stoi(e.substr(1))});
      else
        p.ends.push_back({std::stoi(e.substr(1, e.size() - 2)), e.back(), -1});
    }
    std::string closed_by;
    p.body = body(closed_by);
    procs_.push_back(std::move(p));
    return &procs_.back();
  }

  const Body* body(std::string& closed_by) {
    Body b;
    for (;;) {
      auto l = next();
      Statement s;
      s.word = l[0];
      if (s.word == "end" || s.word == "except") {
        closed_by = s.word;
        bodies_.push_back(std::move(b));
        return &bodies_.back();
      }
      std::string by;
      if (s.word == "par" || s.word == "seq" || s.word == "spawn") {
        while (peek() != "end") s.procs.push_back(process());
        next();
      } else if (s.word == "ext" || s.word == "loop" || s.word == "iter") {
        for (std::size_t i = 1; i < l.size(); ++i) s.args.push_back(std::stoi(l[i]));
        s.inner = body(by);
      } else if (s.word == "limit") {
        s.mode = l.at(1);
        s.args.push_back(std::stoi(l.at(2)));
        s.inner = body(by);
      } else if (s.word == "try") {
        s.caught.assign(l.begin() + 1, l.end());
        s.inner = body(by);
        if (by != "except") bad("a try without except");
        s.handler = body(by);
      } else if (s.word == "select") {
        s.mode = l.at(1);
        while (peek() != "end") s.guards.push_back(guard(next()));
        next();
      } else {
        for (std::size_t i = 1; i < l.size(); ++i) s.args.push_back(std::stoi(l[i]));
        handles = handles || s.word == "cancel" || s.word == "ended";
      }
      for (const Guard& g : s.guards) handles = handles || g.kind == "ended";
      b.statements.push_back(std::move(s));
    }
  }

  static Guard guard(std::vector<std::string> l) {
    Guard g;
    g.kind = l[0];
    if (l.back() == "off") {
      g.on = false;
      l.pop_back();
    }
    if (l.back() == "ends") {
      g.ends = true;
      l.pop_back();
    }
    if (l.size() > 1) g.at = std::stoi(l[1]);
    if (l.size() > 2) g.fn = l[2];
    return g;
  }

  std::vector<std::vector<std::string>> lines_;
  std::size_t at_ = 0;
  std::deque<Proc> procs_;  // deques, so that pointers into them stay valid
  std::deque<Body> bodies_;
};

}  // namespace twin
