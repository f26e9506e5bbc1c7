/* claim.pml: the claim and wake-up protocol of src/scheduler.h, for spin.
 *
 * Two cores serve one queue. At any moment an interrupt may post an event, another context may
 * cancel an event, and the clock may tick; an alarm fires only on equality. What the code does
 * under the lock is one step; everything else (reading the flag and the clock, arming, falling
 * asleep, the wake after a post, the action) is a step of its own.
 *
 * Equal times are ordered by number here: their order is a property of the queue (unit tests), not
 * of the protocol.
 * Checked: one action of an actor at a time (M3); no action before its release (M2); none after a
 * successful cancel, none twice (M4); when both cores sleep they hold the events that they should
 * hold (M9); at the end every posted event has run or was cancelled.
 * MUTANT=1 … 6 as in the code (1 no news, 2 actor not given back at put-back, 3 flag cleared too
 * late, 4 withdrawn claim not noticed, 5 claimed but not marked, 6 no wake), 7 a wake between the
 * look and the sleep is forgotten, 8 as in the RP2040 port (the alarm is set after the latches are
 * cleared). Each mutant must fail.
 *
 * Arming works as on the RP2040: one step for each register, and the clock may tick in between. The
 * registers are the alarm, the timer's latch (`line`, up until it is cleared) and the NVIC's latch
 * (`pend`, set as long as the line is up). A core is woken when its `pend` becomes set, not while
 * it is set.
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define EVENTS 3
#define NONE 255
#define LAST 3 /* the clock stops here; all releases are before */

mtype = { idle, queued, claimed, running, done, cancelled };
mtype state[EVENTS];
byte time[EVENTS], actor[EVENTS];
bit busy[2];           /* the actors' marks */
byte inside[2];        /* running actions of each actor: for the property, not the protocol */
byte claim[2];         /* claimed[core] */
bit news[2], woken[2], asleep[2], armed[2];
bit line[2], pend[2];  /* the alarm's latch in the timer, and in the core's NVIC */
byte alarm[2];
byte now = 0;
byte outside = 0;      /* posts and cancels that are under way */

inline WAKE() { d_step { if :: MUTANT != 6 -> woken[0] = 1; woken[1] = 1 :: else fi; outside-- } }
inline NEWS() { outside++; if :: MUTANT != 1 -> news[0] = 1; news[1] = 1 :: else fi }

