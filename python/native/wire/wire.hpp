// Channels with ends in other OS processes (WIRE.md), as the rest of the extension sees them.
//
//   a channel ──wire_channel(): a process of another OS process is made with an end of it, or an
//               end is handed to a link──► wired: its values are packed, and unpacked by who reads here
//   an end that a link hands to us ──► a far channel: its core has one side, and the home decides (core/far_engine.hpp)
//
// wiring.hpp has the first step, values.hpp what is packed.
#pragma once

namespace weft::py {

struct ChannelObject;

// Is that a barrier of another OS process? (far_barrier.cpp)
bool is_far_barrier(const ChannelObject* c) noexcept;
// is a link to a board, or over a network, open? Then whoever waits may be met from there
bool any_board() noexcept;
void forget_links() noexcept;  // in the child of a fork: they are the parent's

}  // namespace weft::py
