/* Reads files of sound in the wave format. The names are those of upstream's utility. */
#ifndef WEFT_LF_WAVE_FILE_READER_H
#define WEFT_LF_WAVE_FILE_READER_H
#include <stdint.h>

/* Samples of 16 bits. With two channels, left and right samples alternate. `length` counts the
 * samples of all channels. */
typedef struct lf_waveform_t {
  uint32_t length;
  uint16_t num_channels;
  int16_t* waveform;
} lf_waveform_t;

/* Return the waveform of a file of linear PCM of 16 bits and 44,100 samples a second. If there is
 * no such file, or the file has other contents, print the reason and return NULL. The caller frees
 * `waveform`, and then the struct. */
lf_waveform_t* read_wave_file(const char* path);
#endif
