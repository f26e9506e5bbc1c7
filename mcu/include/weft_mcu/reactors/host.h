/* reactors/host.h: reads a program's command line on a host, with the options of upstream's
 * programs. Part of weft_mcu/reactors_run.h. */
#ifndef WEFT_RX_HOST_H
#define WEFT_RX_HOST_H
#include "weft_mcu/reactors/env.h"
#include <stdio.h>

static void weft_rx_usage(const char *program) {
  printf(
      "usage: %s [-f true|false] [-o N UNIT | -o forever] [-k true|false] [-w N]\n"
      "  -f, --fast       do not wait for physical time\n"
      "  -o, --timeout    stop after N nsec, usec, msec, sec, min, hour, day or week of logical time\n"
      "  -k, --keepalive  do not stop when nothing is left to do\n"
      "  -w, --workers    how many threads run reactions, at most as many as the program was built for\n",
      program);
}
static int weft_rx_bool(const char *text, bool *value) {
  if (!text || (strcmp(text, "true") && strcmp(text, "false"))) return 1;
  *value = text[0] == 't';
  return 0;
}
/* Return a duration given as NUMBER UNIT, with upstream's spellings, in ns. The result is less
 * than 0 if the text is not a duration. */
static int64_t weft_rx_duration(const char *number, const char *unit) {
  static const struct { const char *name; int64_t ns;
  } units[] = {{"ns", 1},
               {"nsec", 1},
               {"us", 1000},
               {"usec", 1000},
               {"ms", 1000000},
               {"msec", 1000000},
               {"s", 1000000000},
               {"sec", 1000000000},
               {"second", 1000000000},
               {"m", 60000000000},
               {"min", 60000000000},
               {"minute", 60000000000},
               {"h", 3600000000000},
               {"hour", 3600000000000},
               {"d", 86400000000000},
               {"day", 86400000000000},
               {"week", 604800000000000}};
  char *end;
  long long n = strtoll(number, &end, 10);
  if (*end || end == number || n < 0 || !unit) return -1;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t length = strlen(units[i].name);
    if (!strncmp(unit, units[i].name, length) &&
        (!unit[length] || (length > 2 && unit[length] == 's' && !unit[length + 1])))
      return n > INT64_MAX / units[i].ns ? INT64_MAX / 8 : n * units[i].ns;
  }
  return -1;
}
int weft_rx_main(int argc, char **argv, weft_rx_options options) {
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : 0;
    int bad = 0;
    if (!strcmp(a, "-h") || !strcmp(a, "--help")) {
      weft_rx_usage(argv[0]);
      return 0;
    } else if (!strcmp(a, "-f") || !strcmp(a, "--fast"))
      bad = weft_rx_bool(next, &options.fast), i++;
    else if (!strcmp(a, "-k") || !strcmp(a, "--keepalive")) {
      bad = weft_rx_bool(next, &options.keepalive), i++;
      options.no_keepalive = !options.keepalive;
    } else if (!strcmp(a, "-o") || !strcmp(a, "--timeout")) {
      if (next && !strcmp(next, "forever")) options.timeout_ns = -1, i++;
      else if (next && i + 2 < argc &&
               (options.timeout_ns = weft_rx_duration(next, argv[i + 2])) >= 0)
        i += 2;
      else bad = 1;
    } else if (!strcmp(a, "-w") || !strcmp(a, "--workers")) {
      char *end = 0;
      long n = next ? strtol(next, &end, 10) : 0;
      bad = !next || *end || n < 1 || n > 1024;
      options.workers = (unsigned)n, i++;
    } else {
      fprintf(stderr, "%s: unknown option %s\n", argv[0], a);
      weft_rx_usage(argv[0]);
      return 2;
    }
    if (bad) {
      fprintf(stderr, "%s: %s needs a value: %s\n", argv[0], a,
              a[1] == 'o' || !strcmp(a, "--timeout")   ? "a number and a unit, as in 5 sec"
              : a[1] == 'w' || !strcmp(a, "--workers") ? "a number from 1 to 1024"
                                                       : "true or false");
      return 2;
    }
  }
  return weft_rx_run(&options);
}
#endif
