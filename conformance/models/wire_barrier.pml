/* A barrier whose parties live in several spaces, at its home (WIRE.md 4.3, 4.9 to 4.11, rule 8.7).
 *
 * Each party is a space with a session to the home; steps of the home's own processes are among the
 * orders of these. Frames of one session keep their order, frames of two sessions do not.
 *
 *   1  arrives once or twice, then resigns and gives its share back. It may be killed at any step,
 *   also after that; then frames under way are lost or not, and the home notices later.
 *   2  arrives once, and may withdraw its arrival and arrive again. Then it enrols 4 in its own
 *   name, notifies 4 by other means, and resigns.
 *   3  arrives twice, each time in a choice with a channel of the same home. A writer may serve the
 *   choice instead, once; then 3 arrives again. It also arrives again if, once, it has withdrawn
 *   its choice and learned that neither has happened.
 *   4  begins after its enrolment has returned, and arrives once: in the second phase.
 *
 *   an arrival, at the home:  none ──ARRIVE──► queued ──all are there──► DONE
 *
 * The arrival of a killed party counts until the home notices its death: if the phase is
 * complete before that, the party had arrived, and all go on; they learn of the death at the next
 * phase.
 *
 * MUT 110: an arrival still counts when its session is over (together with 111, because otherwise
 * nothing shows it). 111: the end of a session is not the death of the barrier. 112: a withdrawal
 * does not wait for its answer. 113: a withdrawn arrival still counts. 114: a resignation does not
 * complete the phase. 115: a share that is given back counts as a death. 116: a party that comes
 * after the death is not told. 117: enrol() returns before its frame is at the home. 118: choices
 * are not told of the death. 119: an arrival whose choice has taken the channel still counts. 120:
 * a withdrawn choice leaves its place at the channel. 121: it leaves its place at the barrier.
 *
 * Checked: a phase is complete when all parties that are enrolled and alive have arrived, and not
 * once a death is known; the channel serves a party that is in its choice; a withdrawal is answered
 * once; a party learns only of a death that has happened; no party waits at the end.
 */
#ifndef MUT
#define MUT 0
#endif
#define NP 5                         /* parties 1 to 4 */

mtype = { ARRIVE, WITHDRAW, ENROL, RESIGN, RETIRE, DONE, WITHDRAWN, CHOSEN, DIED };
chan up[NP] = [3] of { mtype };
chan down[NP] = [3] of { mtype };

bool cut, known;                     /* 1 is killed; the home has noticed that */
bool given_back;                     /* 1's share has arrived at the home */
bool party[NP];                      /* which spaces are parties, as each space itself sees it:
                                        from the return of enrol() until resign() */
bool inside[NP];                     /* the party's arrival has begun and is not over, as its own
                                        space sees it */
bool go;                             /* 2 tells 4 to begin */
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
    bool asked, now;                 /* asked once; asked in this arrival */
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

/* If all parties have arrived, they go on. */
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
        :: known && up[1]?[k] -> up[1]?k; p = 0           /* a frame of a session that is over */
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
            :: else                                        /* the withdrawal has crossed the answer
                                                              */
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
