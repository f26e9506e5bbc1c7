// bus_clients.hpp: two processes that send the requests of a table to a bus and put the answers
// back into the table (rule M26). drivers_buses.mjs writes the tables before main() and reads them
// at the end. i2c.cpp and spi.cpp include this.
#pragma once
#include "board.h"
#include "weft_mcu/csp.hpp"

namespace clients {

using namespace weft;
using namespace weft::mcu;

// The answers of a client, in their order: `done` is the microsecond, `busy` the time since the
// request was written.
template <class T>
struct Entry {
  T job;
  std::uint32_t done, took;
};
template <class T>
struct Table {
  std::uint32_t count, answered;
  Entry<T> entries[24];
};

constinit weft_queue events{};
constinit Arena<8192> frames{};
constinit Scheduler scheduler{&events, frames};

template <class T>
Process client(Scheduler&, Table<T>* table, Writer<T> ask, Reader<T> answer) {
  for (std::uint32_t i = 0; i < table->count; ++i) {
    Entry<T>& e = table->entries[i];
    e.took = weft_now32();
    if (co_await ask.write(e.job) != Status::ok) co_return;
    if (co_await answer.read(e.job) != Status::ok) co_return;
    e.done = weft_now32();
    e.took = e.done - e.took;
    table->answered = i + 1;
  }
}

std::uint32_t serving_frame = 0;  // bytes of the frame of a process that serves

// Writes a request and ends. The process poisons its channels if `poison` is true; otherwise its
// ends retire.
template <class T>
Process leaver(Scheduler&, Table<T>* table, std::uint32_t poison, Writer<T> ask, Reader<T> answer) {
  const Status s = co_await ask.write(table->entries[0].job);
  if (s == Status::ok && poison) {
    ask.poison();
    answer.poison();
  }
}

// Starts two processes that leave, with the first request of the first client.
template <class Bus, class T>
int leave(Bus& bus, Channel<T> (&ask)[2], Channel<T> (&answer)[2], Table<T>& table) {
  int failed = 0;
  for (unsigned i = 0; i < 2; ++i) {
    failed |= bus.connect(ask[i].reader(), answer[i].writer());
    failed |= scheduler.start(leaver(scheduler, &table, i, ask[i].writer(),
                                     answer[i].reader()));
  }
  return failed;
}

// Connects both clients to the bus, and serves until they have ended.
template <class Bus, class T>
int serve(Bus& bus, Channel<T> (&ask)[2], Channel<T> (&answer)[2], Table<T> (&tables)[2]) {
  int failed = 0;
  for (unsigned i = 0; i < 2; ++i) {
    failed |= bus.connect(ask[i].reader(), answer[i].writer());
    serving_frame = scheduler.last_frame();
    failed |= scheduler.start(client(scheduler, &tables[i], ask[i].writer(), answer[i].reader()));
  }
  if (failed == WEFT_OK) scheduler.run();
  return failed;
}

}  // namespace clients
