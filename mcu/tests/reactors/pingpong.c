/* pingpong: Savina's PingPong as lf/ would emit it. The program prints ns per reaction on this
 * machine. */
#define WEFT_RX_REACTIONS 5
#ifdef WORKERS
#define WEFT_RX_WORKERS WORKERS
#endif
#define WEFT_RX_EVENTS 4
#include "weft_mcu/reactors.h"
#include <stdio.h>
typedef WEFT_RX_PORT(int) int_port;
typedef struct {
  int left, count;
  int_port *receive;
  int_port send;
  weft_rx_void_action serve;
} Ping;
typedef struct { int count, expected; int_port *receive; int_port send; } Pong;
static Ping ping;
static Pong pong;
#ifndef PINGS
#define PINGS 10000000
#endif
static Ping ping = {
    .left = PINGS,
    .receive = &pong.send,
    .send = WEFT_RX_OUT(WEFT_RX_TRIG(0, 1u << 2)),
    .serve = WEFT_RX_ACTION_INIT(WEFT_RX_TRIG(0, 1u << 0), 0, 0, WEFT_RX_DEFER, WEFT_RX_LOGICAL)};
static Pong pong = {
    .expected = PINGS, .receive = &ping.send, .send = WEFT_RX_OUT(WEFT_RX_TRIG(0, 1u << 3))};
static void serve(void *instance) {
  Ping *self = instance;
  int_port *send = &self->send;
  weft_rx_set(send, self->left--);
}
static void received(void *instance) {
  Ping *self = instance;
  weft_rx_void_action *serve = &self->serve;
  if (self->left > 0) weft_rx_schedule(serve, 0);
  else weft_rx_request_stop();
}
static void start(void *instance) {
  Ping *self = instance;
  weft_rx_schedule(&self->serve, 0);
}
static void ponged(void *instance) {
  Pong *self = instance;
  int_port *send = &self->send, *receive = self->receive;
  self->count++;
  weft_rx_set(send, receive->value);
}
static void done(void *instance) {
  Pong *self = instance;
  if (self->count != self->expected) weft_panic("pings are lost");
}
const weft_rx_reaction weft_rx_reactions[] = {
    {serve, &ping}, {start, &ping}, {ponged, &pong}, {received, &ping}, {done, &pong}};
const weft_rx_index weft_rx_triggers[] = {WEFT_RX_END};
const weft_rx_index weft_rx_levels[] = {0, 1, 2, 3, 4, 5};
const weft_rx_program weft_rx_programs[] = {{.name = "PingPong",
                                             .count = 5,
                                             .levels = 5,
                                             .startup = WEFT_RX_TRIG(0, 2),
                                             .shutdown = WEFT_RX_TRIG(0, 16)}};
#include "weft_mcu/reactors_run.h"
int main(void) {
  struct timespec before,
      after; /* the CPU time of all threads, because other programs may be using the machine */
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  weft_rx_run(0);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  printf("%.1f ns a reaction\n",
         ((double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec)) /
             (3.0 * PINGS));
  bool good = pong.count == PINGS && ping.left == 0;
  printf("%d passed, %d failed\n", good, !good);
  return !good;
}
