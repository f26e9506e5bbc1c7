// The deadlock report (rule 10.2): every blocked process, what it waits for and where, and the
// knot.
//
// An edge p → q means that p waits for something that q can give, by the recorded holders. A *knot*
// is a smallest non-empty set of processes whose edges all stay inside. A process that waits for no
// known process is a knot by itself (knot.hpp finds knots). ("Knot" as in Holt, "Some deadlock
// properties of computer systems", 1972, section 3: where one event of several is waited for, a
// cycle is not enough, but a knot is.)
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "../config.hpp"
#include "../core/waiter.hpp"
#include "pairs.hpp"
#include "process.hpp"
#include "text.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Run;

// What a host language knows in addition to the records: where its processes are, and which
// processes hold an end.
struct ReportHooks {
  // Updates the file and line of every process. Nothing in the run changes until end().
  void (*begin)(Run&) = nullptr;
  void (*holders)(const core::SyncObject&, bool readers, Numbers& add) = nullptr;
  // Returns whether a side of a channel without known holders has never had an end.
  bool (*never)(const core::SyncObject&, bool readers) = nullptr;
  void (*end)(Run&) = nullptr;
  void (*deadlock)(Run&, const struct Report&) = nullptr;  // called when a deadlock is declared
  // Tells the user how to make a retirement an outcome.
  const char* ends = "say .ends() of that guard, weft::in(…).ends()";
  // Advice for a channel on whose other side no process is known, in case there is a party (rule
  // 10.3). Null means that the advice is given elsewhere, or that no other thread can arrive
  // because the network is checked.
  const char* outside =
      WEFT_CHECKED
          ? nullptr
          : "if a thread that Weft did not start is to come there: hold a weft::Outside as "
            "long as it may";
};
inline ReportHooks report_hooks;

struct Report {
  struct Blocked {
    std::string path, verb, at;
    // Whether the process waits for its group. Then the process has no operation of its own, but is
    // part of the graph.
    bool for_children = false;
    std::vector<std::string> places;
    // The guards of the process's select whose channels have ended (rule 5.6), as "0 'c'".
    std::vector<std::string> silent;
    // The places where no holder of the other side is known, each with that side.
    std::vector<std::string> unknown;
    bool somebody = false;  // whether there might be an unknown holder
    // The process's node in the graph, which is the process's index in `order`.
    std::uint32_t node = 0;
  };
  static constexpr std::size_t kLines = 40;  // the maximum number of lines of processes in a text
  static constexpr std::size_t kNames = 8;   // the maximum number of names in a line

  struct One {
    std::uint32_t id;
    Blocked blocked;
  };
  std::vector<One> blocked;  // in ascending order of the ids
  // The blocked processes, sorted by path. They are not sorted by id, because ids depend on the
  // order in which a compiler evaluates arguments.
  Numbers order;
  Numbers knot;  // sorted as `order` is

  // Makes the report. Must be called only while nothing can run. Time and memory grow with the
  // number of processes and of records, not with the product of the two.
  static Report of(Run& run);
  std::vector<std::string> knot_paths() const;
  std::string text() const;

 private:
  struct Collect;
  std::string ended() const;
  std::string waiting(std::uint32_t id) const;
  static std::string line(const Blocked& b);
  void sort_by_path();
  Blocked* find(std::uint32_t id) noexcept;  // null if the process with that id is not blocked
  const Blocked& of(std::uint32_t id) const noexcept {
    return *const_cast<Report*>(this)->find(id);
  }
  std::uint32_t running() const noexcept { return static_cast<std::uint32_t>(order.size()); }

  // The graph. Its nodes are the blocked processes, in `order`; one node for all processes that
  // run; and one node for each side of a channel and each barrier, which leads to all processes
  // that could arrive there. So n processes that wait for the same m processes take n + m edges.
  std::uint32_t nodes_ = 0;
  Pairs edges_;
};

}  // namespace weft::inline WEFT_ABI::runtime
