/* A standing input alternative over two channels, against a plain writer on each and a plain reader on channel 0
 * (SEMANTICS 5.9, 6.4).
 *
 * The alternative's nodes stay in their waiting queues between its selects. Its word:
 *
 *   IDLE ──the ready list is empty──▶ WAITING ──claimed by a writer──▶ DONE+c ──taken──▶ IDLE
 *     ▲──────the list was read again and is not empty (CAS)──┘
 *
 * Both sides write first and then read again: the writer enqueues, marks itself ready and reads the
 * word; the alternative writes WAITING and reads the list. Both second reads are needed: MUT 4
 * leaves out the first one, MUT 5 the other.
 *
 * Checked: every value is taken exactly once; at rest no writer is queued where the alternative or
 * the plain reader waits.
 */
#ifndef MUT
#define MUT 0
#endif

#define NC 2
#define WRITES 2                 /* the number of writes of each writer */
#define SELECTS 3                /* the alternative's selects; the plain reader takes one more value, so all writes complete */
#define IDLE 0
#define WAITING 1
#define DONE 4                   /* DONE + channel */

byte word;
bool ready[NC];                  /* the ready list, as a set: any order of service is covered */
bool writer_queued[NC];
bool writer_done[NC];
bool reader_queued, reader_done;
bool locked[NC];
bool alt_parked, alt_finished;
byte taken[4];                   /* how often value (channel * WRITES + number) was taken */
byte holding[NC];                /* the number of the value that the queued writer offers */
byte handed;                     /* the value that a claim handed over */

inline acquire(c) { atomic { !locked[c] -> locked[c] = true } }
inline release(c) { locked[c] = false }

proctype Writer(byte c) {
    byte n;
    bool complete;
    do
    :: n == WRITES -> break
    :: n < WRITES ->
        complete = false;
        acquire(c);
        if
        :: c == 0 && reader_queued ->                         /* a plain reader: take its node, give the value */
            reader_queued = false;
            d_step { taken[n]++; reader_done = true };
            complete = true
        :: else ->
            if
            :: atomic { word == WAITING -> word = DONE + c; handed = c * WRITES + n }; complete = true
            :: else ->                                        /* IDLE or DONE: join the queue, mark ready, read the word again */
                holding[c] = n;
                writer_done[c] = false;
                writer_queued[c] = true;
                ready[c] = true;
#if MUT != 4
                if
                :: atomic { word == WAITING -> word = DONE + c; handed = c * WRITES + n };
                    writer_queued[c] = false;
                    complete = true
                :: else
                fi
#endif
            fi
        fi;
        release(c);
        if
        :: complete
        :: else ->
endwait:    writer_done[c]
        fi;
        n++
    od
}

proctype Standing() {
    byte n, c;
    bool hit, parked_once;
    do
    :: n == SELECTS -> break
    :: n < SELECTS ->
        hit = false;
        do
        :: hit -> break
        :: !hit && (ready[0] || ready[1]) ->                  /* serve the list */
            if :: ready[0] -> c = 0 :: ready[1] -> c = 1 fi;
            ready[c] = false;
            acquire(c);
            if
            :: writer_queued[c] ->
                d_step { writer_queued[c] = false; taken[c * WRITES + holding[c]]++; writer_done[c] = true };
                hit = true
            :: else                                           /* another reader took it */
            fi;
            release(c)
        :: !hit && !ready[0] && !ready[1] ->
            word = WAITING;
#if MUT != 5
            if
            :: ready[0] || ready[1] ->
                if
                :: atomic { word == WAITING -> word = IDLE }; goto next
                :: else                                       /* a writer has claimed the word meanwhile */
                fi
            :: else
            fi;
#endif
            alt_parked = true;
endpark:    word >= DONE;
            alt_parked = false;
            d_step { taken[handed]++; word = IDLE };
            hit = true;
next:       skip
        od;
        n++
    od;
    alt_finished = true
}

proctype Reader() {
    acquire(0);
    if
    :: writer_queued[0] -> d_step { writer_queued[0] = false; taken[holding[0]]++; writer_done[0] = true; reader_done = true }
    :: else -> reader_queued = true
    fi;
    release(0);
endwait:
    reader_done
}

init {
    atomic { run Writer(0); run Writer(1); run Standing(); run Reader() }
end:
    timeout ->
    assert(!(alt_parked && word == WAITING && (writer_queued[0] || writer_queued[1])));     /* no lost wake-up */
    assert(!(reader_queued && writer_queued[0]));
    assert(!locked[0] && !locked[1]);
    assert(taken[0] <= 1 && taken[1] <= 1 && taken[2] <= 1 && taken[3] <= 1); /* no value is taken twice */
    /* Nothing is lost: the value of a writer that goes on has been taken; a value that is not taken
     * is still with its writer, or not yet written. */
    assert(!alt_finished || taken[0] + taken[1] + taken[2] + taken[3] >= SELECTS);
    assert(!(alt_finished && reader_done) || taken[0] + taken[1] + taken[2] + taken[3] == 4)
}
