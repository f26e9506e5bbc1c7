/* Implements audio_loop.h on macOS, as on Linux. On macOS WEFT_LF_AUDIO must contain a command. */
#include "audio_loop_linux.c"
