// The twin under a check: runs each network in one schedule after another, and prints the outcomes.
// conformance/checking_cpp.py compares them.
//
//   checked_twin < networks
//
// The standard input has requests: a line "search WAY any|quiet COUNT", a network in the line
// format of conformance/README.md, and a line ".". WAY is all, reduced, walk, priorities or few; at
// most COUNT schedules are run. The answer is the history of one run for each outcome, each history
// with a line "outcome" after it, and then a line "done RUNS complete|cut|different".
#include <iostream>
#include <map>
#include <set>
#include <string>

#include <weft/check/reduced.hpp>
#include <weft/check/strategies.hpp>
#include <weft/checker.hpp>

#include "near.hpp"
#include "play.hpp"

namespace {

using weft::checking::Stopped;

std::string history;                            // the records of this run, a line each
std::map<std::string, std::string> by_process;  // what each process's operations returned

std::string word_after(const std::string& record, const char* key, const char* end) {
  const std::size_t from = record.find(key);
  if (from == std::string::npos) return "";
  const std::size_t to = record.find(end, from);
  return record.substr(from, to == std::string::npos ? to : to - from);
}
// Keeps the record. Two runs have one outcome if each process's operations returned the same.
void keep(std::string record) {
  if (record.find("\"e\": \"call\"") == std::string::npos)
    by_process[word_after(record, "\"p\": ", ",")] += word_after(record, "\"out\": ", ", \"t\": ");
  history += record + "\n";
}

void play(const std::string& text) {
  std::istringstream in(text);
  const twin::Network net(in);
  twin::Near<weft::Shared> near(net);
  twin::Play<twin::Near<weft::Shared>>(net, near).run();
}

void search(const std::string& text, weft::checking::Strategy& strategy, bool any_time,
            bool advances, unsigned most) {
  weft::runtime::Checker checker;
  checker.telling = true;  // a run that is deadlocked says so in its history
  checker.run.settings.any_time = any_time;
  checker.run.settings.early = 1;
  std::set<std::map<std::string, std::string>> outcomes;
  unsigned runs = 0;
  const char* ended = "cut";
  bool cut = false;
  while (runs < most) {
    history.clear();
    by_process.clear();
    checker.begin(strategy);
    play(text);
    checker.end();
    const Stopped why = checker.run.why();
    if (why == Stopped::different) {
      ended = "different";
      break;
    }
    if (strategy.restarts(checker.run)) continue;
    ++runs;
    cut = cut || why == Stopped::limit || checker.run.too_large;
    if (why == Stopped::no && outcomes.insert(by_process).second)
      std::cout << history << "outcome\n";
    if (advances && !strategy.advance()) {
      if (!cut) ended = "complete";
      break;
    }
    if (auto* const walk = dynamic_cast<weft::checking::Walk*>(&strategy)) ++walk->seed;
    if (auto* const p = dynamic_cast<weft::checking::Priorities*>(&strategy)) ++p->seed;
  }
  std::cout << "done " << runs << " " << ended << std::endl;
}

void answer(const std::string& way, bool any_time, unsigned most, const std::string& text) {
  weft::checking::Bounded bounded;
  weft::checking::Reduced reduced;
  weft::checking::Walk walk;
  weft::checking::Priorities priorities;
  if (way == "few") bounded.bound = 2;
  if (way == "all" || way == "few")
    search(text, bounded, any_time, true, most);
  else if (way == "reduced")
    search(text, reduced, any_time, true, most);
  else if (way == "walk")
    search(text, walk, any_time, false, most);
  else if (way == "priorities")
    search(text, priorities, any_time, false, most);
  else
    throw std::invalid_argument("there is no search " + way);
}

}  // namespace

int main() {
  twin::listener = keep;
  std::string word, way, time, line;
  unsigned most = 0;
  try {
    while (std::cin >> word >> way >> time >> most) {
      std::getline(std::cin, line);
      std::string text;
      while (std::getline(std::cin, line) && line != ".") text += line + "\n";
      answer(way, time == "any", most, text);
    }
  } catch (const std::exception& e) {
    std::cerr << "checked_twin: " << e.what() << "\n";
    return 2;
  }
  return 0;
}
