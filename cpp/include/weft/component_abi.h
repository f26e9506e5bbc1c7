// What a native component and its host (the extension module of the Python package) agree on: C
// types and one table of C functions. No C++ object, no exception and no symbol of Python crosses
// this interface, so compilers, their flags and versions of Python may differ.
//
//   host ──dlopen──► weft_component_entry() ──► weft_component: its processes, their parameters
//
//   host ──a thread for a process──► weft_process_info.run(api, process, arguments, failure)
//     ──► how the process ended (a weft_status)
//   host ──a coroutine, on the pool──► weft_process_info.step(…), again whenever the operation that
//     it waited for has its outcome ──► the same
//
//   component ──api->read, write, select, …──► the host's channels, by the number of the end among
//     the arguments
//
// Invariants
//  1 weft_api, weft_component, weft_process_info and weft_parameter only grow, at their ends; a
//    function is never removed from the table. A component says how large each of them was when it
//    was compiled. The host treats the members that a shorter structure lacks as zeros, and refuses
//    a library whose structures are longer than the host's own: such a library was compiled for a
//    newer host. All other structures stay as they are. Any other change means another
//    WEFT_COMPONENT_ABI: the host refuses a library with another number.
//  2 A value is `bits`, for the types `i` `d` `b` `n` (below); for all other types it is a block of
//    `bits` bytes, made by api->allocate() or by the host. The block belongs to the holder of the
//    value, which gives the block back by api->release(). A write that returns WEFT_OK has taken
//    ownership of the value; after any other status the value still belongs to the caller.
//  3 The functions of the table are called only by the thread of the process, and without any lock
//    of the host's language.
//
// Types, as text: i int64, d double, b bool, n nothing, s text (UTF-8), y bytes, v a value of any
// of these or a list or map of such values, [T] sequence, (TU…) tuple, {KV} map, ?T T or nothing,
// <NAME F T F T …> an aggregate with its fields' names and types. A block of type s or y is the
// text or the bytes as they are. Any other block contains one item after another without padding,
// in the byte order of the machine: i d as 8 bytes; b as 1; n as none; s y as a length of 8 bytes
// and the bytes; [T] {KV} as a count of 8 bytes and the items; ?T as a byte, 1 or 0, and T; v as a
// byte that is i, d, b, n, s, y, [ or {, and then as that type, with items that are v.
//
// aC, arC, aNC, arNC: an array of numbers, C as in Python's module struct: b B h H i I q Q f d; of
// N dimensions, 2 to 6, in C's order; with r the array must not be written to. Its block begins
// with a weft_array, which says where the numbers are; `bits` is how many there are. The numbers
// may belong to the host, which lends them until the block is given back. Within another type an
// array is this count and the address of the block, 8 bytes each; the outer block keeps the inner
// one (api->keep) until the code that decodes it takes it out (api->take).
#ifndef WEFT_COMPONENT_ABI_H
#define WEFT_COMPONENT_ABI_H
#include <stddef.h>
#include <stdint.h>

#define WEFT_COMPONENT_ABI 1
#define WEFT_COMPONENT_ENTRY "weft_component_entry"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_status {
  WEFT_OK = 0,
  WEFT_RETIRED = 1,    // the other side has retired (rule 3)
  WEFT_POISONED = 2,   // the channel was poisoned (rule 4)
  WEFT_DIED = 3,       // the other side died (rule 4.5)
  WEFT_CANCELLED = 4,  // the process is asked to end (rule 6)
  // an end is closed, a select has no guards, …: weft_api.last_error describes it (rule 11)
  WEFT_BAD_USE = 5,
  // Returned only by run() and step(): the weft_failure describes it.
  WEFT_FAILED = 6,
  // From a function that starts an operation: the operation has no outcome yet. From step(): the
  // process waits for the outcome of an operation.
  WEFT_PENDING = 7
} weft_status;

typedef struct weft_value {
  uint64_t bits;  // the value, or the number of bytes in its block
  void* block;    // null where the type has no block, or the block is empty
} weft_value;

typedef struct weft_buffer {
  void* data;
  uint64_t bytes;
} weft_buffer;

typedef struct weft_array {
  weft_buffer buffer;
  uint64_t extents[6];  // used for more than one dimension
} weft_array;

// Where in the source an operation was called, for reports. `file` is never freed.
typedef struct weft_place {
  const char* file;
  uint32_t line;
} weft_place;

typedef enum weft_guard_kind {
  WEFT_INPUT = 0,
  WEFT_OUTPUT = 1,
  WEFT_TIMER = 2,
  WEFT_SKIP = 3,
  WEFT_SYNC = 4,  // a barrier
  // an output without a value: when it is chosen, the component makes the value, and calls
  // api->deliver (rule 5.8)
  WEFT_COMPUTED = 5
} weft_guard_kind;

typedef struct weft_guard {
  uint32_t kind;
  uint32_t end;      // the number of the end of an input or output, or of the barrier
  uint32_t on;       // the precondition; 0 switches the guard off
  uint32_t ends;     // the retirement of the channel is an outcome (rule 5.6)
  int64_t deadline;  // for a timer: ns, on the clock of now()
  // For an output, the value to write. For the input that was chosen, the value that was read.
  weft_value value;
} weft_guard;

typedef struct weft_process weft_process;  // defined by the host

