/* Ended channels in a select (rule 5.6). A select over the readers of N channels counts those that
 * keep it open. The process that ends a channel removes the select's node, under the channel's
 * lock, and counts down; when the count reaches zero, the process claims the select's word, as any
 * partner does.
 *
 * The select checks each channel (phase A), sets the count to the number of guards whose channels
 * it did not find retired, enrols at each (phase B), parks, and leaves. A process for each channel
 * writes one value or none and then ends the channel. With CANCEL one more process cancels.
 *
 * The abstraction: a waiting queue holds the select's node or nothing. Values are not modelled. A
 * lock is an atomic block, which may include the claim of the word (claim_one never waits here,
 * because there are no LOCKED words; commit.pml has them).
 *
 * At rest: the select was decided exactly once. It was decided by Retired only if all channels had
 * ended without a value, and by a value only if there was one.
 *
 * Mutants (the numbers of MUTANTS.md): 21 counts only the guards enrolled so far; 22 does not count
 * down for a guard found ended while enrolling; 23 counts down in two steps.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef N
#define N 3
#endif

#define IDLE 0
#define WAITING 1
#define CANCELLED 2
#define RETIRED 3
#define VALUE 4

byte word = IDLE;
byte keepers = 0;    /* counts guards that keep the select open (KeptChoice) */
bool queued[N];      /* the select's node is in the waiting queue of channel i */
bool silent[N];      /* the select's owner found channel i retired */
bool gone[N];        /* the writers of channel i have closed */
bool offered[N];     /* a writer waits at channel i */
bool taken[N];
byte decided = 0;    /* how often the word was claimed */
bool asked = false;  /* the select has been cancelled */

/* Sets `won` to whether it claims the word. It may be called with or without the lock of a channel.
 * */
inline claim(to, won) {
  won = false;
  if
  :: word == WAITING -> word = to; won = true; decided++
  :: else
  fi
}

/* The writer of channel i: it may write a value, then it ends the channel. */
proctype Source(byte i) {
  bool won, last;
  byte left;
  if
  :: true ->
     atomic { /* write: meet the select, or join the waiting queue */
       won = false;
       if
       :: queued[i] -> claim(VALUE, won); if :: won -> queued[i] = false; taken[i] = true :: else fi
       :: else
       fi;
       if :: !won -> offered[i] = true :: else fi
     }
     /* a waiting writer counts as an end (rule 3.2): the channel has not ended for the select */
  :: true ->
     last = false;
#if MUT == 23
     bool counts;
     atomic {
       gone[i] = true;
       counts = queued[i];
       queued[i] = false;
       left = keepers - 1
     }
     if
     :: counts -> atomic { keepers = left; last = (left == 0) } ; atomic { if :: last -> claim(RETIRED, won) :: else fi }
     :: else
     fi
#else
     atomic {
       gone[i] = true;
       if
       :: queued[i] -> queued[i] = false; keepers--; last = (keepers == 0)
       :: else
       fi;
       if :: last -> claim(RETIRED, won) :: else fi
     }
#endif
  fi
}

active proctype Select() {
  byte i, count;
  bool won, over;
  /* A */
  i = 0;
  count = 0;
  do
  :: i < N ->
     atomic {
       if
       :: offered[i] -> word = VALUE; decided++; offered[i] = false; taken[i] = true; goto rest
       :: else -> silent[i] = gone[i]
       fi
     }
     if :: !silent[i] -> count++ :: else fi;
     i++
  :: else -> break
  od;
  if
  :: count == 0 -> atomic { word = RETIRED; decided++ }; goto rest
  :: else
  fi;
  /* B */
#if MUT == 21
  count = 0;
#endif
  keepers = count;
  word = WAITING;
  i = 0;
  do
  :: i < N && silent[i] -> i++
  :: i < N && !silent[i] ->
#if MUT == 21
     atomic { keepers++ }
#endif
     over = false;
     atomic {
       if
       :: offered[i] ->
          claim(VALUE, won);
          if :: won -> offered[i] = false; taken[i] = true :: else fi;
          over = true
       :: !offered[i] && gone[i] ->
          silent[i] = true;
#if MUT != 22
          keepers--;
          if :: keepers == 0 -> claim(RETIRED, won); over = true :: else fi
#endif
       :: else -> queued[i] = true
       fi
     }
     if :: over -> break :: else fi;
     i++
  :: else -> break
  od;
  /* C */
  word != WAITING;
  /* D */
  i = 0;
  do
  :: i < N -> atomic { queued[i] = false; i++ }
  :: else -> break
  od;
rest:
  assert(word == VALUE || word == RETIRED || word == CANCELLED);
  assert(decided == 1);
  assert(word != CANCELLED || asked);
  byte n = 0;
  i = 0;
  do
  :: i < N ->
     assert(word != RETIRED || (gone[i] && !taken[i]));
     n = n + taken[i];
     i++
  :: else -> break
  od;
  assert(n == (word == VALUE -> 1 : 0))
}

#ifdef CANCEL
active proctype Canceller() {
  bool won;
  asked = true;
  atomic { claim(CANCELLED, won) }
}
#endif

init {
  byte i = 0;
  atomic {
    do
    :: i < N -> run Source(i); i++
    :: else -> break
    od
  }
}
