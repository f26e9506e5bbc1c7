// The plug-and-play processes, in weft::plugnplay. Each is a coroutine process;
// weft::thread(identity<int>(a, b)) runs it on a thread.
//
//   and_ black_hole delta demultiplex deparaplex dynamic_delta fixed_delay generate identity merge
//   mult multiplex nand nor numbers or_ pairs paraplex plex plus prefix printer regular regulate
//   sequential_delta sign substitute successor tail times transform xor_
//
// This set is that of JCSP (jcsp.plugNplay; Welch and others) and of C++CSP. In addition:
//
//   batch broadcast keyed_pool rate_limit
#pragma once
#include "plugnplay/ends.hpp"
#include "plugnplay/plexing.hpp"
#include "plugnplay/pointwise.hpp"
#include "plugnplay/services.hpp"
#include "plugnplay/streams.hpp"
#include "plugnplay/timed.hpp"
