// The workers of native_thesis.py.
#include <weft/component.hpp>

#include "../cpp/thesis_work.hpp"

using namespace weft::native;
using thesis::Number;
using Signed = std::int64_t;  // the type that a channel carries; its bits are those of the unsigned
                              // number

namespace {

// The worker writes first, and ends when its channel of numbers retires.
void worker(Reader<Signed> numbers, Writer<Signed> values, std::string workload) {
  const thesis::Work work = thesis::work_of(workload);
  values.write(0);
  for (const Signed n : numbers) values.write(static_cast<Signed>(work(static_cast<Number>(n))));
}
void worker_in_blocks(Reader<std::vector<Signed>> numbers, Writer<std::vector<Signed>> values,
                      std::string workload) {
  const thesis::Work work = thesis::work_of(workload);
  values.write({});
  for (std::vector<Signed> block : numbers) {
    for (Signed& n : block) n = static_cast<Signed>(work(static_cast<Number>(n)));
    values.write(block);
  }
}

}  // namespace

WEFT_COMPONENT(native_thesis, "The workloads of the thesis on compiled components.") {
  component.process<&worker>("worker").argument("numbers").argument("values").argument("workload");
  component.process<&worker_in_blocks>("worker_in_blocks")
      .argument("numbers")
      .argument("values")
      .argument("workload");
}
