/* Implements audio_loop.h on macOS, as on Linux. WEFT_LF_AUDIO must have a command there. */
#include "audio_loop_linux.c"
