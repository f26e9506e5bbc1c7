/* A choice whose guards live at several homes (WIRE.md 5). Each home decides about its own channel,
 * as always. The place of the choice tries the homes one after the other; a home that cannot commit
 * keeps watching, and says READY once it might be able to.
 *
 *   place:  OFFER ──► asks: TRY each in order ──NOTREADY──► the next … ──► waits ──READY──► TRY ──► …      DONE, ENDED: over, GONE to the others
 *   home:   OFFER ──► watches ──a party came──► READY      TRY ──► a partner waits: DONE │ none: NOTREADY, it watches again
 *                                                               └──► another choice watches here, and is later in the order: held in the queue
 *                                                                    until that choice has come (DONE) or left (NOTREADY)
 *
 * Each place offers to a home before it asks any home, or as it asks that home; in the latter case
 * OFFER is a TRY too (ASKS), and the home has checked nothing before. LATE=1: always so. Channel h
 * is the only one of home h. A party has a role at each channel; its number is its place in the
 * fixed order. Plain parties are the home's own.
 * TOPO 1: a choice of two inputs; plain writers come. 2: two choices that cross. 3: three choices
 * in a ring over three homes. 4: two choices that cross, and a plain reader that takes from either.
 * 5: as 1 with outputs; plain readers come.
 * FAULT 1: a session is cut. 2: a home dies. 3: withdrawals. 4: channels retire. 5: a channel is
 * poisoned.
 *
 * MUT 71: no choice is held. 72: every choice is held, whatever the order. 73: GONE frees no choice
 * that is held. 74: a home does not watch again after a TRY. 75: a home that begins to watch does
 * not check first. 76: a READY that comes during a TRY is dropped. 77: a withdrawal does not wait
 * for the TRY's answer. 78: a writer whose home is lost during a TRY is told that nothing happened.
 * 79: the first channel that retires ends the choice. 80: the place does not ask in order. 147: a
 * home that was offered to as it was asked is not told GONE.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef TOPO
#define TOPO 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#if TOPO == 3
#define NH 3
#define NP 3
#elif TOPO == 1 || TOPO == 5
#define NH 2
#define NP 1
#else
#define NH 2
#define NP 2
#endif

#define NONE 0
#define WR 1
#define RD 2
#define OPP(r) (3 - (r))
#define AT(p, h) ((p) * NH + (h))
#define LINK NP * NH

mtype = { OFFER, TRY, ASKS, GONE, WITHDRAW, READY, NOTREADY, DONE, ENDED, SILENT }
mtype = { WAITS, TRIES, TAKEN, NOT, DOUBT, OVER }

chan up[LINK] = [7] of { mtype, byte };
chan down[LINK] = [7] of { mtype, byte };
byte role[LINK];
bool cut[LINK];                 /* frames under way are lost */
bool told_cut[LINK];            /* the home knows of the cut */
bool dead[NH];

byte offered[LINK];             /* at the home: the operation, 0 if none */
bool watch[LINK], line[LINK];
bool plain[NH];                 /* a plain party of the other side, with role `prole`, waits */
byte prole[NH];
byte plains;                    /* how many plain parties may still come */
bool retired[NH], poisoned[NH];
byte taken[NH];                 /* meetings at this home's channel, as the home saw them */

mtype state[NP];                /* the outcome that the place knows */
byte op[NP], trying[NP], last[NP];
byte tries[NP];                 /* how often this operation was tried: two choices that only hint at
                                   each other would go on for ever */
bool faulty, told_not[NP];
byte wrote[NP], sure[NP], notsure[NP];   /* the numbers of p's values that were taken, reported as taken, and reported in doubt */

inline tell(p, h, k) { if :: !cut[AT(p, h)] -> down[AT(p, h)]!k, offered[AT(p, h)] :: else fi }
inline met(p, h) { if :: role[AT(p, h)] == WR -> wrote[p]++ :: else fi }

