/* Implements sensor_simulator.h: a thread reads the keys from the standard input, which need not be
 * a terminal. */
#include "sensor_simulator.h"
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>
#include "weft_mcu/lf.h"

enum { SENSOR_TICKS = 40, SENSOR_WAIT = 50 /* ms until the thread sees that it must end */ };
static struct {
  pthread_mutex_t lock; /* protects the output, and `actions` */
  bool started, reading, raw;
  bool ending;      /* whether the thread that reads is to end; atomic */
  int width, ticks; /* the number of ticks that a line may have, and the number that it has */
  FILE* log;
  pthread_t reader;
  struct termios before;
  void* actions[128]; /* by key; the action of every key is at 0 */
} sensor = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Print a text on lines of its own, below the ticks so far. */
static void sensor_print(const char* format, va_list list) {
  pthread_mutex_lock(&sensor.lock);
  if (sensor.ticks) putchar('\n');
  sensor.ticks = 0;
  if (sensor.log) {
    va_list again;
    va_copy(again, list);
    vfprintf(sensor.log, format, again);
    va_end(again);
  }
  vprintf(format, list);
  fflush(stdout);
  pthread_mutex_unlock(&sensor.lock);
}
static void sensor_pressed(int slot, int key) {
  pthread_mutex_lock(&sensor.lock);
  void* action = sensor.actions[slot];
  pthread_mutex_unlock(&sensor.lock);
  if (action) lf_schedule_copy(action, 0, &key, 1);
}
static void* sensor_read(void* nothing) {
  (void)nothing;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  while (!__atomic_load_n(&sensor.ending, __ATOMIC_ACQUIRE)) {
    unsigned char key;
    if (poll(&input, 1, SENSOR_WAIT) <= 0) continue;
    if (read(STDIN_FILENO, &key, 1) != 1) break; /* The input has ended. */
    if (key && key < 128) sensor_pressed(key, key);
    sensor_pressed(0, key);
  }
  return 0;
}

int start_sensor_simulator(const char* message_lines[], int number_of_lines, int tick_window_width,
                           const char* log_file, int log_level) {
  if (sensor.started) return 0;
  sensor.started = true, sensor.ending = false;
  sensor.width = tick_window_width > 0 ? tick_window_width : SENSOR_TICKS;
  sensor.log = log_file ? fopen(log_file, "w") : 0;
  if (log_file && !sensor.log) lf_print_warning("%s cannot be written", log_file);
  for (int i = 0; i < number_of_lines; i++) puts(message_lines[i]);
  fflush(stdout);
  if (isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &sensor.before)) {
    struct termios raw = sensor.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    sensor.raw = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  lf_register_print_function(sensor_print, log_level);
  atexit(end_sensor_simulator);
  return 0;
}
void end_sensor_simulator(void) {
  if (!sensor.started) return;
  sensor.started = false;
  __atomic_store_n(&sensor.ending, true, __ATOMIC_RELEASE);
  if (sensor.reading) pthread_join(sensor.reader, 0);
  lf_register_print_function(0, -1);
  if (sensor.raw) tcsetattr(STDIN_FILENO, TCSANOW, &sensor.before);
  if (sensor.ticks) putchar('\n');
  if (sensor.log) fclose(sensor.log);
  sensor.log = 0, sensor.ticks = 0, sensor.reading = sensor.raw = false;
}
void show_tick(const char* character) {
  if (!character) return;
  pthread_mutex_lock(&sensor.lock);
  fputs(character, stdout);
  if (++sensor.ticks >= sensor.width) {
    putchar('\n');
    sensor.ticks = 0;
  }
  fflush(stdout);
  pthread_mutex_unlock(&sensor.lock);
}
int register_sensor_key(char key, void* action) {
  int slot = (unsigned char)key;
  if (!action) return 3;
  if (slot >= 128 || (slot < ' ' && slot && slot != '\n')) return 2;
  pthread_mutex_lock(&sensor.lock);
  bool taken = sensor.actions[slot] != 0;
  if (!taken) sensor.actions[slot] = action;
  bool first = !sensor.reading;
  sensor.reading = true;
  pthread_mutex_unlock(&sensor.lock);
  if (taken) return 1;
  if (first && pthread_create(&sensor.reader, 0, sensor_read, 0)) {
    lf_print_error("no thread can be made to read the keys");
    sensor.reading = false;
  }
  return 0;
}
