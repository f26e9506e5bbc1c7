// The ends that processes hold until they end (rule 2.3): the process object lists the ends that
// the process was given, and this file lists the ends that it received as values (rule 2.4).
//
//   channel ──carry_ends(): an end is about to be written to it──► its reads examine their values
//   end under way ──taken by a process: note_received()──► received ──the process ends──► closed, unless it was sent on, given to a
//                                                             │        process or returned
//                                                             └──collected──► retired, as any (rule 2.2)
//
// Only reads of a channel that carries ends examine their values: each read checks the channel when
// it has received its value (taken_from).
//
// Invariants
//  1 An end has a receipt if and only if `received` is set; a process is in `first` if and only if
//    `receives` is set, which it is from the first receipt on.
//  2 A receipt refers to its end and its process, and keeps neither alive: the one that is
//    destroyed first removes the receipt.
//  3 This file does not handle an end inside another object; such an end is released when that
//    object is.
#include "channels/held.hpp"

#include <algorithm>
#include <unordered_map>

#include "channels/ends.hpp"
#include "channels/marks.hpp"
#include "checking/points.hpp"
#include "interpreter/end_errors.hpp"
#include "processes/function.hpp"
#include "processes/process.hpp"
#include "watching/stopped_early.hpp"
#include "wire/values.hpp"

namespace weft::py {

namespace {

struct Receipt {
  EndObject* end;
  ProcessObject* by;
  Receipt* next;  // the next receipt of the same process, in the order of arrival
  Receipt* before;
};
struct Line {
  Receipt* front = nullptr;
  Receipt* back = nullptr;
};
std::unordered_map<EndObject*, Receipt> receipts;
std::unordered_map<ProcessObject*, Line> first;

void drop(EndObject* e) noexcept {
  const auto at = receipts.find(e);
  const Receipt& r = at->second;
  const auto line = first.find(r.by);
  (r.before ? r.before->next : line->second.front) = r.next;
  (r.next ? r.next->before : line->second.back) = r.before;
  e->received = false;
  receipts.erase(at);
}

// Returns whether only the process that received the end still holds it.
bool is_held(const EndObject* e) noexcept {
  return e->state == EndState::open && e->holders == 0 && of_this_fork(e->channel);
}

void poison_received(ProcessObject* p, std::uint8_t strength) noexcept {
  for (const Receipt* r = first.find(p)->second.front; r; r = r->next)
    if (is_held(r->end)) r->end->channel->core.poison(strength);
}

// Closes the ends that the process received. `result` is the process's result, or null; ends in the
// result stay open.
void let_go_of_received(ProcessObject* p, PyObject* result) noexcept {
  Ends returned;
  if (result) {
    const SavedException kept;
    // An exception that an iterator of the program raises here does not end the process.
    collect_ends(result, returned);
  }
  const Line& line = first.find(p)->second;
  while (line.front) {
    const Owned held = new_ref(line.front->end);
    EndObject* const e = held.get();
    drop(e);
    if (is_held(e) &&
        std::none_of(returned.begin(), returned.end(), [e](const auto& one) { return one == e; }))
      close_end(e, EndState::let_go);
  }
  p->receives = 0;
  first.erase(p);
}

}  // namespace

void carry_ends(ChannelObject* c) noexcept { c->generation |= kCarries; }

static void note_received(PyObject* value) noexcept {
  if (!is_end(value)) return;
  ProcessObject* const p = process_object(this_process());
  auto* e = reinterpret_cast<EndObject*>(value);
  if (!p || p->done || e->received || !is_held(e)) return;
  Line& line = first[p];
  Receipt& r = receipts[e];
  r = {e, p, nullptr, line.back};
  (line.back ? line.back->next : line.front) = &r;
  line.back = &r;
  e->received = true;
  p->receives = 1;
}

PyObject* received(const ChannelObject* c, PyObject* value) {
  if (!(value = unpack(c, value)))  // the value is unpacked even if the channel is being wired now
    only_failed(const_cast<ChannelObject*>(c), "read", "rebuilt here");
  if (value) note_received(value);
  return value;
}

void forget_received(EndObject* e) noexcept { drop(e); }

std::vector<const EndObject*> received_by(const ProcessObject* p) {
  std::vector<const EndObject*> ends;
  if (!p->receives) return ends;
  for (const Receipt* r = first.find(const_cast<ProcessObject*>(p))->second.front; r; r = r->next)
    if (is_held(r->end)) ends.push_back(r->end);
  return ends;
}

void let_go(ProcessObject* p) noexcept {
  const Py_ssize_t n = Py_SIZE(p);
  Py_SET_SIZE(p, 0);
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Owned held(p->held[i]);
    EndObject* const e = held.get();
    if (--e->holders == 0) {
      std::uint8_t& returned = e->channel->readers_returned;
      const std::uint8_t before = returned;
      close_end(e, EndState::let_go);
      if (p->how == Ending::returned && before < kOtherwise - 1 && e->state == EndState::let_go &&
          is_reader(reinterpret_cast<PyObject*>(e)))
        returned = static_cast<std::uint8_t>(before + 1);
    }
  }
  if (p->receives) [[unlikely]]
    let_go_of_received(p, p->how == Ending::returned ? p->outcome : nullptr);
}

void poison_held(ProcessObject* p, PyObject* poisoned) noexcept {
  const Owned s(PyObject_GetAttrString(poisoned, "strength"));
  const long given = s ? PyLong_AsLong(s.get()) : 1;
  PyErr_Clear();
  const auto strength = static_cast<std::uint8_t>(given < 1 ? 1 : given > 255 ? 255 : given);
  for (Py_ssize_t i = 0; i < Py_SIZE(p); ++i)
    if (p->held[i]->state == EndState::open && of_this_fork(p->held[i]->channel)) {
      if (checking) [[unlikely]]
        checking->touches(place_at(p->held[i]->channel->core), Access::all);
      p->held[i]->channel->core.poison(strength);
    }
  if (p->receives) poison_received(p, strength);
}

}  // namespace weft::py