typedef struct weft_api {
  uint32_t abi;
  uint32_t size;
  void* (*allocate)(size_t bytes);  // returns null if there is no memory
  void (*release)(void* block);     // does nothing for null
  weft_status (*read)(weft_process*, uint32_t end, weft_value* to, weft_place at);
  weft_status (*write)(weft_process*, uint32_t end, weft_value* from, weft_place at);
  // Reads at least one value, and then those that are available without waiting, up to `most` in
  // all; sets *n to the number read. (No value is lost if the channel ends afterwards.)
  weft_status (*read_many)(weft_process*, uint32_t end, weft_value* to, size_t most, size_t* n,
                           weft_place at);
  // Writes all values; sets *n to the number written before the channel ended or the process was
  // cancelled.
  weft_status (*write_many)(weft_process*, uint32_t end, weft_value* from, size_t count, size_t* n,
                            weft_place at);
  // Selects fairly if `fair`, otherwise takes the first guard that is ready. Sets *chosen to the
  // index of the chosen guard, even if its channel has ended.
  weft_status (*select)(weft_process*, weft_guard* guards, uint32_t count, uint32_t fair,
                        uint32_t* chosen, weft_place at);
  weft_status (*retire)(weft_process*, uint32_t end);
  weft_status (*poison)(weft_process*, uint32_t end, uint32_t strength);
  int64_t (*now)(weft_process*);  // returns ns, on the clock of the run
  const char* (*last_error)(weft_process*);
  // The functions from here on exist since the second edition.
  void (*keep)(void* block, void* part);  // `part` is then released together with the block
  void (*take)(void* block, void* part);  // `part` no longer belongs to the block
  weft_status (*sync)(weft_process*, uint32_t barrier, weft_place at);
  weft_status (*enrol)(weft_process*, uint32_t barrier);
  weft_status (*resign)(weft_process*, uint32_t barrier);
  // Begins an extended read: the writer continues at end_extended(). *held belongs to the host
  // (rule 1.6).
  weft_status (*begin_extended)(weft_process*, uint32_t end, weft_value* to, void** held,
                                weft_place at);
  void (*end_extended)(weft_process*, uint32_t end, void* held);
  // Called after a select that chose a WEFT_COMPUTED, before any other function. `from` is the
  // computed value, or null if there is none.
  weft_status (*deliver)(weft_process*, weft_value* from);
  // The functions from here on exist since the third edition, for a process that is stepped. These
  // functions act like read, write, select and sync, but may return WEFT_PENDING. Then step()
  // returns WEFT_PENDING too; when step() is called again the operation has its outcome, and
  // finish() completes it and returns its status. The objects that the arguments point to must
  // exist until finish() has returned. In a process that runs on a thread (run()) these functions
  // wait, and never return WEFT_PENDING.
  weft_status (*start_read)(weft_process*, uint32_t end, weft_value* to, weft_place at);
  weft_status (*start_write)(weft_process*, uint32_t end, weft_value* from, weft_place at);
  weft_status (*start_select)(weft_process*, weft_guard* guards, uint32_t count, uint32_t fair,
                              uint32_t* chosen, weft_place at);
  weft_status (*start_sync)(weft_process*, uint32_t barrier, weft_place at);
  weft_status (*finish)(weft_process*);
} weft_api;

typedef enum weft_role {
  WEFT_VALUE = 0,
  WEFT_READER = 1,
  WEFT_WRITER = 2,
  WEFT_BARRIER = 3
} weft_role;

typedef struct weft_parameter {
  const char* name;
  const char* type;  // the type of the value, or of the channel's values
  const char* doc;
  uint32_t role;
  uint32_t has_default;
  weft_value fallback;
} weft_parameter;

typedef struct weft_argument {
  uint32_t end;      // the number of a reader, a writer or a barrier
  weft_value value;  // the value of any other argument; run() takes ownership of it
} weft_argument;

// Says how run() ended if it did not return normally.
typedef struct weft_failure {
  // For WEFT_RETIRED, WEFT_POISONED and WEFT_DIED: the end at which the channel had ended.
  uint32_t end;
  // For WEFT_FAILED: the type of the exception, allocated by api->allocate().
  char* type;
  // The message of the exception, allocated by api->allocate(). If it contains WEFT_THROWN_AT, the
  // text after that says where the exception was thrown. It contains a line for each frame,
  // innermost first: the library's file, a space, and the return address within that library, in
  // hex.
  char* text;
} weft_failure;
#define WEFT_THROWN_AT "\x1E"

typedef struct weft_process_info {
  const char* name;
  const char* doc;
  const char* file;
  uint32_t line;
  uint32_t count;  // the number of parameters
  const weft_parameter* parameters;
  weft_status (*run)(const weft_api*, weft_process*, weft_argument*, weft_failure*);
  // This member exists since the third edition; it is null for a process that is not a coroutine.
  // It runs the coroutine until the coroutine waits (WEFT_PENDING) or has ended as run() would.
  // *frame belongs to the component; it is null at first, and again when the coroutine has ended.
  weft_status (*step)(const weft_api*, weft_process*, weft_argument*, weft_failure*, void** frame);
} weft_process_info;

typedef struct weft_component {
  uint32_t abi;
  uint32_t size;
  const char* name;
  const char* doc;
  const char* compiler;
  uint32_t count;      // the number of processes
  uint32_t info_size;  // the size of a weft_process_info when the component was compiled
  const weft_process_info* processes;
  // If it is not null, this text says what is wrong with the declaration; the host then refuses the
  // component.
  const char* error;
  // These members exist since the second edition. In a component of the first edition both
  // structures have their first size.
  uint32_t api_size;        // the size of a weft_api when the component was compiled
  uint32_t parameter_size;  // the size of a weft_parameter
} weft_component;

// The function that a component exports; it never returns null. Nothing else is called before it.
typedef const weft_component* (*weft_component_entry_function)(void);

#ifdef __cplusplus
}
#endif
#endif
