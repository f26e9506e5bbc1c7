/* weft_mcu/reactors.h: reactors (SEMANTICS.md, part III): types, and the functions that reactions
 * call. REACTORS.md is the page for users.
 *
 * The program's C file defines the sizes that it needs (WEFT_RX_REACTIONS, …), includes this
 * header, defines its reactions and tables, and includes weft_mcu/reactors_run.h, the engine. The
 * program is one translation unit, so that the compiler knows all sizes and tables as constants.
 *
 * Invariants
 *  1. The number of a reaction is its place in the order: whatever a running reaction makes pending
 *     has a greater number.
 *  2. A port or action is in its enclave's `present` list exactly while is_present is set; the list
 *     is emptied when the tag ends.
 *  3. A queue is ordered by time, then microstep; timers (microstep 0) come first among equal
 *     times. No event in the queue is at or before the current tag. Events for the next microstep
 *     are in the list `soon`, not in the queue.
 *  4. Only an enclave's own core touches the enclave, except for `inbox` and the fields that belong
 *     to it, which the inbox lock protects.
 */
#ifndef WEFT_MCU_REACTORS_H
#define WEFT_MCU_REACTORS_H
#include "weft_mcu/reactors/types.h"
#include "weft_mcu/reactors/env.h"
#endif
