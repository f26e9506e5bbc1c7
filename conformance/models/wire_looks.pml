/* The rarer parts of a choice over several homes (WIRE.md 5.3, 5.9, 5.11): guards of one home with
 * a guard of another home between them, a timer at the place of the choice, choices that poll,
 * and guards that are off. The rest of such choices is in wire_spans.pml. Here
 * nothing is poisoned, and each place has one operation.
 *
 *   place:  OFFER ──► asks: TRY each guard in order ──NOTREADY──► the next … ──► waits ──READY──► TRY all of that home
 *             the timer comes: WITHDRAW, also behind each TRY that is still to come; then over.
 *             A choice that polls: over after the last answer
 *
 * A place offers to a home before it asks any home, or, if no guard of that home is off, as it asks
 * that home; then OFFER is a TRY too (ASKS) if it is for all its guards there. Channels 0 and 2 are
 * at home 0, channel 1 is at home 1; a guard has its channel's number. A place's number is its rank
 * (5.4).
 * CASE 1: one place reads from all three; writers wait from the start or arrive later, and with
 * LEAVES they leave again (others meet them); channel 2 may retire.
 * CASE 2: two places that cross: 0 writes to 0 and reads from 1, 1 the other way; with STOP the
 * second may stop for ever at any step.
 * CASE 3: one place writes to 0 and reads from 2, where no partner comes; its output to 1 is off.
 * So the choice is over once 0 has retired, if 1 had retired when the choice began. 0 and 1 may
 * retire at any step; a reader may come at 0, one may wait at 1; with CUT the session with home 1
 * ends at any step. CASE 4: the same, with 1 and 2 changed.
 * KIND0, KIND1: the kind of choice of each place: 0 waits, 1 has a timer too, 2 polls.
 *
 * MUT 134: a TRY of some guards of a home answers a READY of the others. 135: a timer ends the
 * choice, even if some homes have not been asked. 136: guards that are asked after the timer has
 * come are not withdrawn. 137: a choice that polls asks just the first home. 138: two choices
 * that poll wait for each other. 139: the timer does not withdraw the guards that are being
 * asked as it comes. 140: a home does not check guards that are off. 141: it watches them. 142: it
 * tries them. 143: guards that are off hold nothing open. 144: the loss of a home that has only
 * guards that are off is a PeerDied. 145: such a home is not asked in its turn.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef CASE
#define CASE 1
#endif
#ifndef KIND0
#define KIND0 0
#endif
#ifndef KIND1
#define KIND1 0
#endif
#define TIMED 1
#define LOOKS 2
#define N 3
#define BIT(g) (1 << (g))
#define HOME(g) ((g) & 1)
#define MINE(h) ((h) == 0 -> 5 : 2)     /* the channels of a home */
#if CASE == 2
#define NP 2
#define ALL 3                           /* the guards of each place */
#define OFF 0                           /* the guards that are off */
#else
#define NP 1
#define ALL 7
#if CASE == 3
#define OFF 2
#elif CASE == 4
#define OFF 4
#else
#define OFF 0
#endif
#endif
#define KIND(p) ((p) == 0 -> KIND0 : KIND1)
/* Whether place p writes to guard g. */
#if CASE == 1
#define WRITES(p, g) false
#elif CASE == 2
#define WRITES(p, g) ((p) == (g))
#else
#define WRITES(p, g) ((g) == 0 || (OFF & BIT(g)))
#endif
/* The choice is over once these have retired. */
#define KEEP (CASE >= 3 -> BIT(0) | (MUT == 143 -> 0 : OFF) : 7)
#define G(p, g) ((p) * N + (g))
#define S(p, h) ((p) * 2 + (h))

mtype = { OFFER, TRY, ASKS, GONE, WITHDRAW, READY, NOTREADY, DONE, SILENT }
mtype = { WAITS, TRIES, TAKEN, NOTHING, RETIRED, DIED }

