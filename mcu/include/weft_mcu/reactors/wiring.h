/* reactors/wiring.h: finds mistakes in a program's tables before the start (R24). Part of
 * weft_mcu/reactors_run.h. */
#ifndef WEFT_RX_WIRING_H
#define WEFT_RX_WIRING_H
#include "weft_mcu/reactors/env.h"

WEFT_INLINE weft_rx_timer *weft_rx_in_range(WEFT_RX_TABLE weft_rx_range *range, uint32_t i) {
  return (weft_rx_timer *)(void *)((uint8_t *)range->first + (size_t)i * range->stride);
}
/* On a device only a debug build checks; a release build has no room for the texts. */
#if WEFT_RX_HOST || WEFT_DEBUG
#if !WEFT_RX_MASKS
static bool weft_rx_bad_trig(weft_rx_trig trig, weft_rx_index count) {
  if (trig & WEFT_RX_ONE_BIT) return (trig & ~WEFT_RX_ONE_BIT) >= count;
  for (WEFT_RX_TABLE weft_rx_index *r = &weft_rx_triggers[trig]; *r != WEFT_RX_END; r++)
    if (*r >= count) return true;
  return false;
}
#else
static bool weft_rx_bad_trig(weft_rx_trig trig, weft_rx_index count) {
  return count < WEFT_RX_WORD_BITS && trig >> count;
}
#endif
/* Return 0, or a text that describes the mistake. */
static const char *weft_rx_wrong(const weft_rx_options *options) {
  if (options->fast && !WEFT_RX_FAST)
    return "weft: fast is asked for; define WEFT_RX_FAST 1 (devices)";
  if (options->timeout_ns >= 0 && weft_rx_ticks(options->timeout_ns) >= WEFT_RX_HORIZON)
    return "weft: the timeout is beyond the horizon of this tick; define a longer WEFT_TICK_NS, or WEFT_RX_TIME64=1";
  for (unsigned i = 0; i < WEFT_RX_ENCLAVES; i++) {
    WEFT_RX_TABLE weft_rx_program *p = &weft_rx_programs[i];
    if (p->count > WEFT_RX_REACTIONS)
      return "weft: a program has more reactions than WEFT_RX_REACTIONS";
    for (unsigned r = 0; r < p->count; r++)
      if (!weft_rx_reactions[p->first + r].fn)
        return "weft: a reaction has no function; does weft_rx_reactions have as many entries as `count` says?";
    if (weft_rx_bad_trig(p->startup, p->count) || weft_rx_bad_trig(p->shutdown, p->count))
      return "weft: startup or shutdown triggers a reaction that is not there";
#if WEFT_RX_TIMERS
    uint32_t timers = 0;
    for (unsigned k = 0; k < p->ranges; k++) {
      WEFT_RX_TABLE weft_rx_range *range = &weft_rx_timers[p->first_range + k];
      if (!range->first || (range->count > 1 && range->stride < sizeof(weft_rx_timer)))
        return "weft: a range of timers has no first one, or a stride that is too small";
      for (uint32_t t = 0; t < range->count; t++) {
        weft_rx_timer *timer = weft_rx_in_range(range, t);
        if ((weft_rx_distance)timer->period <= 0)
          return "weft: a timer has no period, or one beyond the horizon; a timer that fires once is a weft_rx_once";
        if ((weft_rx_distance)timer->time < 0)
          return "weft: a timer's offset is negative, or beyond the horizon";
        if (weft_rx_bad_trig(timer->trig, p->count))
          return "weft: a timer triggers a reaction that is not there";
      }
      timers += range->count;
    }
    if (timers > WEFT_RX_TIMERS) return "weft: there are more timers than WEFT_RX_TIMERS";
#endif
#if WEFT_RX_STATIC
    if (!p->slots || p->loop > p->slots)
      return "weft: a static schedule needs slots, and a loop that is one of them or their number";
    if (weft_rx_slots[p->slots].gap != WEFT_RX_LAST_GAP)
      return "weft: a static schedule ends with WEFT_RX_SLOTS_END";
    uint64_t round = 0;
    for (unsigned k = 0; k < p->slots; k++) {
      if (weft_rx_bad_trig(weft_rx_slots[k].trig, p->count))
        return "weft: a slot triggers a reaction that is not there";
      if (WEFT_RX_MASKS && !weft_rx_slots[k].trig)
        return "weft: a slot triggers nothing; add its gap to the next one's";
      if (k && !weft_rx_slots[k].gap)
        return "weft: two slots of a static schedule have one time; make them one";
      if (k >= p->loop) round += weft_rx_slots[k].gap;
    }
    if (p->loop < p->slots && !round) return "weft: a static schedule goes round in no time";
#endif
#if WEFT_RX_WORKERS > 1
    if (p->levels && weft_rx_levels[p->first_level + p->levels] != p->count)
      return "weft: the last entry of weft_rx_levels is not the number of reactions";
    for (unsigned k = 0; k < p->levels; k++)
      if (weft_rx_levels[p->first_level + k] >= weft_rx_levels[p->first_level + k + 1])
        return "weft: weft_rx_levels does not ascend";
#endif
  }
#if WEFT_RX_LINKS
  for (unsigned k = 0; k < WEFT_RX_LINKS; k++)
    if (weft_rx_links[k].from >= WEFT_RX_ENCLAVES || weft_rx_links[k].to >= WEFT_RX_ENCLAVES ||
        weft_rx_links[k].from == weft_rx_links[k].to || weft_rx_links[k].delay_ns <= 0)
      return "weft: a link between enclaves needs two of them and a delay greater than 0";
#endif
  return 0;
}
#else
WEFT_INLINE const char *weft_rx_wrong(const weft_rx_options *options) {
  return (void)options, (const char *)0;
}
#endif
#endif