/* Sets `who` to the party that is queued for p: NP is the plain one, NP + 1 means none. */
inline partner(p, h) {
    who = NP + 1;
    for (z : 0 .. NP - 1) {
        if
        :: who > NP && z != p && line[AT(z, h)] && role[AT(z, h)] == OPP(role[AT(p, h)]) -> who = z
        :: else
        fi
    }
    if
    :: plain[h] && prole[h] == OPP(role[AT(p, h)]) -> who = NP
    :: else
    fi
}
inline arm(p, h) {
    partner(p, h);
    if
    :: retired[h] -> tell(p, h, SILENT)
    :: !retired[h] && poisoned[h] -> tell(p, h, READY)
    :: !retired[h] && !poisoned[h] && who <= NP && MUT != 75 -> tell(p, h, READY)
    :: else -> watch[AT(p, h)] = true
    fi
}
inline hint(r, h) {
    for (z : 0 .. NP - 1) {
        if
        :: watch[AT(z, h)] && role[AT(z, h)] == r -> watch[AT(z, h)] = false; tell(z, h, READY)
        :: else
        fi
    }
}
/* Sets whether p, which is queued, must wait for another choice. */
inline held(p, h) {
    hold = false;
    for (z : 0 .. NP - 1) {
        if
        :: offered[AT(z, h)] && z != p && role[AT(z, h)] == OPP(role[AT(p, h)]) && (z > p || MUT == 72) && MUT != 71 -> hold = true
        :: else
        fi
    }
}
inline leave(p, h) {
    line[AT(p, h)] = false;
    if
    :: MUT != 74 -> arm(p, h)
    :: else
    fi;
    tell(p, h, NOTREADY)
}
inline free_held(h) {
    for (y : 0 .. NP - 1) {
        if
        :: line[AT(y, h)] && MUT != 73 -> held(y, h); if :: !hold -> leave(y, h) :: else fi
        :: else
        fi
    }
}
inline drop(p, h) { offered[AT(p, h)] = 0; watch[AT(p, h)] = false; line[AT(p, h)] = false }

