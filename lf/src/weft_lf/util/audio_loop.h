/* Plays waveforms. The names are those of upstream's utility, but this utility needs no library. It
 * writes the samples to a command as linear PCM of 16 bits, one channel, 44,100 samples a second.
 * The command is `aplay` (of alsa-utils), or the command in the environment variable
 * WEFT_LF_AUDIO. */
#ifndef WEFT_LF_AUDIO_LOOP_H
#define WEFT_LF_AUDIO_LOOP_H
#include "wave_file_reader.h"
#include "weft_mcu/lf.h"

#define SAMPLE_RATE 44100
#define AUDIO_BUFFER_SIZE 4410
#define BUFFER_DURATION_NS 100000000LL
#define NUM_CHANNELS 1
#define MAX_AMPLITUDE 32765
#define NUM_NOTES 8 /* the number of notes that sound at a time; a further note ends the oldest */

/* Begin to play, buffer by buffer. The first buffer is for the logical times from `start_time`
 * on. */
void lf_start_audio_loop(instant_t start_time);
void lf_stop_audio_loop(void);
/* Play a waveform, or a tick if it is NULL, `emphasis` times as loud, from `start_time` on. If that
 * time is after the current buffer, the call waits for the next buffer. If the time has passed,
 * the waveform is played immediately, and the call returns 1. */
int lf_play_audio_waveform(lf_waveform_t* waveform, float emphasis, instant_t start_time);
/* Add to a sample of the buffer that is being filled. Sums stop at the largest sample. */
void add_to_sound(int index_offset, double value);
#endif
