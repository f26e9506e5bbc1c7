// Channels with ends in other OS processes (WIRE.md), as the other parts of the extension see them.
//
//   a channel of this program ──wire_channel(): a process is made in another OS process with an end
//       of it, or an end is handed to a link──► wired: its values are packed, and unpacked by its
//       readers in this program
//   an end that a link hands to this program ──► a far channel: its core has one side, and the home
//       decides (core/far_engine.hpp)
//
// wiring.hpp declares the first step, values.hpp the packed values.
#pragma once

namespace weft::py {

struct ChannelObject;

// Returns whether the channel represents a barrier of another OS process (far_barrier.cpp).
bool is_far_barrier(const ChannelObject* c) noexcept;
// Returns whether a link to a board, or over a network, is open. If so, a visitor from its other
// end can meet any waiting party.
bool any_board() noexcept;
void forget_links() noexcept;  // called in the child of a fork: the links belong to the parent

}  // namespace weft::py