proctype Home(byte h) {
    byte p, o, y, z, who, between;
    mtype k;
    bool hold, may_retire = (FAULT == 4), may_poison = (FAULT == 5);
endloop:
    do
    :: atomic {
        if
        :: between == 0 && !dead[h] && nempty(up[AT(0, h)]) -> p = 0
#if NP > 1
        :: between == 0 && !dead[h] && nempty(up[AT(1, h)]) -> p = 1
#endif
#if NP > 2
        :: between == 0 && !dead[h] && nempty(up[AT(2, h)]) -> p = 2
#endif
        fi;
        up[AT(p, h)]?k, o;
        if
        :: told_cut[AT(p, h)]
        :: !told_cut[AT(p, h)] && k == OFFER -> offered[AT(p, h)] = o; arm(p, h)
        :: !told_cut[AT(p, h)] && (k == TRY || k == ASKS) ->
            if :: k == ASKS -> offered[AT(p, h)] = o :: else fi;
            partner(p, h);
            if
            :: poisoned[h] -> watch[AT(p, h)] = false; tell(p, h, ENDED); drop(p, h)
            :: !poisoned[h] && retired[h] -> tell(p, h, SILENT); tell(p, h, NOTREADY)
            :: !poisoned[h] && !retired[h] && who < NP ->
                taken[h]++; met(p, h); met(who, h);
                tell(p, h, DONE); tell(who, h, DONE); drop(p, h); drop(who, h); free_held(h)
            :: !poisoned[h] && !retired[h] && who == NP ->
                taken[h]++; met(p, h); plain[h] = false; tell(p, h, DONE); drop(p, h); free_held(h)
            :: else ->
                watch[AT(p, h)] = false; line[AT(p, h)] = true;
                hint(OPP(role[AT(p, h)]), h);
                held(p, h);
                if
                :: !hold -> line[AT(p, h)] = false; between = p + 1        /* a plain party may come now */
                :: else
                fi
            fi
        :: !told_cut[AT(p, h)] && k == GONE -> if :: offered[AT(p, h)] == o -> drop(p, h); free_held(h) :: else fi
        :: !told_cut[AT(p, h)] && k == WITHDRAW -> if :: offered[AT(p, h)] == o && line[AT(p, h)] -> leave(p, h) :: else fi
        fi;
        who = 0; y = 0; z = 0; hold = false; k = OFFER; o = 0; p = 0
        }
    :: atomic { between > 0 && !dead[h] -> p = between - 1; between = 0;
        if
        :: told_cut[AT(p, h)]
        :: else -> if :: MUT != 74 -> arm(p, h) :: else fi; tell(p, h, NOTREADY)
        fi;
        p = 0; who = 0; z = 0 }
    :: atomic { !dead[h] && plains > 0 && !plain[h] && !retired[h] && !poisoned[h] && prole[h] != NONE -> /* a plain party comes */
        plains--;
        who = NP + 1;
        for (z : 0 .. NP - 1) {
            if
            :: who > NP && line[AT(z, h)] && role[AT(z, h)] == OPP(prole[h]) -> who = z
            :: else
            fi
        }
        if
        :: who < NP -> taken[h]++; met(who, h); tell(who, h, DONE); drop(who, h); free_held(h)
        :: else -> plain[h] = true; hint(OPP(prole[h]), h)
        fi;
        who = 0; z = 0; y = 0; hold = false }
    :: atomic { may_retire && !dead[h] && !plain[h] -> may_retire = false; retired[h] = true;
        for (y : 0 .. NP - 1) {
            if
            :: line[AT(y, h)] -> leave(y, h)
            :: !line[AT(y, h)] && watch[AT(y, h)] -> watch[AT(y, h)] = false; tell(y, h, SILENT)
            :: else
            fi
        }; who = 0; z = 0; y = 0 }
    :: atomic { may_poison && h == 0 && !dead[h] -> may_poison = false; poisoned[h] = true;
        for (y : 0 .. NP - 1) {
            if
            :: line[AT(y, h)] -> tell(y, h, ENDED); drop(y, h)
            :: !line[AT(y, h)] && watch[AT(y, h)] -> watch[AT(y, h)] = false; tell(y, h, READY)
            :: else
            fi
        }; who = 0; z = 0; y = 0 }
    :: atomic { FAULT == 1 && !dead[h] && cut[AT(0, h)] && !told_cut[AT(0, h)] -> told_cut[AT(0, h)] = true;
        drop(0, h);
        free_held(h); who = 0; z = 0; y = 0; hold = false }
    od
}

inline outcome(what, h) {                /* the operation is over */
    for (g : 0 .. NH - 1) {
        if
        :: told[g] && !cut[AT(me, g)] && !(what == DONE && g == h) && !(MUT == 147 && late[g]) -> up[AT(me, g)]!GONE, op[me]
        :: else
        fi
    }
    state[me] = (what == DONE -> TAKEN : what);
    last[me] = (what == DONE -> h : NH);
    if
    :: what == DONE && role[AT(me, h)] == WR -> sure[me]++
    :: what == DOUBT -> notsure[me]++
    :: what == NOT -> told_not[me] = true
    :: else
    fi
}

/* Asks home h, which is the next to be tried. */
inline ask(h) {
    ready[h] = false; trying[me] = h;
    if
    :: told[h] -> up[AT(me, h)]!TRY, op[me]
    :: else -> told[h] = true; late[h] = true; up[AT(me, h)]!ASKS, op[me]
    fi;
    tries[me]++; assert(tries[me] <= 4 * NH)
}

