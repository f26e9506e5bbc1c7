/* Implements audio_loop.h: a thread hands over a buffer every 100 ms of physical time, and begins
 * the next buffer with the rest of the notes. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "audio_loop.h"

typedef struct {
  const lf_waveform_t* waveform; /* 0 if there is no note */
  uint32_t position;
  double volume;
} audio_note;
static struct {
  pthread_mutex_t lock;
  pthread_cond_t moved; /* signalled when the next buffer has begun, or the loop has ended */
  bool started, ending;
  pthread_t thread;
  instant_t begins; /* the logical time of the buffer's first sample */
  int16_t buffer[AUDIO_BUFFER_SIZE];
  audio_note notes[NUM_NOTES];
  unsigned next; /* the note that a further note replaces */
} audio = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

void add_to_sound(int index_offset, double value) {
  if (index_offset < 0 || index_offset >= AUDIO_BUFFER_SIZE) return;
  double sum = audio.buffer[index_offset] + value;
  sum = sum > MAX_AMPLITUDE ? MAX_AMPLITUDE : sum < -MAX_AMPLITUDE ? -MAX_AMPLITUDE : sum;
  audio.buffer[index_offset] = (int16_t)sum;
}
/* Add as much of a note as the buffer accepts from sample `at` on, as the mean of its channels. */
static void audio_add(audio_note* note, int at) {
  const lf_waveform_t* wave = note->waveform;
  for (; wave && at < AUDIO_BUFFER_SIZE; at++) {
    if (!wave->num_channels || note->position + wave->num_channels > wave->length) {
      note->waveform = 0;
      return;
    }
    int sum = 0;
    for (int i = 0; i < wave->num_channels; i++) sum += wave->waveform[note->position++];
    add_to_sound(at, note->volume * sum / wave->num_channels);
  }
}
static void* audio_loop(void* nothing) {
  sigset_t broken; /* A command that ends early must not end the program by SIGPIPE. */
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken, 0);
  const char* own = getenv("WEFT_LF_AUDIO");
  FILE* to = popen(own ? own : "exec aplay -q -t raw -f S16_LE -r 44100 -c 1", "w");
  int16_t full[AUDIO_BUFFER_SIZE];
  bool heard = to != 0, ending = false;
  while (!ending) { /* The buffer during which the loop ends is still heard. */
    pthread_mutex_lock(&audio.lock);
    instant_t until = audio.begins + BUFFER_DURATION_NS;
    ending = audio.ending;
    pthread_mutex_unlock(&audio.lock);
    if (!ending) lf_sleep(until - lf_time_physical());
    pthread_mutex_lock(&audio.lock);
    memcpy(full, audio.buffer, sizeof full);
    memset(audio.buffer, 0, sizeof full);
    audio.begins = until;
    for (int i = 0; i < NUM_NOTES; i++) audio_add(&audio.notes[i], 0);
    pthread_cond_broadcast(&audio.moved);
    pthread_mutex_unlock(&audio.lock);
    heard = heard && fwrite(full, sizeof full, 1, to) == 1 && !fflush(to);
  }
  if (to) pclose(to);
  return nothing;
}
void lf_start_audio_loop(instant_t start_time) {
  if (audio.started) return;
  audio.started = true, audio.ending = false, audio.begins = start_time;
  if (pthread_create(&audio.thread, 0, audio_loop, 0))
    lf_print_error_and_exit("no thread can be made to play sound");
}
void lf_stop_audio_loop(void) {
  if (!audio.started) return;
  pthread_mutex_lock(&audio.lock);
  audio.ending = true;
  pthread_cond_broadcast(&audio.moved);
  pthread_mutex_unlock(&audio.lock);
  pthread_join(audio.thread, 0);
  audio.started = false;
}
int lf_play_audio_waveform(lf_waveform_t* waveform, float emphasis, instant_t start_time) {
  pthread_mutex_lock(&audio.lock);
  while (audio.started && !audio.ending && start_time >= audio.begins + BUFFER_DURATION_NS)
    pthread_cond_wait(&audio.moved, &audio.lock);
  bool late = start_time < audio.begins;
  int at = late ? 0 : (int)((start_time - audio.begins) * SAMPLE_RATE / BILLION);
  if (!waveform)
    add_to_sound(at, (double)emphasis * MAX_AMPLITUDE);
  else if (waveform->length && emphasis != 0) {
    audio_note* note = &audio.notes[audio.next++ % NUM_NOTES];
    *note = (audio_note){waveform, 0, emphasis};
    audio_add(note, at);
  }
  pthread_mutex_unlock(&audio.lock);
  return late;
}