chan up[NP * 2] = [6] of { mtype, byte };
chan down[NP * 2] = [8] of { mtype, byte };
bool cut;                               /* the session of home 1 */

bool offered[NP * 2];                   /* kept at the homes */
byte watch[NP], told[NP];               /* the guards that are watched, and those reported as silent */
byte line[NP * 2];                      /* guards that stand in the waiting queue */
bool plain[N];                          /* a process of the home's own waits at the channel */
byte come[N];                           /* how many more of these processes may come */
bool may_leave[N], may_retire[N], retired[N];

mtype state[NP];                        /* kept at the places */
bool fired[NP], stopped[NP];
bool there[N];                          /* a party has waited there since before the choice began */
bool ended[N];                          /* the channel had retired before the choice began */
bool asked_off[N];                      /* for a guard that is off: the channel had retired when the
                                           home learned of the guard */

/* Sets the party that p could meet at g: NP is a process of the home's own, NP + 1 means none. */
inline partner(p, g) {
    who = (plain[g] -> NP : NP + 1);
#if NP == 2
    if
    :: (line[S(1 - p, HOME(g))] & BIT(g)) && WRITES(p, g) != WRITES(1 - p, g) -> who = 1 - p
    :: else
    fi
#endif
}
inline silent(p, g) { told[p] = told[p] | BIT(g); watch[p] = watch[p] & (7 - BIT(g)); down[S(p, h)]!SILENT, g }
inline arm(p, g) {
    if
    :: !(ALL & MINE(h) & BIT(g)) || (watch[p] & BIT(g)) || (told[p] & BIT(g)) || ((OFF & BIT(g)) && MUT != 141)
    :: else ->
        partner(p, g);
        if
        :: retired[g] -> silent(p, g)
        :: !retired[g] && who <= NP -> down[S(p, h)]!READY, 0
        :: else -> watch[p] = watch[p] | BIT(g)
        fi
    fi
}
inline arm_all(p) { arm(p, 0); arm(p, 1); arm(p, 2) }
/* A party has arrived for the places that write to g, or read from it. */
inline hint(writers, g) {
    for (z : 0 .. NP - 1) {
        if
        :: (watch[z] & BIT(g)) && WRITES(z, g) == writers -> watch[z] = watch[z] & (7 - BIT(g)); down[S(z, h)]!READY, 0
        :: else
        fi
    }
}
/* Sets whether p, which is queued, must wait for another choice. */
inline held(p) {
    hold = false;
#if NP == 2
    for (z : 0 .. 1) {
        for (v : 0 .. 1) {
            if
            :: z != p && z > p && offered[S(z, h)] && (line[S(p, h)] & BIT(v)) && WRITES(z, v) != WRITES(p, v) &&
               (!(KIND(p) == LOOKS && KIND(z) == LOOKS) || MUT == 138) -> hold = true
            :: else
            fi
        }
    }
#endif
}
inline leave(p) { line[S(p, h)] = 0; arm_all(p); down[S(p, h)]!NOTREADY, 0 }
inline drop(p) { offered[S(p, h)] = false; watch[p] = watch[p] & (7 - MINE(h)); line[S(p, h)] = 0 }
inline free_held() {
    for (y : 0 .. NP - 1) {
        if
        :: line[S(y, h)] != 0 -> held(y); if :: !hold -> leave(y) :: else fi
        :: else
        fi
    }
}
inline meet(p, g) {
    partner(p, g);
    assert(!(OFF & BIT(g)));                                /* 5.11: a guard that is off takes no
                                                               part */
    if
    :: who == NP -> plain[g] = false
    :: who < NP ->
        assert(!(KIND(p) == LOOKS && KIND(who) == LOOKS));  /* rule 5.7: neither of the two waits */
        down[S(who, h)]!DONE, g; drop(who)
    fi;
    down[S(p, h)]!DONE, g; drop(p); free_held()
}

