// Reports the progress of tests to their runner (tools/progress.py) by lines `begin NAME` and `end
// P F NAME` at the end of the file that $WEFT_PROGRESS names; without it nothing is written. If
// doctest is included before this header, there is also a listener that reports each test case.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

namespace weft::progress {

inline void say(std::string line) {
  static const char* const path = std::getenv("WEFT_PROGRESS");
  if (!path) return;
  for (char& c : line)
    if (c == '\n') c = ' ';
  line += '\n';
  if (std::FILE* f = std::fopen(path, "a")) {
    // A single write keeps lines whole even if other programs write too.
    std::fwrite(line.data(), 1, line.size(), f);
    std::fclose(f);
  }
}
// Reports that a test is under way. Another call for the same test reports that the test still
// makes progress.
inline void begin(const std::string& name) { say("begin " + name); }
enum Verdict { passed, failed, neither };
inline void end(const std::string& name, Verdict v) {
  say((v == passed ? "end 1 0 " : v == failed ? "end 0 1 " : "end 0 0 ") + name);
}

}  // namespace weft::progress

#ifdef DOCTEST_LIBRARY_INCLUDED
namespace weft::progress {
struct Listener : doctest::IReporter {
  std::string name;
  explicit Listener(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData& t) override {
    progress::begin(name = t.m_name);
  }
  // Called for the next subcase.
  void test_case_reenter(const doctest::TestCaseData&) override { progress::begin(name); }
  void test_case_end(const doctest::CurrentTestCaseStats& s) override {
    progress::end(name, s.testCaseSuccess ? passed : failed);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("progress", 1, Listener);
}  // namespace weft::progress
#endif
