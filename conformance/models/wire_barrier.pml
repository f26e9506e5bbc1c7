/* A barrier whose parties live in several spaces, at its home (WIRE.md 4.3, 4.9 to 4.11, rule 8.7).
 *
 * Each party is a space with a session to the home; what the home's own processes do is among the orders of these. Frames of one session
 * keep their order, those of two do not.
 *
 *   1  arrives once or twice, then resigns and gives its share back. It may be killed at any step, also after that: what was under way is
 *      lost or not, and the home notices later.
 *   2  arrives once, and may ask its arrival back and arrive again. Then it enrols 4 in its name, tells it so by another way, and resigns.
 *   3  arrives twice, each time in a choice with a channel of the same home, which a writer may serve instead, once: it arrives again then.
 *      So it does when it has asked its choice back, once, and was told that neither has happened.
 *   4  comes after its enrolment has returned, and arrives once: in the second phase.
 *
 *   an arrival, at the home:  none ──ARRIVE──► in line ──all are there──► DONE
 *                                                 ├──WITHDRAW──► WITHDRAWN     (after DONE or CHOSEN: no answer, they have crossed)
 *                                                 ├──the channel is served──► CHOSEN
 *                                                 ├──its session is over──► none
 *                                                 └──a session with a share is over──► DIED, for all and for good
 *
 * So the arrival of one who is killed counts until its death is noticed: if the phase is complete before that, it had arrived, and all go
 * on; they are told at the next one.
 *
 * MUT 110: the arrival of one whose session is over still counts (111 with it, for else nobody sees it). 111: the end of a session is not
 * the death of the barrier. 112: a withdrawal does not wait for its answer. 113: what was withdrawn still counts. 114: a resignation does not
 * complete the phase. 115: a share that is given back is a death. 116: who comes after the death is not told. 117: enrol() returns before
 * its word is at the home. 118: choices are not told of the death. 119: an arrival whose choice has taken the channel still counts. 120: a
 * choice that is asked back leaves its place at the channel. 121: so it does at the barrier.
 *
 * Watched: a phase is complete when all who are enrolled and alive are in their arrival, and not once a death is known; the channel serves
 * who is in its choice; who asks back is answered once; who is told of a death is told the truth; nobody waits at the end.
 */
#ifndef MUT
#define MUT 0
#endif
#define NP 5                         /* parties 1 to 4 */

mtype = { ARRIVE, WITHDRAW, ENROL, RESIGN, RETIRE, DONE, WITHDRAWN, CHOSEN, DIED };
chan up[NP] = [3] of { mtype };
chan down[NP] = [3] of { mtype };

bool cut, known;                     /* 1 is killed; its home has noticed */
bool given_back;                     /* 1's share, at the home */
bool party[NP];                      /* who is one, as its place has it: from the return of enrol() until resign() */
bool inside[NP];                     /* its arrival has begun and is not over, as its place has it */
bool go;                             /* what 2 tells 4 */
bool finished[NP];
byte served;                         /* values in the channel of 3's choice */

proctype One() {
    mtype m;
    byte i;
    do
    :: cut -> break
    :: !cut && i < 2 ->
        atomic { inside[1] = true; up[1]!ARRIVE };
        if
        :: atomic { down[1]?m -> inside[1] = false }
        :: cut -> break
        fi;
        if :: m == DIED -> assert(cut) :: else fi;
        i++
    :: atomic { !cut && (i == 1 || i == 2) -> party[1] = false; up[1]!RESIGN; up[1]!RETIRE; i = 3 }
    :: i == 3 -> break
    od;
    finished[1] = true
}

proctype Two() {
    mtype m;
    bool asked;
    do
    :: atomic { inside[2] = true; up[2]!ARRIVE };
        if
        :: atomic { down[2]?m -> inside[2] = false }
        :: atomic { !asked -> asked = true; up[2]!WITHDRAW; if :: MUT == 112 -> inside[2] = false; m = WITHDRAWN :: else fi };
            if :: MUT == 112 :: else -> atomic { down[2]?m -> inside[2] = false } fi
        fi;
        if
        :: m == WITHDRAWN
        :: m == DIED -> assert(cut); goto over
        :: m == DONE -> break
        fi
    od;
    up[2]!ENROL;
    if :: MUT == 117 :: else -> down[2]?m; if :: m == DIED -> assert(cut); goto over :: else fi fi;
    atomic { party[4] = true; go = true };
    if :: MUT == 117 -> down[2]?m :: else fi;
    atomic { party[2] = false; up[2]!RESIGN };
over:
    finished[2] = true
}

