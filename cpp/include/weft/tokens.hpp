// Tokens: a schedule as a short text, which names its deviations from the usual order (rule 17.8).
// The form is the one that Python uses (python/src/weft/_checking/tokens.py):
//
//   w1:hop.3@3=locker.1   after step 3 of hop[3], locker[1] runs
//   w1:clerk@4=           after step 4 of clerk a time is reached
//   w1:merge@2+1          at step 2 of merge its select takes the second of the ready guards
//   w1:merge@2.3+1        the same for the third select of step 2, if a step has several
//   w1-31.2-40.1          by numbers: at decision 31 the choice 2, at decision 40 the choice 1
//   w1                    no deviation: the usual order
#pragma once
#include <string>
#include <vector>

#include "check/strategies.hpp"
#include "config.hpp"

namespace weft::inline WEFT_ABI::detail {

using checking::Replay;

std::string token_of(const std::vector<Replay::Deviation>& deviations);
// Returns the deviations that a token names. If the token is by numbers, adds these to `numbers`.
// Throws BadUse if the text is not a token.
std::vector<Replay::Deviation> deviations_of(const std::string& token,
                                             std::vector<Replay::ByNumber>& numbers);
// Describes a deviation in words.
std::string said(const Replay::Deviation& d);

}  // namespace weft::inline WEFT_ABI::detail
