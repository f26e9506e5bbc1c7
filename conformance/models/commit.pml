/* How a choice commits (SEMANTICS 5.1, 5.3, 5.10, 6.2–6.4).
 *
 * Three processes, each with one select over two channels. One word for each select holds the state
 * of the select:
 *
 *   IDLE ──enrol──▶ WAITING ──claim2, first word──▶ LOCKED ──second word won──▶ DONE+c
 *                      │  ▲───────second word was gone──┘
 *                      ├──claimed by another (claim1; claim2, second word)──▶ DONE+c
 *                      └──cancel──▶ CANCELLED
 *
 * Invariants of the algorithm, which the assertions check from outside:
 *   a process holds one channel lock at a time; a holder of a LOCKED word takes no channel lock;
 *   words are claimed in ascending order;
 *   a select that is DONE has exactly one partner, at the same channel and in the opposite
 *   direction, and is itself the partner of that select;
 *   at rest no two complementary parties wait, and nothing is locked.
 *
 * TOPO 1: an input-only, an output-only and a mixed select.  TOPO 2: every process holds an input AND an output guard.
 * CANCEL: process 2 may be cancelled while it is parked.  SCAN: phase A, the scan before enrolling, is modelled too.
 * MUT: see MUTANTS.md (1, 2, 3 and 8 are here).
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef TOPO
#define TOPO 2
#endif

#define NP 3
#define NC 2
#define IDLE 0
#define WAITING 1
#define LOCKED 2
#define CANCELLED 3
#define DONE 4                       /* DONE + channel */
#define NONE 255

#define IN 1
#define OUT 2

byte word[NP];
byte dir[6];                         /* the guard's direction, IN or OUT, at process * NC + channel */
bool queued[6];                      /* a node stands in the channel's waiting queue */
bool locked[NC];                     /* the channels' locks */
byte partner[NP] = NONE;
bool parked[NP];

#define NODE(p, c)       ((p) * NC + (c))
#define OPPOSITE(p, q, c) (dir[NODE(p, c)] + dir[NODE(q, c)] == IN + OUT)
#define TERMINAL(p)      (word[p] >= CANCELLED)

inline acquire(c) { atomic { !locked[c] -> locked[c] = true } }
inline release(c) { locked[c] = false }

/* X is enrolled nowhere, so nothing can claim it: only the peer's word is claimed. The macro waits
 * for a LOCKED peer. */
inline claim_peer(y, c) {
    do
    :: atomic { word[y] == WAITING -> word[y] = DONE + c; partner[y] = me; partner[me] = y }; word[me] = DONE + c; won = true; break
    :: TERMINAL(y) || word[y] == IDLE -> queued[NODE(y, c)] = false; break
#if MUT == 1
    :: word[y] == LOCKED -> break
#endif
    od
}

/* Claims both words, the lower one first. Afterwards `won` or `i_am_gone` is true, or neither (the
 * peer was gone). */
inline claim_both(y, c) {
#if MUT == 2
    lo = me; hi = y;
#else
    if :: me < y -> lo = me; hi = y :: else -> lo = y; hi = me fi;
#endif
    got_first = false;
    do
    :: atomic { word[lo] == WAITING -> word[lo] = LOCKED }; got_first = true; break
    :: TERMINAL(lo) -> if :: lo == me -> i_am_gone = true :: else -> queued[NODE(y, c)] = false fi; break
#if MUT == 1
    :: word[lo] == LOCKED && lo == y -> break
#endif
    od;
    if
    :: !got_first
    :: got_first ->
        do
        :: atomic { word[hi] == WAITING -> word[hi] = DONE + c; partner[hi] = lo; partner[lo] = hi }; won = true; break
        :: TERMINAL(hi) ->
            word[lo] = WAITING;
            if :: hi == me -> i_am_gone = true :: else -> queued[NODE(y, c)] = false fi;
            break
#if MUT == 1
        :: word[hi] == LOCKED && hi == y -> word[lo] = WAITING; break
#endif
        od;
        if :: won -> word[lo] = DONE + c :: else fi
    fi
}

