// A Fibre runs a function on a stack of its own, on the thread that enters the fibre. A check runs
// the thread processes of a program in fibres, one at a time. The explorer uses the exchange of
// stacks too (cpp/explorer/engine.cpp).
//
//   begin(f, x) ──enter()──► f(x) ──leave()──► enter() returns ──enter()──► leave() returns ──►
//   f returns: ended, and enter() returns; begin() may be called again
//
// Invariants
//  1 The exceptions that a fibre is handling belong to the fibre: enter() exchanges the list that
//    the language keeps for each thread, before the fibre continues and after it has left.
//  2 AddressSanitizer is notified of each exchange, since it knows the bounds of the current stack.
#pragma once
#include <cxxabi.h>
#include <sys/mman.h>
#include <cstddef>
#include <new>
#include <utility>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_FIBRE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_FIBRE_ASAN 1
#endif
#endif
#ifndef WEFT_FIBRE_ASAN
#define WEFT_FIBRE_ASAN 0
#endif
#if WEFT_FIBRE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace weft::checking {

// prepare() makes a new stack ready: the first exchange_stacks() that enters that stack calls
// `entry` on it. `entry` must not return. exchange_stacks() stores the caller's place in *save, and
// continues at the place `load`.
#if defined(__x86_64__)
// swapcontext() would make two system calls to keep the signal mask, which does not change here.
[[gnu::naked, gnu::noinline]] inline void exchange_stacks(void** /*save*/, void* /*load*/) {
  asm("pushq %rbp\n\t"
      "pushq %rbx\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbx\n\t"
      "popq %rbp\n\t"
      "ret");
}
inline void* prepare(char* stack, std::size_t size, void (*entry)()) {
  auto** top = reinterpret_cast<void**>(stack + size);
  *--top = nullptr;  // This null aligns the stack, and ends any backtrace.
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}
#else
inline void* prepare(char* stack, std::size_t size, void (*entry)()) {
  // The context is never freed, which costs a few bytes for each stack, and only on such machines.
  auto* c = new ucontext_t;
  getcontext(c);
  c->uc_stack.ss_sp = stack;
  c->uc_stack.ss_size = size;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
  return c;
}
inline void exchange_stacks(void** save, void* load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(load));
}
#endif

class Fibre {
 public:
  // Throws std::bad_alloc if the system has no memory for the stack.
  Fibre() : memory_(reserved()), inside_(prepare(memory_ + kGuard, kStack, &Fibre::body)) {}
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;
  ~Fibre() { munmap(memory_, kGuard + kStack); }

  // Sets the function that the next enter() calls. The fibre must be new or have ended.
  void begin(void (*f)(void*), void* x) noexcept {
    f_ = f;
    x_ = x;
  }
  // Runs the fibre until it calls leave() or has ended. Called outside any fibre.
  void enter() noexcept {
    entered() = this;
    const Handling mine = std::exchange(handling(), handled_);
#if WEFT_FIBRE_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, memory_ + kGuard, kStack);
#endif
    exchange_stacks(&outside_, inside_);
#if WEFT_FIBRE_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    handled_ = std::exchange(handling(), mine);
  }
  // Returns to the caller of enter(). Called in the fibre.
  void leave() noexcept {
#if WEFT_FIBRE_ASAN
    __sanitizer_start_switch_fiber(&fake_, outside_bottom_, outside_size_);
#endif
    exchange_stacks(&inside_, outside_);
#if WEFT_FIBRE_ASAN
    __sanitizer_finish_switch_fiber(fake_, &outside_bottom_, &outside_size_);
#endif
  }
  bool over() const noexcept { return f_ == nullptr; }

 private:
  // in bytes; as large as the stack that Linux gives a thread. Only the part that was used takes
  // memory.
  static constexpr std::size_t kStack = std::size_t{8} << 20;
  // The size in bytes of the part below the stack that can be neither read nor written. A stack
  // that grows into it ends the program.
  static constexpr std::size_t kGuard = std::size_t{64} << 10;

  // What the C++ ABI keeps for each thread (Itanium C++ ABI: Exception Handling, 2.2.2).
  struct Handling {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  static Handling& handling() noexcept {
    return *reinterpret_cast<Handling*>(abi::__cxa_get_globals());
  }
  static Fibre*& entered() noexcept {
    static thread_local Fibre* fibre = nullptr;
    return fibre;
  }
  static char* reserved() {
    void* const p = mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, kGuard, PROT_NONE) != 0) throw std::bad_alloc();
    return static_cast<char*>(p);
  }
  static void body() {
    Fibre& me = *entered();
#if WEFT_FIBRE_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &me.outside_bottom_, &me.outside_size_);
#endif
    for (;;) {
      me.f_(me.x_);
      me.f_ = nullptr;
      me.leave();
    }
  }

  char* const memory_;
  void* inside_;
  void* outside_ = nullptr;
  void (*f_)(void*) = nullptr;
  void* x_ = nullptr;
  Handling handled_;
#if WEFT_FIBRE_ASAN
  void* fake_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
#endif
};

}  // namespace weft::checking
