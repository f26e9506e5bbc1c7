/* How a foreign reader takes a value: a task of another event loop (SEMANTICS 6.6).
 *
 * Its own loop may cancel it at any moment, even in the turn in which it was woken. So it is never
 * handed a value while it sleeps. A foreign party at the head of the line:
 *
 *   asleep ──a writer is there: notify──▶ notified ──it runs: take──▶ gone; move_on
 *     └──────────its loop cancels it──────────┴──▶ withdraw──▶ gone; move_on
 *
 * move_on, under the channel's lock: while readers and writers both wait, a plain reader at the
 * head gets the first writer's value; a foreign one at the head is notified, and all behind it wait
 * until it has decided.
 *
 * Two foreign readers, a plain reader, two writers. MUT 6: the value is handed to the sleeper. MUT 7: a withdrawal does not move the line on.
 *
 * Checked: every write that completes was taken exactly once, and no reader except a cancelled one
 * is left without a value that is there.
 */
#ifndef MUT
#define MUT 0
#endif

#define NR 3                       /* readers: 0 and 1 are foreign, 2 is plain */
#define NW 2
#define NOTHING 0                  /* values are 1 and 2, the writer's number + 1 */
#define FOREIGN(r) ((r) < 2)

chan readers = [NR] of { byte };   /* the line of readers; places are kept while notified */
chan writers = [NW] of { byte };   /* the line of writers */
bool locked;
byte slot[NR];                     /* what a reader was handed */
bool notified[NR];
bool asleep[NR];
bool completed[NW];                /* the write has completed */
byte taken[NW];
bool cancelled[NR];

inline acquire() { atomic { !locked -> locked = true } }
inline release() { locked = false }

inline give(r, w) {                /* the writer's value is the reader's now */
    d_step { slot[r] = w + 1; completed[w] = true }
}

inline move_on() {
    do
    :: nempty(readers) && nempty(writers) ->
        readers?<h>;
#if MUT == 6
        readers?eval(h); writers?w; give(h, w)
#else
        if
        :: FOREIGN(h) -> notified[h] = true; break
        :: else -> readers?eval(h); writers?w; give(h, w)
        fi
#endif
    :: empty(readers) || empty(writers) -> break
    od
}

proctype Foreign(byte me) {
    byte h, w;
    acquire();
    readers!me;
    move_on();
    release();
    asleep[me] = true;
endsleep:
    do
    :: slot[me] != NOTHING ->                        /* only MUT 6 comes here: it was handed a value; its loop may cancel it all the same */
        if
        :: taken[slot[me] - 1]++
        :: cancelled[me] = true
        fi;
        break
    :: notified[me] && slot[me] == NOTHING ->        /* it runs, and takes */
        acquire();
        assert(slot[me] == NOTHING);                 /* nobody handed it anything while it slept */
        notified[me] = false;
        if
        :: nempty(writers) ->
            readers??eval(me);
            writers?w;
            d_step { taken[w]++; completed[w] = true };
            move_on();
            release();
            break
        :: empty(writers) -> release()               /* a writer may have withdrawn: sleep again, the place is kept */
        fi
    :: slot[me] == NOTHING ->                        /* its loop cancels it: asleep or notified */
        acquire();
        if
        :: slot[me] == NOTHING ->
            readers??eval(me);
            cancelled[me] = true;
#if MUT != 7
            move_on();
#endif
            release();
            break
        :: else -> release()
        fi
    od;
    asleep[me] = false
}

proctype Plain(byte me) {
    byte h, w;
    acquire();
    readers!me;
    move_on();
    release();
    asleep[me] = true;
endsleep:
    slot[me] != NOTHING;
    asleep[me] = false;
    taken[slot[me] - 1]++
}

proctype Writer(byte me) {
    byte h, w;
    acquire();
    writers!me;
    move_on();
    release();
endwait:
    completed[me]
}

init {
    atomic { run Foreign(0); run Foreign(1); run Plain(2); run Writer(0); run Writer(1) }
end:
    timeout ->
    assert(!locked);
    assert(empty(readers) || empty(writers));                        /* the line moved on: nobody waits for what is there */
    assert(taken[0] == completed[0] && taken[1] == completed[1])     /* nothing lost, nothing doubled */
}
