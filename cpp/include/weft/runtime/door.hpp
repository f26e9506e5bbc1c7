// The door through which a program is inspected from outside (rule 14.9): a socket in the user's
// runtime directory, and a thread that sleeps until a visitor connects.
//
//   open() ──► $XDG_RUNTIME_DIR/weft/PID.sock, a thread in accept()
//   ──a visitor connects──► is it this user, or root? ──a thread for the visitor──► visit(fd)
//
// Invariants
//  1 All signals are blocked on these threads, so handlers run on the program's own threads.
//  1 All signals are blocked on these threads, so handlers run on the program's own threads.
//  2 Only this user and root are admitted: the directory has the mode 0700, the socket 0600, and
//    the kernel says whose program the visitor is.
//  3 A child of a fork has neither the socket nor the thread. It opens its own at its next run.
//  4 If the door cannot be opened, no message is written here: `weft ps` says what is missing.
//  5 The program may close descriptors that it did not open, and use their numbers for files of its
//    own. So before each use a thread here checks that the number still refers to its file (File).
//  6 An OS process has one door. If two copies of Weft are in it, the first copy has the door.
#pragma once
#include <sys/stat.h>

#include "../config.hpp"

namespace weft::inline WEFT_ABI::runtime {

class Door {
 public:
  // Answers a visitor, on a thread of its own; does not close the socket.
  using Visit = void (*)(int socket);

  // The file to which a descriptor refers.
  struct File {
    dev_t device = 0;
    ino_t number = 0;
    explicit File(int fd) noexcept;
    bool operator==(const File&) const = default;
  };

  // Opens the door of this OS process, unless it is open or cannot be opened. Only one thread at a
  // time may call open().
  static void open(Visit visit) noexcept;
  // Called in the child of a fork, because the door belongs to the parent.
  static void forget() noexcept;
  // Starts a detached thread, with all signals blocked. Returns false if the system cannot start a
  // thread.
  static bool start(void* (*body)(void*), void* of) noexcept;
};

}  // namespace weft::inline WEFT_ABI::runtime
