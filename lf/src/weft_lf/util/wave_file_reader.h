/* Reads files of sound in the wave format. The names are those of upstream's utility. */
#ifndef WEFT_LF_WAVE_FILE_READER_H
#define WEFT_LF_WAVE_FILE_READER_H
#include <stdint.h>

/* Samples of 16 bits; those of two channels in turn, left and right. `length` counts all. */
typedef struct lf_waveform_t {
  uint32_t length;
  uint16_t num_channels;
  int16_t* waveform;
} lf_waveform_t;

/* What a file has: linear PCM of 16 bits and 44,100 samples a second. It returns NULL, and says
 * why, if there is no such file or it has something else. Who calls it frees `waveform`, then the
 * struct. */
lf_waveform_t* read_wave_file(const char* path);
#endif
