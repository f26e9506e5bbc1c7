// How a run is recorded: what each of its steps follows, and what it touches (record.hpp).
#include "weft/check/record.hpp"

#include <algorithm>

namespace weft::checking {

namespace {
// The uids of places and of selects are mixed with these numbers.
constexpr Uid kPlaces = 1ull << 40, kSelects = 1ull << 41;

int taken(std::vector<int>& queue, std::size_t& next) noexcept {
  return next < queue.size() ? queue[next++] : kNone;
}
}  // namespace

Uid mixed(Uid a, Uid b) noexcept {
  Uid z = a * 0x9E3779B97F4A7C15ull + b + 0x632BE59BD9B4E019ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

void Record::begin() {
  count = places_count = 0;
  by_key_.clear();
  last_key_ = nullptr;
  by_uid_.clear();
  groups_.clear();
  groups_count_ = 0;
  events.clear();
  touch_pool_.clear();
  follow_pool_.clear();
  disarming.clear();
  woken_.clear();
  current = weakened_ = clock_ = kNone;
  running = 0;
  cancelled = timed = crowded = false;
  Process& main = at(new_process());
  main.uid = kMain;
  main.name = "main";
  step(0);
}

// --- processes and places ------------------------------------------------------------------------

int Record::new_process() {
  if (count == static_cast<int>(processes.size())) processes.emplace_back();
  at(count).begin_anew();
  return count++;
}

int Record::process(int by, std::string_view name) {
  const int n = new_process();
  Process& p = at(n);
  p.uid = mixed(at(by).uid, at(by).children++);
  p.parent = by;
  if (p.name != name) p.name = name;  // Usually the last run gave this number to the same process.
  // The process will soon be in the run queue. What its first step follows is known already.
  p.ready = true;
  if (kept) follow(n, current);
  return n;
}

int Record::new_place() {
  if (places_count == static_cast<int>(places.size())) places.emplace_back();
  Place& x = places[static_cast<std::size_t>(places_count)];
  x.capacity = 0;
  x.loses = false;
  for (std::vector<int>* v : {&x.values, &x.free, &x.closers, &x.joined, &x.joiners}) v->clear();
  x.parties = 0;
  x.next_value = x.next_free = 0;
  for (auto& side : x.selects) side.clear();
  x.touched.clear();
  x.touchers.clear();
  return places_count++;
}

int Record::place(const void* key, int by, int capacity, bool loses) {
  const int n = new_place();
  Place& x = places[static_cast<std::size_t>(n)];
  x.uid = mixed(at(by).uid, kPlaces + at(by).places++);
  x.capacity = capacity;
  x.loses = loses;
  by_key_.put(key, n);
  last_key_ = nullptr;  // perhaps another place had this key before
  return n;
}
int Record::looked_up(const void* key, int by) {
  last_place_ = by_key_.of(key);
  if (last_place_ == kNone) last_place_ = place(key, by, 0, false);
  last_key_ = key;
  return last_place_;
}
int Record::gone(const void* key) {
  const int n = by_key_.of(key);
  if (n != kNone) by_key_.erase(key);
  last_key_ = nullptr;
  return n;
}
int Record::place_by_uid(Uid uid) {
  int n = by_uid_.of(uid);
  if (n != kNone) return n;
  n = new_place();
  places[static_cast<std::size_t>(n)].uid = uid;
  by_uid_.put(uid, n);
  return n;
}

// Returns a path of the form that runtime/names.hpp uses: it has an index only where the parent has
// several children of that name.
std::string Record::path(int n) const {
  const Process& p = at(n);
  if (p.parent == kNone) return p.name;
  int same = 0;
  for (int i = 0; i < count; ++i) same += at(i).parent == p.parent && at(i).name == p.name;
  std::string all = path(p.parent) + "/" + p.name;
  if (same > 1) all += "[" + std::to_string(before(n)) + "]";
  return all;
}
// Returns how many children of the same name the parent had started before this process.
int Record::before(int n) const noexcept {
  int before = 0;
  for (int i = 0; i < n; ++i) before += at(i).parent == at(n).parent && at(i).name == at(n).name;
  return before;
}
bool Record::is(int n, std::string_view path) const {
  const Process& p = at(n);
  if (p.parent == kNone) return path == p.name;
  const auto ends_with = [&](const std::string& part) {
    return path.size() > part.size() && path.ends_with(part) &&
           path[path.size() - part.size() - 1] == '/' &&
           is(p.parent, path.substr(0, path.size() - part.size() - 1));
  };
  const int i = before(n);
  return ends_with(p.name + "[" + std::to_string(i) + "]") || (i == 0 && ends_with(p.name));
}

// --- steps --------------------------------------------------------------------------------------

void Record::keep_step(int n) {
  Process& p = at(n);
  Event& e = events.emplace_back();
  e.process = n;
  e.number = ++p.events;
  e.follows = static_cast<std::uint32_t>(follow_pool_.size());
  for (const int event : p.follows) follow_pool_.push_back(event);
  p.follows.clear();
  e.follows_end = static_cast<std::uint32_t>(follow_pool_.size());
  e.touches = e.touches_end = static_cast<std::uint32_t>(touch_pool_.size());
  e.previous = p.last;
  current = p.last = static_cast<int>(events.size()) - 1;
  if (cancels) touch_uid(kCancel, Access::look);
}

void Record::step_of_clock(bool alone) {
  if (clock_ == kNone) {
    clock_ = new_process();
    at(clock_).uid = kClock;
    at(clock_).name = "clock";
  }
  if (alone && kept)
    for (int i = 0; i < count; ++i)
      if (i != clock_) follow(clock_, at(i).last);
  step(clock_);
  touch_uid(kTime, Access::all);
  if (cancels) touch_uid(kCancel, Access::all);
}

void Record::touch(int place, Access how) {
  if (!kept || current == kNone) return;
  const Uid uid = places[static_cast<std::size_t>(place)].uid;
  for (Touch& t : touches(current))
    if (t.uid == uid) {
      if (t.how == how || how == Access::look) return;
      if (t.how == Access::look) {
        t.how = how;
        return;
      }
    }
  touch_pool_.push_back({uid, place, how});
  events[static_cast<std::size_t>(current)].touches_end =
      static_cast<std::uint32_t>(touch_pool_.size());
}
void Record::touch_uid(Uid uid, Access how) {
  if (kept) touch(place_by_uid(uid), how);
}

std::span<Touch> Record::touches(int event) noexcept {
  const Event& e = events[static_cast<std::size_t>(event)];
  return {touch_pool_.data() + e.touches, touch_pool_.data() + e.touches_end};
}
std::span<const Touch> Record::touches(int event) const noexcept {
  const Event& e = events[static_cast<std::size_t>(event)];
  return {touch_pool_.data() + e.touches, touch_pool_.data() + e.touches_end};
}
std::span<const int> Record::follows(int event) const noexcept {
  const Event& e = events[static_cast<std::size_t>(event)];
  return {follow_pool_.data() + e.follows, follow_pool_.data() + e.follows_end};
}

bool Record::closes_now() const noexcept {
  for (const Touch& t : touches(current))
    if (t.how == Access::close) return true;
  return false;
}

void Record::woke(int n) {
  Process& p = at(n);
  p.ready = true;
  if (!kept || current == kNone) return;
  follow(n, current);
  if (p.select) {
    // If the select was woken by the end of its last channel, it has also seen its other channels
    // end.
    if (closes_now()) follow_closers_of(p);
    touch_uid(p.select, Access::all);
    if (p.waiting) {
      weakened_ = p.arrival;
      std::exchange(p.waiting, nullptr)->decided();
    }
    if (std::exchange(p.timed, false)) disarms();
  }
  woken_.push_back(n);
}
void Record::woke_waiter(int n, const void* group) {
  at(n).ready = true;
  if (!kept || current == kNone) return;
  follow(n, current);
  follows_ended(n, group);
  groups_.erase(group);  // another group can be made at this address later
}
void Record::follow_closers_of(Process& p) {
  for (int i = 0; i < places_count; ++i)
    for (const Place& x = places[static_cast<std::size_t>(i)]; const auto& side : x.selects)
      for (const Place::Select& s : side)
        if (s.uid == p.select)
          p.follows.insert(p.follows.end(), x.closers.begin(), x.closers.end());
}

// --- operations ---------------------------------------------------------------------------------

void Record::arrives(const void* key, Access how) {
  woken_.clear();
  if (!kept) return;
  const int n = place_of(key, running);
  at(running).select = 0;
  const bool plain = how == Access::read || how == Access::write;
  touch(n, plain ? at_place(n, how) : how == Access::join && crowds ? Access::all : how);
  look_at_selects(n, how);
}

// Returns the access that an operation counts as at this place. If a full buffer drops values, a
// read and a write do not commute; nor do they if a time limit can end one of them at any moment.
Access Record::at_place(int n, Access how) const noexcept {
  const bool lone = places[static_cast<std::size_t>(n)].loses || (any_time && at(running).limited);
  return lone ? Access::all : how;
}

// Examines the selects that wait on the other side, or have waited there, because this step may
// decide them, or might have decided them.
void Record::look_at_selects(int place, Access how) {
  const Place& x = places[static_cast<std::size_t>(place)];
  if (x.selects[0].empty() && x.selects[1].empty()) return;
  for (int side = 0; side < 2; ++side) {
    if ((how == Access::read && side == 0) || (how == Access::write && side == 1)) continue;
    // The list is looked up each time, since `places` grows when a select receives its place.
    const auto list = [&]() -> const auto& {
      return places[static_cast<std::size_t>(place)].selects[side];
    };
    for (std::size_t i = 0; i < list().size(); ++i)
      if (how != Access::close || list()[i].ends) look_at_select(list()[i]);
  }
}

void Record::passes(int n, const void* key, Begun how, Access what) {
  if (kept && key) meets(n, places[static_cast<std::size_t>(place_of(key, n))], how, what);
  woken_.clear();
}
void Record::meets(int n, Place& x, Begun how, Access what) {
  if (what == Access::join) return joins(n, x, how);
  if (how == Begun::raised)
    for (const int e : x.closers) follow(n, e);
  if (x.capacity == 0) {
    for (const int w : woken_) follow(n, at(w).last);
    return;
  }
  if (how != Begun::done) return;
  if (what == Access::write) {
    if (!woken_.empty()) return;
    follow(n, taken(x.free, x.next_free));
    x.values.push_back(current);
  } else {
    follow(n, taken(x.values, x.next_value));
    if (woken_.empty())
      x.free.push_back(current);
    else
      x.values.push_back(at(woken_[0]).last);
  }
}

void Record::joins(int n, Place& x, Begun how) {
  if (std::find(x.joiners.begin(), x.joiners.end(), n) == x.joiners.end()) x.joiners.push_back(n);
  x.joined.push_back(current);
  if (how != Begun::parked) {
    for (const int e : x.joined) {
      follow(n, e);
      for (const int w : woken_) follow(w, e);
    }
    if (!x.parties || x.joined.size() < x.parties) x.parties = x.joined.size();
    x.joined.clear();
  }
  crowded = crowded || (x.parties && x.joiners.size() > x.parties);
}

void Record::select_begins() {
  woken_.clear();
  if (!kept) return;
  Process& p = at(running);
  p.select = mixed(p.uid, kSelects + p.selects++);
  p.waiting = nullptr;
  p.timed = false;
}
void Record::select_at(const void* key, Access how) {
  if (!kept) return;
  const int n = place_of(key, running);
  if (how != Access::look) how = at_place(n, how);
  touch(n, how);
  look_at_selects(n, how == Access::choose_read    ? Access::read
                     : how == Access::choose_write ? Access::write
                                                   : how);
}
void Record::select_parks(Waiting* waiting) {
  if (!kept) return;
  at(running).waiting = waiting;
  at(running).arrival = current;
}
void Record::waits_at(const void* key, bool writes, bool ends) {
  if (!kept) return;
  const Uid uid = at(running).select;
  auto& list = places[static_cast<std::size_t>(place_of(key, running))].selects[writes];
  for (Place::Select& s : list)
    if (s.process == running) {
      s.ends = ends || (s.uid == uid && s.ends);
      s.uid = uid;
      return;
    }
  list.push_back({running, uid, ends});
}
void Record::weaken(const void* key, Access to) {
  const Uid uid = places[static_cast<std::size_t>(place_of(key, running))].uid;
  for (Touch& t : touches(weakened_))
    if (t.uid == uid && t.how == Access::choice) t.how = to;
}
void Record::saw_closed(const void* key) {
  if (!kept) return;
  const Place& x = places[static_cast<std::size_t>(place_of(key, running))];
  auto& follows = at(running).follows;
  follows.insert(follows.end(), x.closers.begin(), x.closers.end());
}

// --- ends of channels, times, ends of processes -------------------------------------------------

void Record::closes(const void* key, Access how) {
  if (!kept || current == kNone) return;
  const int n = place_of(key, running);
  touch(n, how);
  if (how != Access::close_other) look_at_selects(n, how);
  places[static_cast<std::size_t>(n)].closers.push_back(current);
}
void Record::does_all(const void* key, int by) {
  if (!kept) return;
  const int n = place_of(key, by);
  touch(n, Access::all);
  look_at_selects(n, Access::all);
}
void Record::arms() {
  timed = true;
  if (!kept || !any_time) return;
  touch_uid(kTime, Access::all);
  at(running).timed = true;
}
// The timer might have fired first; now it never will.
void Record::disarms() {
  if (!kept || !any_time || current == kNone) return;
  touch_uid(kTime, Access::all);
  disarming.push_back(current);
}
void Record::cancel() {
  cancelled = true;
  if (cancels) touch_uid(kCancel, Access::all);
}
void Record::ended(const void* group) {
  if (!kept || current == kNone) return;
  int n = groups_.of(group);
  if (n == kNone) {
    n = groups_count_++;
    if (n == static_cast<int>(group_ends_.size())) group_ends_.emplace_back();
    group_ends_[static_cast<std::size_t>(n)].clear();
    groups_.put(group, n);
  }
  group_ends_[static_cast<std::size_t>(n)].push_back(current);
}
void Record::follows_ended(int n, const void* group) {
  if (!kept) return;
  const int ended = groups_.of(group);
  if (ended == kNone) return;
  for (const int e : group_ends_[static_cast<std::size_t>(ended)]) follow(n, e);
}

std::string Record::in_words(int event) const {
  static constexpr const char* names[kAccesses] = {
      "read",  "write",       "choice", "quiet_choice", "choose_read", "choose_write",
      "close", "close_other", "make",   "all",          "join",        "look"};
  const Event& e = events[static_cast<std::size_t>(event)];
  std::string s = path(e.process) + "#" + std::to_string(e.number) + " follows";
  for (const int a : follows(event)) s += " " + std::to_string(a);
  if (e.previous != kNone) s += " " + std::to_string(e.previous);
  s += " touches";
  for (const Touch& t : touches(event))
    s += " " + std::to_string(t.place) + ":" + names[static_cast<std::size_t>(t.how)];
  return s;
}

}  // namespace weft::checking
