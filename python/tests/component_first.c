// A component as if compiled with the first edition of component_abi.h, whose tables were
// shorter: the declarations below are those of the first edition, and never change.
#include <stddef.h>
#include <stdint.h>

typedef struct weft_value {
  uint64_t bits;
  void* block;
} weft_value;
typedef struct weft_place {
  const char* file;
  uint32_t line;
} weft_place;
typedef struct weft_process weft_process;
typedef struct weft_api {
  uint32_t abi;
  uint32_t size;
  void* (*allocate)(size_t bytes);
  void (*release)(void* block);
  int (*read)(weft_process*, uint32_t end, weft_value* to, weft_place at);
  int (*write)(weft_process*, uint32_t end, weft_value* from, weft_place at);
} weft_api;  // and further entries, which the component does not use
typedef struct weft_parameter {
  const char* name;
  const char* type;
  const char* doc;
  uint32_t role;
  uint32_t has_default;
  weft_value fallback;
} weft_parameter;
typedef struct weft_argument {
  uint32_t end;
  weft_value value;
} weft_argument;
typedef struct weft_failure {
  uint32_t end;
  char* type;
  char* text;
} weft_failure;
typedef struct weft_process_info {
  const char* name;
  const char* doc;
  const char* file;
  uint32_t line;
  uint32_t count;
  const weft_parameter* parameters;
  int (*run)(const weft_api*, weft_process*, weft_argument*, weft_failure*);
} weft_process_info;
typedef struct weft_component {
  uint32_t abi;
  uint32_t size;
  const char* name;
  const char* doc;
  const char* compiler;
  uint32_t count;
  uint32_t info_size;
  const weft_process_info* processes;
  const char* error;
} weft_component;

static int echo(const weft_api* api, weft_process* p, weft_argument* a, weft_failure* f,
                int64_t times, int64_t plus) {
  const weft_place at = {__FILE__, __LINE__};
  for (;;) {
    weft_value v;
    int s = api->read(p, a[0].end, &v, at);
    f->end = a[0].end;
    if (s != 0) return s;
    v.bits = (uint64_t)((int64_t)v.bits * times + plus);
    s = api->write(p, a[1].end, &v, at);
    f->end = a[1].end;
    if (s != 0) return s;
  }
}
static int doubles(const weft_api* api, weft_process* p, weft_argument* a, weft_failure* f) {
  return echo(api, p, a, f, 2, 0);
}
static int adds(const weft_api* api, weft_process* p, weft_argument* a, weft_failure* f) {
  return echo(api, p, a, f, 1, (int64_t)a[2].value.bits);
}

static const weft_parameter parameters[] = {{"source", "i", "", 1, 0, {0, NULL}},
                                            {"out", "i", "", 2, 0, {0, NULL}},
                                            {"by", "i", "how much", 0, 1, {1, NULL}}};
static const weft_process_info infos[] = {
    {"doubles", "", __FILE__, __LINE__, 2, parameters, &doubles},
    {"adds", "", __FILE__, __LINE__, 3, parameters, &adds}};
static const weft_component made = {
    1, sizeof made, "first", "", "a compiler of then", 2, sizeof(weft_process_info), infos, NULL};

__attribute__((visibility("default"))) const weft_component* weft_component_entry(void) {
  return &made;
}
