// ChannelHandle<T>: a channel that closures capture by copy. Each process receives its ends when it
// first uses them.
//
//   weft::ChannelHandle<int> a, b;
//   weft::par{ [=] { for (int i = 0; i < 3; ++i) a(i); },
//              [=] { for (;;) b(2 * a()); },
//              [=] { for (int v : b.reader()) print(v); } }();
//
//   made ──copied──► a copy: undecided, holds a reader end and a writer end
//                      ├──first read──► holds the reader end alone
//                      ├──first write──► holds the writer end alone
//                      └──destroyed, with its closure──► holds nothing
//
// So the ends are counted as if each process had been given ends of its own (rule 2.3), and a
// network of such closures closes down by itself. The handle that was made (not copied) holds
// nothing until it is used. A copy belongs to one process; copies made of a copy are undecided
// again. An undecided copy that is never used keeps both sides open until it is destroyed.
#pragma once
#include "blocks.hpp"

namespace weft::inline WEFT_ABI {

template <class T, class P>
class ChannelHandle {
 public:
  using value_type = T;
  using policy = P;

  explicit ChannelHandle(ChannelOptions o = {}, detail::Here at = detail::Here::now())
      : channel_(sides_of_many(o), at) {}
  ChannelHandle(const Channel<T, P>& c) : channel_(c) {}
  ChannelHandle(const ChannelHandle& o) : channel_(o.channel_) { hold(); }
  ChannelHandle(ChannelHandle&& o) noexcept
      : channel_(o.channel_), reader_(std::move(o.reader_)), writer_(std::move(o.writer_)) {}
  ChannelHandle& operator=(const ChannelHandle&) = delete;
  ~ChannelHandle() = default;

  // Reads or writes in a thread, as a Reader or a Writer does.
  template <std::same_as<detail::Here> H = detail::Here>  // No value converts to this type.
  T operator()(H at = H::now()) const {
    return reading(at)(at);
  }
  void operator()(const T& v,
                  detail::Here at = detail::Here::now()) const requires detail::kCopied<T> {
    writing(at)(v, at);
  }
  void operator()(T&& v, detail::Here at = detail::Here::now()) const {
    writing(at)(std::move(v), at);
  }
  // The operations of Reader and Writer for a coroutine; co_await their results.
  [[nodiscard]] auto read() const { return reading().read(); }
  [[nodiscard]] auto next() const { return reading().next(); }
  WriteOp<T, P> write(const T& v) const requires detail::kCopied<T> { return writing().write(v); }
  WriteOp<T, P> write(T&& v) const { return writing().write(std::move(v)); }
  // Returns the reader end, which this process holds from now on, for use as a guard or in a
  // range-for.
  const Reader<T, P>& reader(detail::Here at = detail::Here::now()) const { return reading(at); }
  const Writer<T, P>& writer(detail::Here at = detail::Here::now()) const { return writing(at); }
  operator Reader<T, P>() const { return channel_.new_reader(false); }
  operator Writer<T, P>() const { return channel_.new_writer(false); }

  void poison(detail::Count strength = 1) const { channel_.poison(strength); }
  const Channel<T, P>& channel() const noexcept { return channel_; }

 private:
  static ChannelOptions sides_of_many(ChannelOptions o) {
    if (o.kind != ChannelKind::any2any)
      detail::bad_use("a ChannelHandle has several ends on each side: its channel is any2any");
    return o;
  }
  // Makes the ends of a copy. A copy that is made after a side has ended has only an end of the
  // other side; a use of the missing end throws the exception for how its side ended.
  void hold() {
    try {
      reader_ = channel_.new_reader(false);
      writer_ = channel_.new_writer(false);
    } catch (const ChannelEnd&) {
    }
  }
  const Reader<T, P>& reading(detail::Here at = detail::Here::nowhere()) const {
    detail::used_at(*channel_.core(), at);
    if (!reader_) reader_ = channel_.new_reader(true);
    if (!reading_) {
      reading_ = true;
      if (!writing_) writer_.retire();
    }
    return reader_;
  }
  const Writer<T, P>& writing(detail::Here at = detail::Here::nowhere()) const {
    detail::used_at(*channel_.core(), at);
    if (!writer_) writer_ = channel_.new_writer(true);
    if (!writing_) {
      writing_ = true;
      if (!reading_) reader_.retire();
    }
    return writer_;
  }

  Channel<T, P> channel_;
  mutable Reader<T, P> reader_;
  mutable Writer<T, P> writer_;
  // True if the copy has been used for reading, or for writing. The copy then holds only the ends
  // that it uses.
  mutable bool reading_ = false;
  mutable bool writing_ = false;
};

}  // namespace weft::inline WEFT_ABI
