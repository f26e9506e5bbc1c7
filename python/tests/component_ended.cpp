// A component that ends its thread, or throws something that is not UTF-8 (rules 7.14 and 16.1).
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <weft/component.hpp>
#include <weft/component_tasks.hpp>

using namespace weft::native;

namespace {

void ends(const std::string& how) {
  if (how == "exit") pthread_exit(nullptr);
  if (how == "cancel") {
    pthread_cancel(pthread_self());
    pthread_testcancel();
  }
  if (how == "bytes") throw std::runtime_error("no \xff\xfe text");
}
// Passes the first value on, and then ends in the way that `how` names.
void passes(Reader<std::int64_t> in, Writer<std::int64_t> out, std::string how) {
  out.write(in.read());
  ends(how);
}
tasks::Task<> passes_task(tasks::Reader<std::int64_t> in, tasks::Writer<std::int64_t> out,
                          std::string how) {
  co_await out.write(co_await in.read());
  ends(how);
}

}  // namespace

WEFT_COMPONENT(ended, "Ends its thread.") {
  component.process<&passes>("passes").argument("inp").argument("out").argument("how");
  component.process<&passes_task>("passes_task").argument("inp").argument("out").argument("how");
}