proctype Home(byte h) {
    byte p, o, y, z, v, g, who, m, between;
    mtype k;
    bool hold;
endloop:
    do
    :: atomic {
        if
        :: between == 0 && nempty(up[S(0, h)]) -> p = 0
#if NP == 2
        :: between == 0 && nempty(up[S(1, h)]) -> p = 1
#endif
        fi;
        up[S(p, h)]?k, o;
        if
        :: k == OFFER -> offered[S(p, h)] = true;
            for (g : 0 .. N - 1) {
                if
                :: (OFF & MINE(h) & BIT(g)) && retired[g] ->
                    asked_off[g] = true;
                    if :: MUT != 140 -> silent(p, g) :: else fi
                :: else
                fi
            };
            arm_all(p)
        :: (k == TRY && offered[S(p, h)]) || k == ASKS ->
            offered[S(p, h)] = true;
            m = o & (7 - told[p]) & (MUT == 142 -> 7 : 7 - OFF);
            if
            :: m == 0 -> down[S(p, h)]!NOTREADY, 0
            :: else ->
                g = N;
                for (v : 0 .. N - 1) {
                    if
                    :: (m & BIT(v)) && !retired[v] && g == N -> partner(p, v); if :: who <= NP -> g = v :: else fi
                    :: (m & BIT(v)) && retired[v] -> m = m & (7 - BIT(v))
                    :: else
                    fi
                };
                v = 0;
                if
                :: g < N -> meet(p, g)
                :: g == N && m == 0 -> leave(p)
                :: else ->
                    line[S(p, h)] = m;
                    for (g : 0 .. N - 1) { if :: m & BIT(g) -> hint(!WRITES(p, g), g) :: else fi };
                    held(p);
                    if
                    :: !hold -> line[S(p, h)] = 0; between = p + 1  /* another party may come now */
                    :: else
                    fi
                fi
            fi
        :: k == WITHDRAW -> if :: line[S(p, h)] != 0 -> leave(p) :: else fi
        :: k == GONE -> drop(p); free_held()
        :: k == TRY && !offered[S(p, h)]                    /* the TRY has crossed the DONE */
        fi;
        p = 0; o = 0; y = 0; z = 0; v = 0; g = 0; who = 0; m = 0; hold = false; k = OFFER }
    :: atomic { between > 0 -> p = between - 1; between = 0; leave(p); p = 0; who = 0 }
    :: atomic {                                             /* a process of the home's own comes */
        if
        :: (MINE(h) & 1) && come[0] > 0 && !plain[0] && !retired[0] -> g = 0
        :: (MINE(h) & 2) && come[1] > 0 && !plain[1] && !retired[1] -> g = 1
        :: (MINE(h) & 4) && come[2] > 0 && !plain[2] && !retired[2] -> g = 2
        fi;
        come[g]--; plain[g] = true; hint(WRITES(0, g), g);  /* with one place, no process stays in
                                                               the queue */
        g = 0; z = 0 }
#ifdef LEAVES
    :: atomic {                                             /* another party meets that process */
        if
        :: (MINE(h) & 1) && plain[0] && may_leave[0] -> g = 0
        :: (MINE(h) & 2) && plain[1] && may_leave[1] -> g = 1
        fi;
        may_leave[g] = false; plain[g] = false; there[g] = false; g = 0 }
#endif
    :: atomic {                                             /* the other side of the channel is closed */
        if
        :: (MINE(h) & 1) && may_retire[0] && !plain[0] -> g = 0
        :: (MINE(h) & 2) && may_retire[1] && (!plain[1] || CASE == 3) -> g = 1
        :: (MINE(h) & 4) && may_retire[2] && (!plain[2] || CASE == 4) -> g = 2
        fi;
        may_retire[g] = false; retired[g] = true; plain[g] = false;
        if :: watch[0] & BIT(g) -> silent(0, g) :: else fi;
        g = 0 }
    od
}

