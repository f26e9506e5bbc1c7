/* lf_api.c: a program as lf/ emits it, with static tables and lf.h. It uses every name of the
 * interface that reaction bodies may use. */
#define WEFT_RX_REACTIONS 6
#define WEFT_RX_TIMERS 1
#define WEFT_RX_EVENTS 8
#define WEFT_RX_DELAYS 1
#define WEFT_RX_TOKENS 8
#define WEFT_RX_TRACE 1
#include "weft_mcu/lf.h"
#include "../host/check.h"

typedef WEFT_RX_PORT(int) int_port;
typedef WEFT_RX_TOKEN_PORT(int *) ints_port;
typedef WEFT_RX_ACTION(double) double_action;
typedef WEFT_RX_ACTION(char) char_action;
typedef WEFT_RX_TOKEN_ACTION(char *) text_action;
typedef WEFT_RX_DELAY(int_port) int_delay;
typedef struct {
  int bank_index;
  const char *_lf_name;
  weft_rx_timer t;
  int_port out[3], *out_p[3];
  ints_port array;
  double_action real;
  char_action letter;
  text_action text;
  int runs;
} Source;
typedef struct { int_port *in[3]; int in_width; ints_port *array; int_port *late; int sum; } Sink;
static Source source;
static Sink sink;
static int_delay later =
    WEFT_RX_DELAY_INIT(WEFT_RX_TRIG(5, 1 << 4), &source.out[2], MSEC(1), WEFT_RX_AFTER, 0);
static Source source = {
    ._lf_name = "Source",
    .t = WEFT_RX_TIMER(0, MSEC(10), WEFT_RX_TRIG(1, 1 << 0)),
    .out = {WEFT_RX_OUT(WEFT_RX_TRIG(3, 1 << 2)), WEFT_RX_OUT(WEFT_RX_TRIG(3, 1 << 2)),
            WEFT_RX_OUT(WEFT_RX_TRIG(7, 1 << 2 | 1 << 5))},
    .out_p = {&source.out[0], &source.out[1], &source.out[2]},
    .array = WEFT_RX_TOKEN_OUT(WEFT_RX_TRIG(0, 1 << 3), sizeof(int)),
    .real = WEFT_RX_VALUE_INIT(double, WEFT_RX_TRIG(0, 1 << 1), MSEC(1), 0, WEFT_RX_DEFER,
                               WEFT_RX_LOGICAL),
    .letter = WEFT_RX_VALUE_INIT(char, WEFT_RX_TRIG(0, 1 << 1), MSEC(1), 0, WEFT_RX_DEFER,
                                 WEFT_RX_LOGICAL),
    .text = WEFT_RX_TOKEN_ACTION_INIT(char, WEFT_RX_TRIG(0, 1 << 1), MSEC(1), 0, WEFT_RX_DEFER,
                                      WEFT_RX_LOGICAL),
};
static Sink sink = {.in = {&source.out[0], &source.out[1], &source.out[2]},
                    .in_width = 3,
                    .array = &source.array,
                    .late = &later.port};

static int freed;
static void free_counted(void *p) { freed++, free(p); }
static void *copy_counted(void *p) {
  int *copy = malloc(2 * sizeof *copy);
  memcpy(copy, p, 2 * sizeof *copy);
  return copy;
}
static void late_handler(void *instance) {
  (void)instance;
  CHECK(0);
}
static void Source_r0(void *instance) {
  Source *self = instance;
  int_port **out = self->out_p;
  WEFT_RX_DEADLINE(self, SEC(100), late_handler);
  CHECK(!lf_check_deadline(self, true));
  CHECK(lf_time_logical_elapsed() == MSEC(10) * self->runs);
  CHECK(lf_time_logical() == lf_time_start() + lf_time_logical_elapsed());
  CHECK(lf_tag().microstep == 0 && lf_tag().time == lf_time_logical());
  CHECK(!strcmp(lf_reactor_name(self), "Source"));
  lf_set(out[0], 1);
  if (self->runs == 0) lf_set(out[2], 5);
  int *v = malloc(2 * sizeof *v);
  v[0] = 10, v[1] = 20;
  ints_port *array = &self->array;
  lf_set_destructor(array, free_counted);
  lf_set_copy_constructor(array, copy_counted);
  lf_set_array(array, v, 2);
  double x = 2.5;
  CHECK(lf_schedule_copy(&self->real, 0, &x, 1) > 0);
  CHECK(lf_schedule_int(&self->letter, 0, 'w') > 0);
  CHECK(lf_schedule_copy(&self->text, MSEC(0), "weft", 5) > 0);
  self->runs++;
}
static void Source_r1(void *instance) {
  Source *self = instance;
  double_action *real = &self->real;
  text_action *text = &self->text;
  CHECK(real->is_present && real->has_value && real->value == 2.5);
  CHECK(self->letter.value == 'w');
  CHECK(text->length == 5 && !strcmp(text->value, "weft") && text->token->length == 5);
  if (self->runs == 3) lf_request_stop();
}
static void Sink_r0(void *instance) {
  Sink *self = instance;
  int_port **in = self->in;
  int in_width = self->in_width;
  lf_multiport_iterator_t i = lf_multiport_iterator(in);
  for (int channel; (channel = lf_multiport_next(&i)) >= 0;) self->sum += in[channel]->value;
  CHECK(!in[1]->is_present);
}
static void Sink_r1(void *instance) {
  Sink *self = instance;
  ints_port *array = self->array;
  lf_token_t *mine = lf_writable_copy(array);
  CHECK(mine != array->token && ((int *)mine->value)[1] == 20);
  ((int *)mine->value)[1] = 7;
  CHECK(array->value[1] == 20 && array->length == 2);
  weft_rx_hold_token(mine), weft_rx_drop_token(mine);
}
static void Sink_r2(void *instance) {
  Sink *self = instance;
  self->sum += 100 * self->late->value;
  CHECK(lf_time_logical_elapsed() == MSEC(1));
}
const weft_rx_reaction weft_rx_reactions[] = {
    {Source_r0, &source}, {Source_r1, &source}, {Sink_r0, &sink},
    {Sink_r1, &sink},     {Sink_r2, &sink},     {weft_rx_delay_send, &later.delay}};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