proctype Select(byte me; byte first; bool may_cancel) {
    byte k, c, y, lo, hi;
    bool won, i_am_gone, got_first;

#ifdef SCAN
    /* A: scan */
    k = 0;
    do
    :: k == NC -> break
    :: k < NC ->
        c = (first + k) % NC;
        acquire(c);
        y = 0;
        do
        :: y == NP || won -> break
        :: y < NP && !won ->
            if
            :: y != me && queued[NODE(y, c)] && OPPOSITE(me, y, c) -> claim_peer(y, c)
            :: else
            fi;
            if :: won -> queued[NODE(y, c)] = false :: else fi;
            y++
        od;
        release(c);
        if :: won -> goto done :: else fi;
        k++
    od;
#endif

    /* B: enrol, and check each channel again under its lock */
    word[me] = WAITING;
    k = 0;
    do
    :: k == NC -> break
    :: k < NC ->
        c = (first + k) % NC;
        acquire(c);
#if MUT != 3
        y = 0;
        do
        :: y == NP || won || i_am_gone -> break
        :: y < NP && !won && !i_am_gone ->
            if
            :: y != me && queued[NODE(y, c)] && OPPOSITE(me, y, c) ->
                claim_both(y, c);
                if :: won -> queued[NODE(y, c)] = false :: else fi
            :: else
            fi;
            y++
        od;
#endif
        if
        :: won || i_am_gone -> release(c); break
        :: else -> queued[NODE(me, c)] = true; release(c)
        fi;
        k++
    od;

    /* C: park */
    parked[me] = true;
endpark:
    if
    :: TERMINAL(me)
#if MUT == 8
    :: may_cancel && word[me] == WAITING -> word[me] = CANCELLED       /* checked, then stored blindly */
#else
    :: atomic { may_cancel && word[me] == WAITING -> word[me] = CANCELLED }
#endif
    fi;
    parked[me] = false;

done:
    /* D: leave every waiting queue */
    acquire(0); queued[NODE(me, 0)] = false; release(0);
    acquire(1); queued[NODE(me, 1)] = false; release(1);

    if
    :: word[me] == CANCELLED -> assert(partner[me] == NONE)            /* the withdrawal is complete (6.2) */
    :: else ->
        c = word[me] - DONE;
        assert(word[me] >= DONE && partner[me] != NONE && partner[partner[me]] == me);
        assert(OPPOSITE(me, partner[me], c));
        (word[partner[me]] != LOCKED) -> assert(word[partner[me]] == word[me])
    fi
}

#define MEET(p, q, c) (queued[NODE(p, c)] && queued[NODE(q, c)] && OPPOSITE(p, q, c))
#define MISSED(p, q) (parked[p] && parked[q] && word[p] == WAITING && word[q] == WAITING && (MEET(p, q, 0) || MEET(p, q, 1)))

init {
    atomic {
#if TOPO == 1
        dir[NODE(0, 0)] = IN;  dir[NODE(0, 1)] = IN;
        dir[NODE(1, 0)] = OUT; dir[NODE(1, 1)] = OUT;
        dir[NODE(2, 0)] = OUT; dir[NODE(2, 1)] = IN;
#else
        dir[NODE(0, 0)] = IN;  dir[NODE(0, 1)] = OUT;
        dir[NODE(1, 0)] = OUT; dir[NODE(1, 1)] = IN;
        dir[NODE(2, 0)] = IN;  dir[NODE(2, 1)] = OUT;
#endif
#ifdef CANCEL
        run Select(0, 0, false); run Select(1, 1, false); run Select(2, 0, true)
#else
        run Select(0, 0, false); run Select(1, 1, false); run Select(2, 0, false)
#endif
    }
    /* at rest */
end:
    timeout ->
    assert(!MISSED(0, 1) && !MISSED(0, 2) && !MISSED(1, 2));
    assert(!locked[0] && !locked[1] && word[0] != LOCKED && word[1] != LOCKED && word[2] != LOCKED)
}
