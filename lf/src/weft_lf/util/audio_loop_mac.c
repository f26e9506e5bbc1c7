/* audio_loop.h on macOS: as elsewhere, with a command of the user's own in WEFT_LF_AUDIO. */
#include "audio_loop_linux.c"