#define over (state[me] != WAITS && state[me] != TRIES)
inline outcome(what, h) {
    for (g : 0 .. 1) { if :: knows[g] && !(what == TAKEN && g == h) && !(g == 1 && cut) -> up[S(me, g)]!GONE, 0 :: else fi };
    state[me] = what;
    trying = 2
}
/* Asks home h about the guards in m. */
inline attempt(h, m) {
    if
    :: (m) == (ALL & MINE(h)) || MUT == 134 -> ready[h] = false
    :: else
    fi;
    trying = h; fell = false; state[me] = TRIES;
    if
    :: knows[h] -> up[S(me, h)]!TRY, m
    :: !knows[h] && (m) == (ALL & MINE(h)) -> up[S(me, h)]!ASKS, m
    :: else -> up[S(me, h)]!OFFER, 0; up[S(me, h)]!TRY, m
    fi;
    knows[h] = true;
    if
    :: late && MUT != 136 -> up[S(me, h)]!WITHDRAW, 0
    :: else
    fi
}
inline go_on() {
    if
    :: over || trying < 2
    :: !over && trying == 2 && unwanted -> outcome(NOTHING, 2)
    :: !over && trying == 2 && !unwanted && CASE != 2 && (quiet & KEEP) == KEEP -> outcome(RETIRED, 2)
    :: else ->
        do
        :: asked < N && (!(ALL & BIT(asked)) || (quiet & BIT(asked)) || (MUT == 145 && (OFF & BIT(asked)) && (ALL & MINE(HOME(asked)) & (7 - OFF)) == 0) ||
           (MUT == 137 && KIND(me) == LOOKS && asked > 0)) -> asked++
        :: else -> break
        od;
        if
        :: asked < N -> from = asked; asked++; attempt(HOME(from), BIT(from))
        :: else ->
            from = N;
            if
            :: KIND(me) == LOOKS || late -> outcome(NOTHING, 2)
            :: !(KIND(me) == LOOKS || late) && ready[0] -> attempt(0, (ALL & MINE(0)))
            :: !(KIND(me) == LOOKS || late) && !ready[0] && ready[1] -> attempt(1, (ALL & MINE(1)))
            :: else -> state[me] = WAITS
            fi
        fi
    fi
}

proctype Party(byte me) {
    byte g, h, o, asked, from, trying = 2, quiet;
    mtype k;
    bool knows[2];                          /* the homes to which the place has offered */
    bool ready[2], late, unwanted, fell, lost;
    atomic {
        for (g : 0 .. N - 1) { there[g] = plain[g]; ended[g] = retired[g] };
        g = 0;
        if
        :: up[S(me, 0)]!OFFER, 0; knows[0] = true
        :: (OFF & MINE(0)) == 0
        fi;
        if
        :: !cut -> up[S(me, 1)]!OFFER, 0; knows[1] = true
        :: (OFF & MINE(1)) == 0
        :: else
        fi;
        go_on(); g = 0 }
endwait:
    do
    :: atomic {
        if
        :: nempty(down[S(me, 0)]) -> h = 0
        :: !lost && nempty(down[S(me, 1)]) -> h = 1
        fi;
        down[S(me, h)]?k, o;
        if
        :: over
        :: !over && k == READY -> ready[h] = true; go_on()
        :: !over && k == SILENT ->
            if :: trying == h && !(OFF & BIT(o)) -> fell = true :: else fi;
            quiet = quiet | BIT(o); go_on()
        :: !over && k == NOTREADY ->
            trying = 2; if :: fell -> asked = from; fell = false :: else fi; go_on()
        :: !over && k == DONE ->
#if NP == 1
            /* rule 5.4: if several parties were there when the choice began, they are asked in the
             * order of the guards */
            assert(!(o > 0 && there[0] && !(OFF & 1)) && !(o > 1 && there[1] && !(OFF & 2)));
#endif
            outcome(TAKEN, h)
        fi;
        g = 0; k = OFFER; o = 0; h = 0 }
    :: atomic { KIND(me) == TIMED && !fired[me] && !over -> fired[me] = true;
        if
        :: asked >= N || MUT == 135 -> unwanted = true
        :: else -> late = true
        fi;
        if
        :: trying < 2 -> if :: MUT != 139 -> up[S(me, trying)]!WITHDRAW, 0 :: else fi
        :: else -> go_on()
        fi;
        g = 0 }
#ifdef CUT
    :: atomic { cut && !lost && !over && empty(down[S(me, 1)]) -> lost = true;
        if
        :: MUT == 144 -> outcome(DIED, 2)
        :: else -> quiet = quiet | BIT(1); if :: trying == 1 -> trying = 2 :: else fi; go_on()
        fi;
        g = 0 }
#endif
#ifdef STOP
    :: me == 1 -> stopped[1] = true; break
#endif
    od
}