/* e: the first queued event whose actor is free, or NONE. Equal times: the lower number. */
inline SCAN(e) {
  e = NONE;
  i = 0;
  do
  :: i < EVENTS ->
     if
     :: state[i] == queued && !busy[actor[i]] && (e == NONE || time[i] < time[e]) -> e = i
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

/* The cores are alike, and each has its own alarm. One core that arms in steps, beside one that
 * arms at once, is enough, and needs half the states. */
#ifdef ALL
#define STEPS(c) true
#else
#define STEPS(c) (c == 0)
#endif

/* Take and mark the first event; if it is due commit to it, else claim it. */
inline LOOK() {
  SCAN(e);
  if
  :: e == NONE -> news[c] = 0 /* the alarm stays: it only wakes the core needlessly */
  :: e != NONE && time[e] > now ->
     state[e] = claimed;
     claim[c] = e;
     if :: MUTANT != 3 -> news[c] = 0 :: else fi;
     if :: MUTANT != 5 -> busy[actor[e]] = 1 :: else fi
  :: e != NONE && time[e] <= now -> busy[actor[e]] = 1; COMMIT()
  fi
}
inline COMMIT() { assert(state[e] == queued || state[e] == claimed); state[e] = running; commit = 1 }

proctype core(byte c) {
  byte e = NONE, i;
  bit commit = 0;
  d_step { LOOK() }
turn:
  if
  :: commit -> /* the action; then give the actor back and check again */
     assert(now >= time[e]);
     d_step { inside[actor[e]]++; assert(inside[actor[e]] == 1) }
     d_step { inside[actor[e]]--; state[e] = done }
     d_step { busy[actor[e]] = 0; commit = 0; LOOK() }
  :: !commit && e == NONE -> /* idle */
     do
     :: news[c] -> break
     :: else -> asleep[c] = 1; woken[c] -> d_step { woken[c] = 0; asleep[c] = 0 }
     od;
     skip;
     d_step { LOOK() }
  :: !commit && e != NONE -> /* wait with a claim */
     if :: MUTANT == 3 -> news[c] = 0 :: else fi;
     if
     :: STEPS(c) ->
#if MUTANT != 8
        d_step { armed[c] = 1; alarm[c] = time[e] }
#endif
        line[c] = 0;
        pend[c] = line[c];
#if MUTANT == 8
        d_step { armed[c] = 1; alarm[c] = time[e] }
#endif
     :: else -> d_step { armed[c] = 1; alarm[c] = time[e]; line[c] = 0; pend[c] = 0 }
     fi;
     do
     :: now >= time[e] || news[c] -> break
     :: else ->
        if :: MUTANT == 7 -> woken[c] = 0 :: else fi;
        asleep[c] = 1;
        woken[c] -> d_step { woken[c] = 0; asleep[c] = 0 }
     od;
     skip;
     d_step {
       if
       :: claim[c] != e && MUTANT != 4 -> LOOK() /* withdrawn */
       :: else ->
          claim[c] = NONE;
          if
          :: news[c] -> if :: MUTANT != 2 -> busy[actor[e]] = 0 :: else fi; state[e] = queued; LOOK()
          :: else -> COMMIT()
          fi
       fi
     }
  fi;
  goto turn
}

proctype post(byte e) { /* an interrupt, or an action elsewhere */
  d_step { state[e] = queued; NEWS() }
  WAKE()
}

proctype cancel(byte e) {
  d_step {
    if
    :: state[e] == queued -> state[e] = cancelled
    :: state[e] == claimed && (claim[0] == e || claim[1] == e) ->
       if :: claim[0] == e -> claim[0] = NONE :: else -> claim[1] = NONE fi;
       busy[actor[e]] = 0;
       state[e] = cancelled
    :: else
    fi;
    NEWS()
  }
  WAKE()
}

/* Whether there is an event that core c should hold instead of what it holds. */
#define MISSED(c, x) (state[x] == queued && (claim[c] == NONE -> !busy[actor[x]] \
  : time[x] < time[claim[c]] && (!busy[actor[x]] || actor[x] == actor[claim[c]])))
#define SLEEPS(c) (asleep[c] && !woken[c])

/* The alarm fires on equality only. The core gets an event unless its NVIC had the line pending
 * already. */
inline FIRE(c) {
  if
  :: armed[c] && alarm[c] == now ->
     armed[c] = 0;
     alarm[c] = 0; /* reduces the number of states */
     line[c] = 1;
     if :: !pend[c] -> pend[c] = 1; woken[c] = 1 :: else fi
  :: else
  fi
}

proctype clock() {
  do
  :: atomic {
       now < LAST ->
       if
       :: SLEEPS(0) && SLEEPS(1) && !outside ->
          assert(!MISSED(0, 0) && !MISSED(0, 1) && !MISSED(0, 2));
          assert(!MISSED(1, 0) && !MISSED(1, 1) && !MISSED(1, 2))
       :: else
       fi;
       now++;
       FIRE(0);
       FIRE(1)
     }
  :: now == LAST -> break
  od
}

init {
  byte k = 0;
  atomic {
    claim[0] = NONE;
    claim[1] = NONE;
    /* Two actors and three events, two of which are there from the start. ALL: any releases;
     * otherwise the posted event is the earliest, so that claims are put back. */
    select(k : 0 .. 1);
    actor[0] = 0; actor[1] = k;
    select(k : 0 .. 1);
    actor[2] = k;
#ifdef ALL
    select(k : 1 .. 2);
    time[0] = k;
    select(k : 1 .. 2);
    time[1] = k;
    select(k : 0 .. 2);
    time[2] = k;
#else
    time[0] = 2; time[1] = 2; time[2] = 1;
#endif
    state[0] = queued; state[1] = queued; state[2] = idle;
    run core(0);
    run core(1);
    run clock();
    run post(2);
    select(k : 0 .. 2);
    run cancel(k)
  }
  timeout -> /* no process can move: every event must be over */
  k = 0;
  do
  :: k < EVENTS -> assert(state[k] == done || state[k] == cancelled); assert(!busy[actor[k]]); k++
  :: else -> break
  od
}
