// Channels with ends in other OS processes (WIRE.md), as the rest of the extension sees them.
//
//   a channel ──wire_channel(): a process of another OS process is made with an end of it, or an
//   end is handed to a link──► wired: its values are packed, and unpacked by who reads here
//   an end that a link hands to us ──► a far channel: its core has one side, and the home decides (core/far_engine.hpp)
//
// wiring.hpp has the first step, values.hpp the packed values.
#pragma once

namespace weft::py {

struct ChannelObject;

// Is the channel a barrier of another OS process (far_barrier.cpp)?
bool is_far_barrier(const ChannelObject* c) noexcept;
// Is a link to a board, or over a network, open? Then a visitor from there may come to any party
// that waits.
bool any_board() noexcept;
void forget_links() noexcept;  // in the child of a fork: the links are the parent's

}  // namespace weft::py