init {
    byte p, g;
    atomic {
#if CASE == 1
        for (g : 0 .. N - 1) {
            if
            :: plain[g] = true
            :: come[g] = 1
            :: skip
            fi
        };
        if :: may_retire[2] = true :: skip fi;
#ifdef LEAVES
        for (g : 0 .. 1) { if :: may_leave[g] = true; come[g]++ :: skip fi };
#endif
#elif CASE >= 3
        if :: come[0] = 1 :: skip fi;
        if :: may_retire[0] = true :: skip fi;
        g = CASE - 2;
        if :: plain[g] = true :: skip fi;
        if :: may_retire[g] = true :: skip fi;
#endif
        g = 0;
        for (p : 0 .. NP - 1) { state[p] = TRIES };
        p = 0;
        run Home(0); run Home(1)
    };
    run Party(0);
#if NP == 2
    run Party(1);
#endif
#ifdef CUT
    if
    :: atomic { cut = true; do :: nempty(up[S(0, 1)]) -> up[S(0, 1)]?_, _ :: empty(up[S(0, 1)]) -> break od;
         do :: nempty(down[S(0, 1)]) -> down[S(0, 1)]?_, _ :: empty(down[S(0, 1)]) -> break od }
    :: true
    fi;
#endif
end:
    timeout ->
    d_step {
    for (p : 0 .. NP - 1) {
        assert(state[p] != DIED);                           /* 5.11: the lost home had only
                                                               guards that are off */
        /* 5.9: a timer that has come ends the choice, even if another choice has stopped; a choice
         * that never waits is delayed only by a choice that is held (5.10) */
        assert(!(fired[p] && (state[p] == WAITS || state[p] == TRIES)) || stopped[p]);
        assert(!(KIND(p) == LOOKS && (state[p] == WAITS || state[p] == TRIES)) || stopped[0] || stopped[NP - 1]);
        assert(state[p] != TRIES || stopped[0] || stopped[NP - 1]);
#if NP == 1
        for (g : 0 .. N - 1) {
            /* 5.2, 5.3: the choice does not wait beside a party that it could meet */
            assert(!(state[p] == WAITS && plain[g] && !(OFF & BIT(g))));
            /* 5.9: nor is it over without a partner although a partner waited all the time */
            assert(!(state[p] == NOTHING && there[g] && !(OFF & BIT(g))));
        }
#else
        assert(!(state[0] == WAITS && state[1] == WAITS));  /* the two choices could meet */
#endif
    }
#if CASE >= 3
    /* 5.11: the choice is over with the output that is on, unless one that is off was open when its
     * home heard of it */
#define GONE_OFF (asked_off[CASE - 2] || cut)
    assert(state[0] != RETIRED || (retired[0] && GONE_OFF));
    assert(!(state[0] == WAITS && retired[0] && GONE_OFF));
    /* and a choice that never waits learns this */
    assert(!(state[0] == NOTHING && ended[0] && ended[CASE - 2] && !cut));
#elif CASE == 1
    assert(state[0] != RETIRED);
#endif
    }
}