proctype Three() {
    mtype m;
    byte i;
    bool asked, now;                 /* once; in this arrival */
    do
    :: i < 2 ->
        atomic { inside[3] = true; now = false; up[3]!ARRIVE };
        if
        :: atomic { down[3]?m -> inside[3] = false }
        :: atomic { !asked -> asked = true; now = true; up[3]!WITHDRAW };
            atomic { down[3]?m -> inside[3] = false }
        fi;
        if
        :: m == WITHDRAWN -> assert(now)
        :: m == CHOSEN
        :: m == DONE -> i++
        :: m == DIED -> assert(cut); break
        fi
    :: i == 2 -> atomic { party[3] = false; up[3]!RESIGN }; break
    od;
    finished[3] = true
}

proctype Four() {
    mtype m;
end:
    go;
    atomic { inside[4] = true; up[4]!ARRIVE };
    atomic { down[4]?m -> inside[4] = false };
    if :: m == DIED -> assert(cut) :: else fi;
    atomic { party[4] = false; up[4]!RESIGN };
    finished[4] = true
}

proctype Server() { if :: served = 1 :: true fi }
proctype Cutter() { if :: cut = true :: true fi }

/* Are all there? Then they go on. */
inline complete() {
    if
    :: enrolled > 0 && !died && line[1] + line[2] + line[3] + line[4] >= enrolled ->
        assert(!known || given_back);
        q = 1;
        do
        :: q == NP -> break
        :: else ->
            assert(!party[q] || inside[q] || (q == 1 && cut));
            if
            :: line[q] ->
                line[q] = 0;
                if :: q == 3 -> offered = false :: else fi;
                if :: q == 1 && cut :: else -> down[q]!DONE fi
            :: else
            fi;
            q++
        od
    :: else
    fi;
    q = 0
}

active proctype Home() {
    byte enrolled = 3, p, q;
    byte line[NP];
    bool offered, died;              /* 3's choice is at the channel */
    mtype k;
end:
    do
    :: atomic {
        if
        :: !known && up[1]?[k] -> up[1]?k; p = 1
        :: known && up[1]?[k] -> up[1]?k; p = 0           /* of a session that is over */
        :: up[2]?k -> p = 2
        :: up[3]?k -> p = 3
        :: up[4]?k -> p = 4
        fi;
        if
        :: p == 0
        :: p != 0 && k == ARRIVE ->
            if
            :: died && MUT != 116 -> if :: p == 1 && cut :: else -> down[p]!DIED fi
            :: else -> line[p] = 1; if :: p == 3 -> offered = true :: else fi; complete()
            fi
        :: p != 0 && k == WITHDRAW ->
            if
            :: line[p] ->
                if :: MUT == 113 || (MUT == 121 && p == 3) :: else -> line[p] = 0 fi;
                if :: p == 3 && MUT != 120 -> offered = false :: else fi;
                if :: MUT == 112 && p == 2 :: else -> down[p]!WITHDRAWN fi
            :: else                                        /* it crossed our answer */
            fi
        :: p != 0 && k == ENROL ->
            if :: died -> down[p]!DIED :: else -> enrolled++; down[p]!DONE fi
        :: p != 0 && k == RESIGN ->
            if
            :: died
            :: else -> enrolled--; if :: MUT == 114 :: else -> complete() fi
            fi
        :: p != 0 && k == RETIRE ->
            given_back = true;
            if :: MUT == 115 -> died = true :: else fi
        fi;
        if
        :: MUT == 115 && died ->
            q = 1;
            do
            :: q == NP -> break
            :: else -> if :: line[q] -> line[q] = 0; offered = offered && q != 3; down[q]!DIED :: else fi; q++
            od
        :: else
        fi;
        p = 0; q = 0 }
    :: atomic { offered && served == 1 ->                  /* the channel: 3 arrives again */
        assert(inside[3]);
        served = 2; offered = false; if :: MUT == 119 :: else -> line[3] = 0 fi; down[3]!CHOSEN }
    :: atomic { cut && !known ->
        known = true;
        if :: MUT == 110 :: else -> line[1] = 0 fi;
        if
        :: given_back || MUT == 111 || MUT == 110
        :: else ->
            died = true;
            q = 1;
            do
            :: q == NP -> break
            :: else ->
                if
                :: line[q] && !(q == 3 && MUT == 118) ->
                    line[q] = 0;
                    if :: q == 3 -> offered = false :: else fi;
                    down[q]!DIED
                :: else
                fi;
                q++
            od
        fi;
        q = 0 }
    od
}

init {
    byte p;
    atomic { party[1] = true; party[2] = true; party[3] = true };
    atomic { run One(); run Two(); run Three(); run Four(); run Server(); run Cutter() };
end:
    timeout ->
    for (p : 1 .. 3) { assert(finished[p]) };
    assert(finished[4] || !go)
}
