/* Uses keys of the terminal as sensors. The names are those of upstream's utility, but this utility
 * needs no ncurses. It has no windows: the message comes first; the output of the program, and the
 * ticks, follow on lines of their own. */
#ifndef WEFT_LF_SENSOR_SIMULATOR_H
#define WEFT_LF_SENSOR_SIMULATOR_H

/* Show the message, and from now on print the messages of lf_print and similar functions. Messages
 * up to `log_level` also go to the file `log_file`, unless it is NULL. A line has
 * `tick_window_width` ticks, or 40 if that is 0. Returns 0, or an error number. */
int start_sensor_simulator(const char* message_lines[], int number_of_lines, int tick_window_width,
                           const char* log_file, int log_level);
/* Give the terminal back. The end of the program gives the terminal back too. */
void end_sensor_simulator(void);
/* Print a tick, on the line of the previous ticks. */
void show_tick(const char* character);
/* Schedule the physical action `action` whenever `key` is pressed, with the key as its value. `key`
 * is '\n' or a character from ' ' on, or '\0' for every key. Keys are read from the first call on.
 * Returns 0 on success, 1 if the key already has an action, 2 if there is no such key, and 3 if
 * `action` is NULL. */
int register_sensor_key(char key, void* action);
#endif