proctype Party(byte me) {
    byte g, h, o, asked, start;
    bool told[NH], late[NH];             /* the homes that were offered to, and those that were offered to as they were asked */
    mtype k;
    bool ready[NH], silent[NH], lost, wants, may_withdraw = (FAULT == 3);
    do
    :: op[me] == ROUNDS -> break
    :: else ->
        atomic {
        op[me]++; tries[me] = 0; state[me] = TRIES; lost = false; asked = 0;
        for (g : 0 .. NH - 1) {
            ready[g] = false; silent[g] = false; told[g] = false; late[g] = false;
            if
            :: role[AT(me, g)] != NONE && cut[AT(me, g)] -> lost = true
            :: role[AT(me, g)] != NONE && !cut[AT(me, g)] && !LATE -> told[g] = true; up[AT(me, g)]!OFFER, op[me]
            :: role[AT(me, g)] != NONE && !cut[AT(me, g)]  /* the offer follows when the home is asked */
            :: else
            fi
        };
        g = 0;
        start = (last[me] == NH || op[me] == 1 -> 0 : (last[me] + 1) % NH) };
        trying[me] = NH;                 /* no home is being tried */
endwait:
        do
        :: atomic { state[me] == TRIES && trying[me] == NH && lost -> outcome(NOT, 0) }; goto over
        :: atomic { state[me] == TRIES && trying[me] == NH && !lost && wants -> wants = false; outcome(NOT, 0) }; goto over
        :: atomic { state[me] == TRIES && trying[me] == NH && !lost && !wants && (asked >= NH || MUT == 80) ->
            asked = NH; h = NH;
            for (g : 0 .. NH - 1) { if :: ready[g] -> h = g :: else fi };
            g = 0;
            if
            :: h < NH -> ask(h)
            :: else -> state[me] = WAITS
            fi }
        :: atomic { state[me] == TRIES && trying[me] == NH && !lost && !wants && asked < NH && MUT != 80 ->
            h = (start + asked) % NH; asked++;
            if
            :: role[AT(me, h)] != NONE && !silent[h] -> ask(h)
            :: else
            fi }
        :: atomic {
            if
            :: down[AT(me, 0)]?k, o -> h = 0
            :: down[AT(me, 1)]?k, o -> h = 1
#if NH > 2
            :: down[AT(me, 2)]?k, o -> h = 2
#endif
            fi;
            if
            :: o != op[me]
            :: else ->
                if
                :: k == READY -> if :: MUT == 76 && state[me] == TRIES :: else -> ready[h] = true; state[me] = TRIES fi
                :: k == SILENT -> silent[h] = true; ready[h] = false;
                    if
                    :: state[me] == WAITS || state[me] == TRIES -> state[me] = (trying[me] == NH -> TRIES : state[me])
                    :: else
                    fi
                :: k == NOTREADY -> trying[me] = NH
                :: k == DONE -> outcome(DONE, h); trying[me] = NH
                :: k == ENDED -> outcome(OVER, h); trying[me] = NH
                fi
            fi };
            if
            :: state[me] == TAKEN || state[me] == OVER -> goto over
            :: else
            fi;
            atomic {
            if
            :: trying[me] == NH && ((silent[0] && (NH == 1 || silent[1])) || (MUT == 79 && (silent[0] || silent[1]))) ->
                assert(retired[0] && retired[1]);
                outcome(OVER, 0)
            :: else
            fi };
            if
            :: state[me] == OVER -> goto over
            :: else
            fi
        :: atomic { may_withdraw && state[me] == WAITS -> may_withdraw = false; outcome(NOT, 0) }; goto over
        :: atomic { may_withdraw && state[me] == TRIES && trying[me] < NH ->
            may_withdraw = false; wants = true; up[AT(me, trying[me])]!WITHDRAW, op[me];
            if
            :: MUT == 77 -> outcome(NOT, 0)
            :: else
            fi };
            if
            :: state[me] == NOT -> goto over
            :: else
            fi
        :: atomic { FAULT == 1 && me == 0 && cut[AT(0, 0)] && !lost ->
            lost = true;
            if
            :: trying[me] == 0 -> trying[me] = NH;
                if
                :: role[AT(me, 0)] == WR && MUT != 78 -> outcome(DOUBT, 0)
                :: else -> outcome(NOT, 0)
                fi
            :: else -> if :: state[me] == WAITS -> state[me] = TRIES :: else fi
            fi };
            if
            :: state[me] != TRIES -> goto over
            :: else
            fi
        :: atomic { FAULT == 2 && dead[0] && empty(down[AT(me, 0)]) && !lost && role[AT(me, 0)] != NONE ->
            lost = true; cut[AT(me, 0)] = true;
            if
            :: trying[me] == 0 -> trying[me] = NH;
                if
                :: role[AT(me, 0)] == WR && MUT != 78 -> outcome(DOUBT, 0)
                :: else -> outcome(NOT, 0)
                fi
            :: else -> if :: state[me] == WAITS -> state[me] = TRIES :: else fi
            fi };
            if
            :: state[me] != TRIES -> goto over
            :: else
            fi
        od;
over:
        atomic {
        wants = false; trying[me] = NH; g = 0; h = 0; k = OFFER; o = 0;
#if FAULT == 0 && (TOPO == 1 || TOPO == 5)
#ifdef ALL
        /* Every party waited from the start: the first round keeps the priority, and the second
         * takes the other one (rules 5.2, 5.4). */
        assert(op[me] != 1 || last[me] == 0);
        assert(op[me] != 2 || last[me] == 1);
#endif
#endif
        skip }
    od
}

