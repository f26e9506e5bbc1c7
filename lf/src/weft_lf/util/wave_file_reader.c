/* Implements wave_file_reader.h. A wave file is a list of chunks. Each chunk has a name of four
 * characters and its size in bytes; a chunk of an odd size is followed by one more byte. */
#include "wave_file_reader.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t wave_number(const uint8_t* at, int bytes) {
  uint32_t number = 0;
  while (bytes--) number = number << 8 | at[bytes];
  return number;
}
static bool wave_is_supported(const uint8_t format[16]) {
  uint32_t channels = wave_number(format + 2, 2);
  return wave_number(format, 2) == 1 && (channels == 1 || channels == 2) &&
         wave_number(format + 4, 4) == 44100 && wave_number(format + 14, 2) == 16;
}
static lf_waveform_t* wave_samples(FILE* file, uint32_t bytes, uint16_t channels) {
  lf_waveform_t* wave = calloc(1, sizeof *wave);
  uint8_t* raw = malloc(bytes ? bytes : 1);
  int16_t* samples = calloc(bytes / 2 + 1, sizeof *samples);
  if (!wave || !raw || !samples || fread(raw, 1, bytes, file) != bytes) {
    free(wave), free(raw), free(samples);
    return 0;
  }
  for (uint32_t i = 0; i < bytes / 2; i++) samples[i] = (int16_t)wave_number(raw + 2 * i, 2);
  free(raw);
  *wave = (lf_waveform_t){bytes / 2, channels, samples};
  return wave;
}
/* Return the samples; or 0, with the reason in `wrong`. */
static lf_waveform_t* wave_read(FILE* file, const char** wrong) {
  uint8_t head[12], format[16] = {0};
  *wrong = "it is no wave file";
  if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) || memcmp(head + 8, "WAVE", 4))
    return 0;
  *wrong = "it has no samples";
  while (fread(head, 1, 8, file) == 8) {
    uint32_t bytes = wave_number(head + 4, 4), taken = 0;
    if (!memcmp(head, "data", 4)) {
      *wrong = "it is not of 16 bits, uncompressed, at 44,100 Hz";
      if (!wave_is_supported(format)) return 0;
      *wrong = "it ends too early";
      return wave_samples(file, bytes, (uint16_t)wave_number(format + 2, 2));
    }
    if (!memcmp(head, "fmt ", 4) && bytes >= 16) taken = (uint32_t)fread(format, 1, 16, file);
    if (fseek(file, (long)(bytes + (bytes & 1) - taken), SEEK_CUR)) return 0;
  }
  return 0;
}
lf_waveform_t* read_wave_file(const char* path) {
  const char* wrong = "it cannot be read";
  FILE* file = fopen(path, "rb");
  lf_waveform_t* wave = file ? wave_read(file, &wrong) : 0;
  if (file) fclose(file);
  if (!wave) fprintf(stderr, "WARNING: %s: %s\n", path, wrong);
  return wave;
}
