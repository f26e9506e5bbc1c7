// starts: counts in the flash how often the program was started, and prints the number
// (mcu/DRIVERS.md). The count survives resets and power cuts.
#include "board.h"
#include "weft_mcu/csp.hpp"
#include "weft_mcu/drivers/flash_store.hpp"

using namespace weft;
using namespace weft::mcu;

using Store = FlashStore<32>;

namespace {
constinit weft_queue events{};
constinit Arena<1024> frames{};
constinit Scheduler scheduler{&events, frames};
constinit Store store{scheduler, {.origin = 0x1f0000, .sectors = 16}};  // the last 64 KB
constinit Channel<Store::Request> to_store, from_store;

Process counter(Scheduler&, Writer<Store::Request> ask, Reader<Store::Request> answer) {
  Store::Request r{.op = StoreOp::get, .status = {}, .count = 0, .key = "starts", .bytes = {0}};
  (void)co_await ask.write(r);
  (void)co_await answer.read(r);
  if (r.status == StoreStatus::absent) r.bytes[0] = 0;  // the first start of all
  ++r.bytes[0];
  r.op = StoreOp::set;
  r.count = 1;
  (void)co_await ask.write(r);
  (void)co_await answer.read(r);
  uart_puts(r.status == StoreStatus::ok ? "start " : "not kept: start ");
  uart_put_u32(r.bytes[0]);
  uart_puts("\r\n");
}
}  // namespace

int main() {
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
  if (store.start() != WEFT_OK || store.connect(to_store.reader(), from_store.writer()) != WEFT_OK)
    uart_puts("no store\r\n");
  (void)scheduler.start(counter(scheduler, to_store.writer(), from_store.reader()));
  scheduler.run();
  return 0;
}
