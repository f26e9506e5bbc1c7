// The program of a board whose processes a Python program starts (rule 21.10;
// weft_mcu/csp_board.hpp). The PC writes weft_board_entries, the table of the processes in the
// sources, when it builds the firmware (python/src/weft/_boards/firmware.py).
//
//   an order of the PC, at the end "do"               the board's answer, at the end "news<k>"
//   ["start", n, entry, k, channels, parameters]      one message, when the process has ended
//   ["cancel", n]
//   ["drop", ends]
//
//   channels     those that are the board's own and are new: [number, capacity, overflow, immunity,
//                readers, writers]
//   parameters   values; and ends: [slot, number], with the slot of an end that the PC has handed
//                out, "r<slot>" or "w<slot>", or -1 and the number of a channel of the board
//   ends         [slot, number, writes]
//   a message    ["ended"], ["cancelled"], ["end", kind, strength, file, line], ["failed", kind,
//                why, needs, has], or ["stuck", [n, slot, number, writes, file, line], …]
//
// A call's message is sent once the PC has the retirement of each end that the call had. So the PC
// can then use the slots of these ends again.
#include <weft/anywhere.hpp>

extern "C" const weft::board::Entry* const weft_board_entries[];
extern "C" const std::uint32_t weft_board_count;

namespace weft::inline WEFT_ABI::board {

using mcu::Pc;

namespace {

constexpr std::uint32_t kFrameBytes = 98304, kBufferBytes = 24576;
constexpr std::uint32_t kSoon = 2000;  // us after which the board checks what has ended

constinit weft_queue events{};
constinit mcu::Arena<kFrameBytes> frames{};
alignas(8) constinit unsigned char lines[kLines][kLineBytes] = {};
alignas(8) constinit unsigned char buffers[kBufferBytes] = {};
constinit std::uint32_t buffered = 0;
constinit Call calls[kCalls] = {};
constinit Call* being_made = nullptr;
constinit Wrong found{};
constinit weft_event again{};
constinit bool again_posted = false;

// The ends of the link: "do", a message end for each call, and the ends of channels by slot.
constexpr unsigned kNews = 1, kReaders = kNews + kCalls, kWriters = kReaders + kFarEnds;
constinit char names[kWriters + kFarEnds][8] = {};
constinit weft_link_end ends[kWriters + kFarEnds] = {};
constinit std::uint8_t room[2048] = {};
constinit weft_link session = mcu::make_link(ends, room, "weft board");

struct Message : weft_link_op {
  weft_link_guard guard;
  Call* call;
  std::uint8_t bytes[320];
};
constinit Message messages[kCalls] = {};
struct Orders : weft_link_op {
  weft_link_guard guard;
  std::uint8_t bytes[768];
};
constinit Orders orders{};

Line& line_at(unsigned i) noexcept { return *reinterpret_cast<Line*>(lines[i]); }
Line* line_of(const core::SyncObject* channel) noexcept {
  return channel && channel->name ? reinterpret_cast<Line*>(const_cast<char*>(channel->name))
                                  : nullptr;
}
weft_link_end& end_at(std::int64_t slot, bool writer) noexcept {
  return ends[(writer ? kWriters : kReaders) + slot];
}

}  // namespace

constinit mcu::Scheduler scheduler{&events, frames};
namespace {
constinit Pc pc{scheduler, session};
void soon() noexcept;
}  // namespace

// --- what lines need -----------------------------------------------------------------------------

namespace {
void push(core::Node* n) noexcept { scheduler.push(n); }
void run(core::Node* n) {
  Line& line = *static_cast<Party*>(n)->line;
  line.queued = false;
  if (line.state != Line::free && line.ops) line.ops->look(line);
}
}  // namespace
constinit core::WakerOps parties{&push, &run, nullptr, 0};  // main() sets the run queue

bool offer(weft_link_op& op) noexcept { return pc.offer(op); }
void withdraw(weft_link_op& op) noexcept {
  weft_link_withdraw(&session, &op);
  pc.kick();
}
void poison(weft_link_end& end, std::uint8_t strength) noexcept { pc.poison(end, strength); }
void look_later(Line& line) noexcept {
  if (std::exchange(line.queued, true)) return;
  scheduler.push(&line.task);
}
void closed(Line& line) noexcept {
  pc.retire(*line.end);
  soon();
}
void* room_for(std::uint32_t bytes) noexcept {
  bytes = (bytes + 7) & ~7u;
  if (bytes > kBufferBytes - buffered)
    return wrong("MemoryError", "its buffer", bytes, kBufferBytes - buffered), nullptr;
  void* const at = buffers + buffered;
  buffered += bytes;
  return at;
}
void wrong(const char* kind, const char* why, std::uint32_t needs, std::uint32_t has) noexcept {
  if (!found.kind) found = {kind, why, needs, has};
}
bool is_wrong() noexcept { return found.kind != nullptr; }
void made(Call& call) noexcept { being_made = &call; }
Call* making() noexcept { return std::exchange(being_made, nullptr); }

// --- what processes tell -------------------------------------------------------------------------

void waits(detail::PlacedPromise&, core::SyncObject* place) noexcept {
  if (Line* const line = line_of(place)) line->end ? look_later(*line) : soon();
}
void changed(core::SyncObject* channel) noexcept {
  if (Line* const line = line_of(channel)) line->end ? look_later(*line) : soon();
}
void dies(detail::PlacedPromise& p) noexcept {
  if (!p.call) return;
  p.call->how = p.status;
  p.call->at = p.at;
  if (p.status == Status::poisoned)
    p.call->strength =
        static_cast<core::ChannelBase<mcu::OneCore>*>(static_cast<core::SyncObject*>(p.place))
            ->poison_strength();
}
void over(detail::PlacedPromise& p) noexcept {
  if (!p.call) return;
  p.call->process = nullptr;
  p.call->state = Call::over;
  soon();
}

namespace {

// --- calls ---------------------------------------------------------------------------------------

// Calls f(line, writes) for each channel at which the process waits. Returns false if something
// else may wake the process.
template <class F>
bool each_wait(Call& call, F&& f) noexcept {
  detail::PlacedPromise* const p = call.process;
  if (!p || p->sleep) return false;
  bool only = true;
  if (p->selects) {
    static_cast<detail::PlacedChoice*>(p->place)->each([&](core::Guard& g) {
      Line* const line = g.kind <= core::Kind::output ? line_of(g.where) : nullptr;
      if (line)
        f(*line, g.kind == core::Kind::output);
      else
        only = false;
    });
    return only;
  }
  Line* const line = line_of(static_cast<core::SyncObject*>(p->place));
  if (!line || line->state == Line::free || line->channel != p->place) return false;
  auto* const channel = static_cast<core::ChannelBase<mcu::OneCore>*>(line->channel);
  if (!channel->is_waiting(*p)) return false;
  bool writes = false;
  channel->with_lock([&](core::Queue&, core::Queue& writers) {
    for (core::Link* l = writers.front(); l; l = l->next) writes |= l == static_cast<core::Link*>(p);
  });
  f(*line, writes);
  return true;
}
// Asks a process to end.
void cancel(Call& call) noexcept {
  detail::PlacedPromise* const p = call.process;
  if (!p || call.state != Call::runs) return;
  p->asked = true;
  if (p->selects) {
    (void)static_cast<detail::PlacedChoice*>(p->place)->cancel(*p);
    return;
  }
  if (p->sleep) {
    (void)p->sleep->cancel(*p);
    return;
  }
  (void)each_wait(call, [&](Line& line, bool writes) {
    if (!line.ops->withdraw(line, *p, writes)) return;
    (void)p->cancelled();
    look_later(line);
  });
}

void put_text(weft_cbor& w, const char* text) noexcept {
  std::size_t n = 0;
  while (text && text[n]) ++n;
  weft_cbor_text(&w, text ? text : "", n);
}
// Writes the file's name without its folder.
void put_file(weft_cbor& w, const char* file) noexcept {
  const char* name = file;
  for (const char* c = file; c && *c; ++c)
    if (*c == '/') name = c + 1;
  put_text(w, name);
}
void put_place(weft_cbor& w, const Call& call, At at) noexcept {
  put_file(w, at.file ? at.file : call.entry->file);
  weft_cbor_uint(&w, at.file ? at.line : call.entry->line);
}

// --- knots (rule 21.8) ---------------------------------------------------------------------------

// Returns whether a process outside the set, or the PC, may go on at the channel's other side.
bool may_come(const Line& line, bool writes, std::uint32_t set) noexcept {
  if (line.end || (writes ? line.readers : line.writers) > 0) return true;
  for (unsigned i = 0; i < kCalls; ++i) {
    if (calls[i].state != Call::runs || set >> i & 1) continue;
    for (unsigned k = 0; k < calls[i].holds; ++k)
      if (calls[i].held[k].line == &line && calls[i].held[k].writes != writes) return true;
  }
  return false;
}
// Returns the calls whose processes can never go on, as bits: the greatest set of processes that
// wait only for processes of the set.
std::uint32_t knot() noexcept {
  std::uint32_t set = 0;
  for (unsigned i = 0; i < kCalls; ++i)
    if (calls[i].state == Call::runs) set |= 1u << i;
  for (std::uint32_t before = 0; before != set;) {
    before = set;
    for (unsigned i = 0; i < kCalls; ++i) {
      if (!(set >> i & 1)) continue;
      bool comes = false;
      const bool only = each_wait(
          calls[i], [&](Line& line, bool writes) { comes |= may_come(line, writes, set); });
      if (!only || comes) set &= ~(1u << i);
    }
  }
  return set;
}
void tell_knot() noexcept {
  const std::uint32_t set = knot();
  if (!set) return;
  for (unsigned i = 0; i < kCalls; ++i) {
    if (!(set >> i & 1)) continue;
    Message& m = messages[calls[i].news];
    weft_cbor w = weft_cbor_writer(m.bytes, sizeof m.bytes);
    std::uint32_t n = 0;
    for (unsigned k = 0; k < kCalls; ++k) n += set >> k & 1;
    weft_cbor_array(&w, n + 1);
    put_text(w, "stuck");
    for (unsigned k = 0; k < kCalls; ++k) {
      if (!(set >> k & 1)) continue;
      weft_cbor_array(&w, 5);
      weft_cbor_uint(&w, calls[k].number);
      std::uint64_t number = 0;
      bool writes = false;
      (void)each_wait(calls[k], [&](Line& line, bool out) { number = line.number, writes = out; });
      weft_cbor_uint(&w, number);
      weft_cbor_bool(&w, writes);
      put_place(w, calls[k], calls[k].process->selects ? At{} : calls[k].process->at);
    }
    if (w.bad) {  // There is no room for the whole knot.
      w = weft_cbor_writer(m.bytes, sizeof m.bytes);
      weft_cbor_array(&w, 1);
      put_text(w, "stuck");
    }
    m.guard.length = static_cast<std::uint16_t>(w.at - m.bytes);
    calls[i].stuck = true;
  }
  for (unsigned i = 0; i < kCalls; ++i)
    if (set >> i & 1) cancel(calls[i]);
}

// --- the end of a call ---------------------------------------------------------------------------

void put_end(weft_cbor& w, const Call& call) noexcept {
  const char* const kind = call.how == Status::retired    ? "Retired"
                           : call.how == Status::poisoned ? "Poisoned"
                                                          : "PeerDied";
  weft_cbor_array(&w, 5);
  put_text(w, "end");
  put_text(w, kind);
  weft_cbor_uint(&w, call.strength);
  put_place(w, call, call.at);
}
void was_told(weft_link_op* op) noexcept {
  Message& m = *static_cast<Message*>(op);
  *m.call = Call{};
  pc.retire(*m.guard.end);
  soon();
}
void tell(Call& call) noexcept {
  Message& m = messages[call.news];
  if (!call.stuck) {
    weft_cbor w = weft_cbor_writer(m.bytes, sizeof m.bytes);
    if (call.wrong.kind) {
      weft_cbor_array(&w, 5);
      put_text(w, "failed");
      put_text(w, call.wrong.kind);
      put_text(w, call.wrong.why);
      weft_cbor_uint(&w, call.wrong.needs);
      weft_cbor_uint(&w, call.wrong.has);
    } else if (call.how == Status::ok || call.how == Status::cancelled) {
      weft_cbor_array(&w, 1);
      put_text(w, call.how == Status::ok ? "ended" : "cancelled");
    } else {
      put_end(w, call);
    }
    m.guard.length = static_cast<std::uint16_t>(w.at - m.bytes);
  }
  m.call = &call;
  m.guards = &m.guard;
  m.count = 1;
  m.guard.end = &ends[kNews + call.news];
  m.guard.value = m.bytes;
  m.over = &was_told;
  call.state = Call::told;
  if (!pc.offer(m)) was_told(&m);
}

// Returns whether the PC has the retirement of an end that it has handed out, or will receive it
// before anything that is sent from now on. True if the session has ended.
bool is_given_up(const weft_link_end& end) noexcept {
  return session.why || (end.state == 2 && !end.owes);
}
// Makes the end new, so that the PC may hand it out again.
void renew(weft_link_end& end) noexcept {
  if (!session.why) end = {end.name, end.writes, 0, 0, 0, 0, false, 0};
}
// Returns whether the line is no longer used.
bool is_done(Line& line) noexcept {
  if (line.state == Line::free || line.readers || line.writers) return false;
  if (line.ops && line.ops->ends(line) > 0) return false;
  if (!line.end) return true;
  if (line.ops && line.state != Line::closed) return false;
  return is_given_up(*line.end);
}

// Frees the lines that are no longer used, and reports the calls that have ended to the PC.
void sweep() noexcept {
  bool more = false, buffers_used = false;
  for (unsigned i = 0; i < kLines; ++i) {
    Line& line = line_at(i);
    if (is_done(line)) {
      if (line.end) {
        renew(*line.end);
        if (line.call) --line.call->far;
      }
      ::new (lines[i]) Line;
    }
    more |= line.state != Line::free && line.state == Line::closed;
    buffers_used |= line.state != Line::free && line.capacity;
  }
  if (!buffers_used) buffered = 0;
  for (unsigned i = kNews; i < kReaders; ++i) {
    if (ends[i].state < 2) continue;
    if (is_given_up(ends[i]))
      renew(ends[i]);
    else
      more = true;
  }
  for (Call& call : calls) {
    if (call.state != Call::over) continue;
    if (call.far == 0)
      tell(call);
    else
      more = true;
  }
  tell_knot();
  if (more) soon();
}
std::uint32_t on_again(weft_event*, std::uint32_t) noexcept {
  again_posted = false;
  sweep();
  scheduler.run_runnable();
  return WEFT_DONE;
}
void soon() noexcept {
  if (std::exchange(again_posted, true)) return;
  weft_post_as(&events, &again, weft_now32() + kSoon, WEFT_KEEP);
}

// --- orders --------------------------------------------------------------------------------------

Line* free_line() noexcept {
  for (unsigned i = 0; i < kLines; ++i)
    if (line_at(i).state == Line::free) return &line_at(i);
  wrong("MemoryError", "the board has no more channels", 0, 0);
  return nullptr;
}
Line* own_line(std::uint64_t number) noexcept {
  for (unsigned i = 0; i < kLines; ++i)
    if (line_at(i).state != Line::free && !line_at(i).end && line_at(i).number == number)
      return &line_at(i);
  return nullptr;
}
std::uint64_t read_uint(weft_cbor& r) noexcept {
  const weft_cbor_item i = weft_cbor_next(&r);
  r.bad |= i.kind != WEFT_CBOR_UINT;
  return i.n;
}
std::uint64_t read_array(weft_cbor& r) noexcept {
  const weft_cbor_item i = weft_cbor_next(&r);
  r.bad |= i.kind != WEFT_CBOR_ARRAY;
  return r.bad ? 0 : i.n;
}
void describe(weft_cbor& r) noexcept {
  (void)read_array(r);
  Line* const line = free_line();
  Line described;
  described.number = read_uint(r);
  described.capacity = static_cast<std::uint32_t>(read_uint(r));
  described.overflow = static_cast<std::uint8_t>(read_uint(r));
  described.immunity = static_cast<std::uint8_t>(read_uint(r));
  described.readers = static_cast<std::uint8_t>(read_uint(r));
  described.writers = static_cast<std::uint8_t>(read_uint(r));
  described.state = Line::idle;
  if (line && !r.bad) *line = described;
}
void drop(Line& line, bool writer) noexcept {
  --(writer ? line.writers : line.readers);
  if (line.ops) line.ops->drop(line, writer);
  soon();
}
// Gives up an end that the PC has handed out, or will hand out, and that no process will use.
void drop_far(std::int64_t slot, bool writer) noexcept {
  if (slot >= kFarEnds) return;
  if (Line* const line = free_line()) {
    line->state = Line::closed;
    line->end = &end_at(slot, writer);
    pc.retire(*line->end);
    soon();
  }
}
void start(weft_cbor& r) noexcept {
  Call* call = nullptr;
  const auto number = static_cast<std::uint32_t>(read_uint(r));
  const std::uint64_t entry = read_uint(r);
  const std::uint64_t news = read_uint(r);
  for (Call& c : calls)
    if (c.state == Call::free) call = &c;
  for (std::uint64_t n = read_array(r); n > 0; --n) describe(r);
  const std::uint64_t parameters = read_array(r);
  if (r.bad || !call || entry >= weft_board_count || news >= kCalls ||
      parameters != weft_board_entries[entry]->parameters)
    return pc.close("an order that this firmware does not know");
  call->state = Call::runs;
  call->number = number;
  call->news = static_cast<std::uint8_t>(news);
  call->entry = weft_board_entries[entry];
  call->entry->start(*call, r);
  if (!is_wrong()) return;
  if (call->wrong.kind == nullptr) call->wrong = std::exchange(found, Wrong{});
  if (call->wrong.needs && !call->wrong.has) call->wrong.has = kFrameBytes;
  call->state = Call::over;
  soon();
}

void obey() noexcept {
  weft_cbor r = weft_cbor_reader(orders.bytes, orders.length);
  (void)read_array(r);
  const weft_cbor_item what = weft_cbor_next(&r);
  const char first = what.kind == WEFT_CBOR_TEXT && what.n ? static_cast<char>(*what.bytes) : '?';
  if (first == 's') {
    start(r);
  } else if (first == 'c') {
    const std::uint64_t n = read_uint(r);
    for (Call& call : calls)
      if (call.state == Call::runs && call.number == n) cancel(call);
  } else if (first == 'd') {
    for (std::uint64_t n = read_array(r); n > 0 && !r.bad; --n) {
      (void)read_array(r);
      const std::int64_t slot = weft_cbor_read_int(&r);
      const std::uint64_t number = read_uint(r);
      const bool writer = weft_cbor_read_bool(&r);
      if (r.bad) break;
      if (slot >= 0)
        drop_far(slot, writer);
      else if (Line* const line = own_line(number))
        drop(*line, writer);
    }
  } else {
    pc.close("an order that this firmware does not know");
  }
}
void await_order() noexcept;
void ordered(weft_link_op* op) {
  found = {};
  if (op->status == WEFT_LINK_OK) {
    obey();
  } else {  // No orders come any more: no call waits for the processes.
    for (Call& call : calls) cancel(call);
    soon();
  }
  await_order();
}
void await_order() noexcept {
  orders.guards = &orders.guard;
  orders.count = 1;
  orders.guard.end = &ends[0];
  orders.into = orders.bytes;
  orders.room = sizeof orders.bytes;
  orders.over = &ordered;
  if (!pc.offer(orders)) pc.close("the PC has closed the end for its orders");
}

void name(unsigned i, const char* kind, unsigned n, bool writes) noexcept {
  char* at = names[i];
  while (*kind) *at++ = *kind++;
  if (n >= 10) *at++ = static_cast<char>('0' + n / 10);
  *at++ = static_cast<char>('0' + n % 10);
  ends[i].name = names[i];
  ends[i].writes = writes;
}

}  // namespace

// Finds the channel of the next end in the order, and gives the end to the call.
Line* find(Call& call, weft_cbor& order, bool writer, void*& storage) noexcept {
  (void)read_array(order);
  const std::int64_t slot = weft_cbor_read_int(&order);
  const std::uint64_t number = read_uint(order);
  if (order.bad || slot >= kFarEnds)
    return wrong("BadUse", "an argument is no end"), nullptr;
  if (call.holds == kHeld)
    return wrong("BadUse", "a process of a board holds at most 12 ends"), nullptr;
  Line* line = nullptr;
  if (slot >= 0) {
    line = free_line();
    if (!line) return nullptr;
    line->state = Line::idle;
    line->end = &end_at(slot, writer);
    line->number = static_cast<std::uint64_t>(slot);
    line->call = &call;
    ++call.far;
  } else {
    line = own_line(number);
    if (!line || !(writer ? line->writers : line->readers))
      return wrong("BadUse", "the board lacks a channel"), nullptr;
    // begin() sets the counts; from then on one end fewer waits for a process.
  }
  storage = line;
  call.held[call.holds++] = {line, writer};
  return line;
}
void given_to(Line& line, bool writer) noexcept {
  if (!line.end) --(writer ? line.writers : line.readers);
}
void refuse(Line& line, bool writer) noexcept {
  if (!line.end) return drop(line, writer);
  line.state = Line::closed;
  closed(line);
}
void bad_value(Line& line) noexcept {
  if (Call* const call = line.call) {
    if (!call->wrong.kind)
      call->wrong = {"BadUse", "a value that the PC has written is not of the type that the process reads",
                     0, 0};
    cancel(*call);
  }
  line.state = Line::idle;
  line.ops->drop(line, true);
  line.state = Line::closed;
  closed(line);
}

}  // namespace weft::inline WEFT_ABI::board

int main() {
  using namespace weft::board;
  for (unsigned i = 0; i < kLines; ++i) ::new (lines[i]) Line;
  name(0, "do", 0, false);
  names[0][2] = 0;
  for (unsigned i = 0; i < kCalls; ++i) name(kNews + i, "news", i, true);
  for (unsigned i = 0; i < kFarEnds; ++i) {
    name(kReaders + i, "r", i, false);
    name(kWriters + i, "w", i, true);
  }
  parties.home = scheduler.home;
  uart_init();
  weft_list_init(&events, WEFT_LOCAL);
  again = WEFT_EVENT(&on_again, scheduler.actor());
  session.lease = 20000;
  pc.start();
  await_order();
  weft_work(&events);
  return 0;
}