const weft_rx_range weft_rx_timers[] = {{&source.t, 1, 0}};
const char *const weft_rx_names[] = {"source.0", "source.1", "sink.0", "sink.1", "sink.2", 0};
const weft_rx_program weft_rx_programs[] = {{.name = "api", .count = 6, .ranges = 1}};
#include "weft_mcu/reactors_run.h"

static void whole_program(void) {
  char fast[] = "-f", yes[] = "true", out[] = "-o", number[] = "1", unit[] = "sec", name[] = "api";
  char *arguments[] = {name, fast, yes, out, number, unit};
  CHECK(weft_rx_main(6, arguments, WEFT_RX_OPTIONS) == 0);
  CHECK(source.runs == 3 && sink.sum == 1 + 5 + 1 + 1 + 500 && freed == 6);
}
static void times(void) {
  CHECK(MSEC(1) == 1000000 && SEC(2) == 2 * BILLION && MINUTES(1) == SECS(60) &&
        WEEK(1) == DAYS(7));
  CHECK(lf_time_add(FOREVER, 5) == FOREVER && lf_time_add(NEVER, 5) == NEVER &&
        lf_time_add(FOREVER - 1, 5) == FOREVER);
  CHECK(lf_tag_compare((tag_t){1, 2}, (tag_t){1, 3}) == -1 &&
        lf_tag_compare((tag_t){2, 0}, (tag_t){1, 3}) == 1 &&
        lf_tag_compare((tag_t){1, 3}, (tag_t){1, 3}) == 0);
  CHECK(lf_tag_compare(lf_delay_tag((tag_t){1, 2}, 0), (tag_t){1, 3}) == 0 &&
        lf_tag_compare(lf_delay_tag((tag_t){1, 2}, 5), (tag_t){6, 0}) == 0);
  int64_t before = lf_time_physical();
  lf_sleep(USEC(10));
  CHECK(lf_time_physical() - before >= USEC(10));
}
static void options(void) {
  CHECK(weft_rx_duration("5", "sec") == SEC(5) && weft_rx_duration("5", "secs") == SEC(5) &&
        weft_rx_duration("3", "minutes") == MINUTE(3));
  CHECK(weft_rx_duration("5", "parsec") < 0 && weft_rx_duration("x", "sec") < 0 &&
        weft_rx_duration("-1", "sec") < 0 && weft_rx_duration("1", "secx") < 0);
  char name[] = "api", bad[] = "-z", fast[] = "-f", maybe[] = "maybe", out[] = "-o", number[] = "5",
       help[] = "--help";
  CHECK(weft_rx_main(2, (char *[]){name, bad}, WEFT_RX_OPTIONS) == 2);
  CHECK(weft_rx_main(3, (char *[]){name, fast, maybe}, WEFT_RX_OPTIONS) == 2);
  CHECK(weft_rx_main(3, (char *[]){name, out, number}, WEFT_RX_OPTIONS) == 2);
  CHECK(weft_rx_main(2, (char *[]){name, help}, WEFT_RX_OPTIONS) == 0);
}
int main(void) {
  TEST(whole_program);
  TEST(times);
  TEST(options);
  return check_end();
}
