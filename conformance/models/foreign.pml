/* How a foreign reader takes a value: a task of another event loop (SEMANTICS 6.6).
 *
 * The task's own loop may cancel it at any moment, even in the turn in which it was woken. So a
 * sleeping task is never handed a value. A foreign party in the waiting queue:
 *
 *   asleep ──a writer is there beyond those of the undecided: notify──▶ undecided ──it runs: take──▶ gone; move_on
 *     └──────────its loop cancels it──────────────────────────────────────┴──▶ withdraw──▶ gone; move_on; declined
 *
 * A step under the channel's lock is atomic. move_on: while more writers wait than readers are
 * undecided, the first reader that is not undecided gets the first writer's value if the reader is
 * plain, and is notified if it is foreign. A reader that arrives does the same for itself. But
 * after an undecided reader has withdrawn, and until a value is taken, an arriving reader does not
 * wait for the undecided readers.
 *
 * Two foreign readers, a plain reader, two writers. MUT 6: the value is handed to the sleeper. MUT
 * 7: a withdrawal does not move the queue on, and a reader is left without an available value.
 *
 * With AGAIN: two foreign readers arrive again and again, and are cancelled by their loop at any
 * time; one writer arrives once. Checked with weak fairness (no process that can go on stands still
 * for ever): the value is taken in the end. MUT 25: the withdrawal of an undecided reader is not
 * remembered.
 */
#ifndef MUT
#define MUT 0
#endif

#ifdef AGAIN
#define NR 2
#define NW 1
#else
#define NR 3                       /* readers: 0 and 1 are foreign, 2 is plain */
#define NW 2
#endif
#define NOTHING 0                  /* values are 1 and 2, the writer's number + 1 */
#define FOREIGN(r) ((r) < 2)

chan readers = [NR] of { byte };   /* the waiting queue of readers; undecided readers keep their
                                      places */
chan writers = [NW] of { byte };   /* the waiting queue of writers */
byte slot[NR];                     /* the value that a reader was handed */
bool notified[NR];                 /* whether this reader is undecided */
byte undecided;                    /* how many readers are undecided */
bool declined;                     /* an undecided reader has withdrawn, and no value was taken
                                      since */
bool completed[NW];                /* the write has completed */
byte taken[NW];
bool cancelled[NR];
#ifdef AGAIN
ltl passes { <> (taken[0] > 0) }
#endif

inline give(r, w) {                /* the writer's value becomes the reader's */
    d_step { slot[r] = w + 1; completed[w] = true; declined = false }
}

/* k counts the examined entries of the queue; these then stand at its end, in their order
 * */
inline move_on() {
    d_step {
        k = 0;
        do
        :: k < len(readers) ->
            readers?h;
            if
            :: len(writers) <= undecided || notified[h] -> readers!h; k++
#if MUT == 6
            :: len(writers) > undecided && !notified[h] -> writers?w; give(h, w)
#else
            :: len(writers) > undecided && !notified[h] && FOREIGN(h) ->
                notified[h] = true; undecided++; readers!h; k++
            :: len(writers) > undecided && !notified[h] && !FOREIGN(h) -> writers?w; give(h, w)
#endif
            fi
        :: k == len(readers) -> break
        od;
        k = 0; h = 0; w = 0
    }
}

inline decide(me) {
    if
    :: notified[me] -> notified[me] = false; undecided--
    :: else
    fi
}

proctype Foreign(byte me) {
    byte h, k, w;
come:
    atomic {
        if
        :: len(writers) > (declined -> 0 : undecided) ->   /* the reader arrives, and a value is available */
            writers?w;
            taken[w]++; completed[w] = true; declined = false; w = 0;
            move_on();
            goto over
        :: len(writers) <= (declined -> 0 : undecided) -> readers!me; move_on()
        fi
    }
endsleep:
    do
    :: slot[me] != NOTHING ->                        /* MUT 6 only: the reader was handed a value; its loop may still cancel it */
        if
        :: taken[slot[me] - 1]++
        :: cancelled[me] = true
        fi;
        break
    :: atomic { notified[me] && slot[me] == NOTHING ->     /* the reader runs, and takes the value
                                                              */
        decide(me);
        if
        :: nempty(writers) ->
            readers??eval(me);
            writers?w;
            taken[w]++; completed[w] = true; declined = false; w = 0;
            move_on();
            break
        :: empty(writers) -> move_on()               /* another reader has taken it: sleep again;
                                                        the place is kept */
        fi }
    :: atomic { slot[me] == NOTHING ->               /* its loop cancels it, asleep or undecided */
        readers??eval(me);
#if MUT != 25
        declined = declined || notified[me];
#endif
        decide(me);
#if MUT != 7
        move_on();
#endif
#ifdef AGAIN
        goto come
#else
        cancelled[me] = true;
        break
#endif
        }
    od;
over:
    skip
}

proctype Plain(byte me) {
    byte h, k, w;
    atomic {
        if
        :: len(writers) > (declined -> 0 : undecided) -> writers?w; give(me, w)
        :: len(writers) <= (declined -> 0 : undecided) -> readers!me
        fi;
        move_on()
    }
endsleep:
    slot[me] != NOTHING;
    taken[slot[me] - 1]++
}

proctype Writer(byte me) {
    byte h, k, w;
    atomic { writers!me; move_on() }
endwait:
    completed[me]
}

init {
    atomic {
        run Foreign(0); run Foreign(1); run Writer(0)
#ifndef AGAIN
        ; run Plain(2); run Writer(1)
#endif
    }
#ifndef AGAIN
end:
    timeout ->
    assert(empty(readers) || empty(writers));                        /* the queue has moved on: no
                                                                        reader waits while a value
                                                                        is available */
    assert(taken[0] == completed[0] && taken[1] == completed[1])     /* no value is lost or doubled */
#endif
}