init {
    byte p, h;
    d_step {
#if TOPO == 1
    role[AT(0, 0)] = RD; role[AT(0, 1)] = RD; prole[0] = WR; prole[1] = WR; plains = ROUNDS + 1;
#elif TOPO == 5
    role[AT(0, 0)] = WR; role[AT(0, 1)] = WR; prole[0] = RD; prole[1] = RD; plains = ROUNDS + 1;
#elif TOPO == 2 || TOPO == 4
    role[AT(0, 0)] = WR; role[AT(0, 1)] = RD; role[AT(1, 0)] = RD; role[AT(1, 1)] = WR;
#if TOPO == 4
    prole[0] = RD; prole[1] = RD; plains = 1;
#endif
#elif TOPO == 3
    role[AT(0, 0)] = WR; role[AT(0, 2)] = RD; role[AT(1, 1)] = WR; role[AT(1, 0)] = RD; role[AT(2, 2)] = WR; role[AT(2, 1)] = RD;
#endif
#ifdef ALL
    plain[0] = true; plain[1] = true; plains = 0;
#endif
    for (p : 0 .. NP - 1) { trying[p] = NH; last[p] = NH; state[p] = OVER }
    p = 0
    };
    atomic {
        for (p : 0 .. NP - 1) { run Party(p) }
        for (h : 0 .. NH - 1) { run Home(h) }
    }
    if
    :: FAULT == 1 -> d_step { cut[AT(0, 0)] = true; faulty = true;
        do :: nempty(up[AT(0, 0)]) -> up[AT(0, 0)]?_, _ :: empty(up[AT(0, 0)]) -> break od; do :: nempty(down[AT(0, 0)]) -> down[AT(0, 0)]?_, _ :: empty(down[AT(0, 0)]) -> break od }
    :: FAULT == 2 -> d_step { dead[0] = true; faulty = true }
    :: true
    fi;
end:
    timeout ->
    d_step {
    for (p : 0 .. NP - 1) {
        /* every report to a writer about whether its value was taken is true */
        assert(wrote[p] <= sure[p] + notsure[p]);
        assert(sure[p] <= wrote[p]);
        for (h : 0 .. NH - 1) {
            /* no party waits beside one that it could meet, at a channel that is poisoned, or at a
             * home that has ended */
            assert(!(state[p] == WAITS && plain[h] && role[AT(p, h)] == OPP(prole[h]) && !dead[h]));
            assert(!((state[p] == WAITS || state[p] == TRIES) && role[AT(p, h)] != NONE && (poisoned[h] || dead[h] || cut[AT(p, h)])));
            assert(state[p] != TRIES)
        }
    }
#if NP > 1
    for (h : 0 .. NH - 1) {
        for (p : 0 .. NP - 2) {
            assert(!(state[p] == WAITS && state[p + 1] == WAITS && role[AT(p, h)] == OPP(role[AT(p + 1, h)]) && role[AT(p, h)] != NONE && !retired[h]))
        }
    }
#endif
    assert(!(retired[0] && retired[1] && (state[0] == WAITS || state[NP - 1] == WAITS)))
    }
}
