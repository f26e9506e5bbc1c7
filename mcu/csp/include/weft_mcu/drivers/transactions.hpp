// weft_mcu/drivers/transactions.hpp: the common part of the drivers of buses. Each user of a bus
// has a pair of channels, and the requests of all pairs take turns on the bus (mcu/DRIVERS.md, rule
// M26).
//
// A request is a value that goes to the driver and comes back as the answer. Each pair of channels
// has a process of its own, serve(). These are the states of that process:
//
//   READ ──the request is well formed──► TURN ──the bus is free──► ON THE BUS
//     ▲ └──it is not: bad_request────────────────┐              over() │  │ `within` is up: abandon()
//     └───────────────the answer is written──────┴─────────────────────┘──┘
//
// Invariants
//  1 `busy_` is true while a process is ON THE BUS. `waiting_` is the number of processes in TURN.
//  They wait at turn_ in the order in which they arrived. The process that leaves the bus gives the
//  bus to the first of them.
//  2 A process that is ON THE BUS waits for the number of its transaction. An interrupt that came
//  after the time limit has posted an older number, which the process reads and ignores. At most
//  one older number waits in the port, so the port has room for two.
//  3 The interrupt touches a request only while its process is ON THE BUS.
#pragma once
#include <utility>

#include "board.h"
#include "weft_mcu/csp_port.hpp"

namespace weft::inline WEFT_ABI::mcu {

// The outcome of a request.
enum class BusStatus : std::uint8_t {
  ok,
  no_address,   // I²C: no part has acknowledged the address
  no_data,      // I²C: the part has refused a byte
  lost_bus,     // I²C: another master has won the bus
  timed_out,    // the transaction did not end in time, and was given up
  bad_request,  // the driver cannot carry out such a request; nothing was done
};

// The common part of a driver. Bus is the driver, which has check(T), begin(T&), result() and
// abandon(). T is the request, with the members `status` and `within`.
template <class Bus, class T>
class Transactions {
 public:
  Transactions(const Transactions&) = delete;
  Transactions& operator=(const Transactions&) = delete;

  // Starts a process that serves a pair of channels: for each request that it reads, it writes the
  // answer. The process ends when the requests have retired, or the answers have no readers. May
  // be called several times, from main or a process, after start(). Returns WEFT_OK; WEFT_E_ARENA
  // if the process finds no room in the arena (then both ends are dropped); or WEFT_E_DRIVER if it
  // is called before start().
  int connect(Reader<T> requests, Writer<T> answers) noexcept {
    if (!started_)
      return WEFT_MISTAKE(WEFT_E_DRIVER,
                          "a bus is connected before it is started; start() it first");
    return scheduler_->start(serve(*scheduler_, this, std::move(requests), std::move(answers),
                                   turn_.reader(), turn_.writer(), over_.reader()));
  }

 protected:
  constexpr explicit Transactions(Scheduler& s) noexcept : port_(s), scheduler_(&s) {}

  // Makes the bus ready for connect(). The driver calls this in start(). Returns WEFT_OK at the
  // first call, WEFT_E_DRIVER at any other.
  int open() noexcept {
    if (started_)
      return WEFT_MISTAKE(WEFT_E_DRIVER, "a bus is started twice; start() it once");
    started_ = true;
    // The channels must outlive the processes that serve, so the driver keeps an end of each.
    (void)turn_.reader().release();
    (void)turn_.writer().release();
    (void)over_.reader().release();
    port_.connect(over_.writer());
    return WEFT_OK;
  }
  // Notifies the process that is on the bus that its transaction has ended. For the interrupt.
  void over() noexcept { (void)port_.post_value(number_); }

 private:
  static Process serve(Scheduler&, Transactions* t, Reader<T> in, Writer<T> out,
                       Reader<std::uint8_t> turn, Writer<std::uint8_t> hand_on,
                       Reader<std::uint32_t> over) noexcept {
    Bus* const bus = static_cast<Bus*>(t);
    T job;
    std::uint32_t number = 0, until;
    std::uint8_t token = 0;
    Status s;
    while (co_await in.read(job) == Status::ok) {
      job.status = bus->check(job);
      if (job.status == BusStatus::ok) {
        if (t->busy_) {
          ++t->waiting_;
          (void)co_await turn.read(token);
        }
        t->busy_ = true;
        until = weft_now32() + job.within;
        bus->begin(job);
        do s = co_await over.read_until(number, until);
        while (s == Status::ok && number != t->number_);
        if (s == Status::ok)
          job.status = bus->result();
        else
          bus->abandon(), job.status = BusStatus::timed_out;
        ++t->number_;
        if (t->waiting_ != 0) {
          --t->waiting_;
          (void)co_await hand_on.write(token);  // a process waits to read this
        } else {
          t->busy_ = false;
        }
      }
      if (co_await out.write(job) != Status::ok) co_return;
    }
  }

  Port<std::uint32_t, 2> port_;
  Channel<std::uint32_t> over_;
  Channel<std::uint8_t> turn_;
  Scheduler* scheduler_;
  std::uint32_t number_ = 0, waiting_ = 0;
  bool busy_ = false, started_ = false;
};

}  // namespace weft::mcu
