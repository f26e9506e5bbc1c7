/* A delegated operation over a session that may end at any step (WIRE.md 2, 4, 7.3, 8).
 *
 * Three spaces, each with a session to the home of one channel: a writer, and two readers, one of
 * which withdraws. A session is two queues. A cut loses the frames under way. When a home dies, the
 * frames that it has sent still arrive (FAULT 1: a cut, 2: the home dies).
 *
 *   party:  OFFER ──► waits ──DONE, ENDED──► over          waits ──WITHDRAW──► asked ──WITHDRAWN, DONE, ENDED──► over
 *                       └────────────the session ends: a writer in doubt, a reader dead────────────┘
 *
 * MUT 31: the writer's DONE is sent before the reader's. 32: a withdrawal does not wait for its
 * answer. 33: a writer whose session ends is told that nothing happened. 34: offers outlive their
 * session. 36: RETIRE drops the waiting write. 37: poison answers only the parties that wait at
 * that moment.
 *
 * Checked: a value is taken at most once, and never if its writer was told that the value was not
 * taken; if a writer was told that its value was taken, it was, unless the reader was lost; no
 * party that could be served is left waiting.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef FAULT
#define FAULT 0
#endif
#define NP 3                       /* 0 writes, 1 and 2 read; 1 may withdraw */
#if FAULT == 1
#define ROUNDS 1                   /* the number of operations of each party; a value is the number of its write */
#else
#define ROUNDS 2
#endif

mtype = { OFFER, WITHDRAW, RETIRE, POISON, DONE, WITHDRAWN, ENDED }
mtype = { OPEN, OK, NOT, DOUBT }   /* what a writer knows of a value */
chan up[NP] = [6] of { mtype, byte };
chan down[NP] = [6] of { mtype, byte, byte };

bool cut[NP];                      /* the session has ended: frames in the queues may be lost */
bool drains;                       /* the home died: the frames that it sent still arrive */
bool waits[NP];                    /* a party awaits an answer */
mtype told[ROUNDS + 1] = OPEN;
byte taken[ROUNDS + 1];
bool lost_reader;                  /* a reader's session was cut */
bool ended;                        /* the writer's end is closed, or the channel poisoned */
bool poisoned;
byte offer[NP];                    /* kept at the home: the open operation */
bool settled[NP];                  /* the home knows of the end of the session */

inline to_home(k) { if :: !cut[me] -> up[me]!k, op :: else fi }
inline to_party(p, k, v) { if :: !cut[p] -> down[p]!k, offer[p], v :: else fi }

inline outcome(k, v) {
    if
    :: me == 0 && k == DONE -> assert(told[op] == OPEN); told[op] = OK
    :: me == 0 && k != DONE -> told[op] = (told[op] == OPEN -> NOT : told[op])
    :: me != 0 && k == DONE -> taken[v]++; assert(taken[v] <= 1)
    :: else
    fi
}

proctype Party(byte me; bool may_withdraw) {
    byte op, o, v;
    mtype k;
    bool asked;
    do
    :: op == ROUNDS || cut[me] -> break
    :: else ->
        op++; asked = false; waits[me] = true;
        to_home(OFFER);
        if
        :: me == 0 && op == ROUNDS -> to_home(RETIRE)      /* meanwhile another process of the space closes the end (rule 3.2) */
        :: me == 0 && op == ROUNDS && MUT != 36 -> to_home(POISON)
        :: else
        fi;
endwait:
        do
        :: down[me]?k, o, v ->
            if
            :: o == op -> outcome(k, v); break
            :: else
            fi
        :: may_withdraw && !cut[me] ->
            may_withdraw = false; asked = true; to_home(WITHDRAW);
            if
            :: MUT == 32 -> outcome(WITHDRAWN, 0); break
            :: else
            fi
        :: cut[me] && (!drains || empty(down[me])) ->
            if
            :: me == 0 && told[op] == OPEN -> told[op] = (MUT == 33 -> NOT : DOUBT)
            :: else
            fi;
            goto over
        od;
        waits[me] = false
    od;
over:
    waits[me] = false
}

inline die() { d_step { drains = true; cut[0] = true; cut[1] = true; cut[2] = true } }

inline answer_ended(p) {
    if
    :: offer[p] -> to_party(p, ENDED, 0); offer[p] = 0
    :: else
    fi
}

inline match() {
    if
    :: poisoned && MUT != 37 -> answer_ended(0); answer_ended(1); answer_ended(2)
    :: poisoned && MUT == 37 && k == POISON -> answer_ended(0); answer_ended(1); answer_ended(2)
    :: poisoned && MUT == 37 && k != POISON
    :: !poisoned && offer[0] && (offer[1] || offer[2]) ->
        r = (offer[1] -> 1 : 2);
        assert(!settled[r]);                           /* the reader is known to have ended */
        if
        :: MUT == 31 -> to_party(0, DONE, 0)
        :: else -> to_party(r, DONE, offer[0])
        fi;
        if
        :: FAULT == 2 && !drains -> die(); goto dead
        :: true
        fi;
        if
        :: MUT == 31 -> to_party(r, DONE, offer[0])
        :: else -> to_party(0, DONE, 0)
        fi;
        offer[0] = 0; offer[r] = 0
    :: else
    fi;
    if
    :: retired && !offer[0] -> answer_ended(1); answer_ended(2)
    :: else
    fi
}

active proctype Home() {
    byte p, r, o;
    mtype k;
    bool retired;
endloop:
    do
    :: atomic {
        if
        :: up[0]?k, o -> p = 0
        :: up[1]?k, o -> p = 1
        :: up[2]?k, o -> p = 2
        fi;
        if
        :: settled[p]                                  /* a frame of a session that has ended:
                                                          skipped */
        :: !settled[p] && k == OFFER -> offer[p] = o
        :: !settled[p] && k == WITHDRAW ->
            if
            :: offer[p] == o -> to_party(p, WITHDRAWN, 0); offer[p] = 0
            :: else
            fi
        :: !settled[p] && k == RETIRE -> retired = true; ended = true;
            if
            :: MUT == 36 -> offer[0] = 0
            :: else
            fi
        :: !settled[p] && k == POISON -> poisoned = true; ended = true
        fi };
        match()
    :: atomic { !drains && cut[0] && !settled[0] -> p = 0; settled[0] = true; retired = true; ended = true }; goto settle
    :: atomic { !drains && cut[1] && !settled[1] -> p = 1; settled[1] = true }; goto settle
    :: atomic { !drains && cut[2] && !settled[2] -> p = 2; settled[2] = true };
settle:
        if
        :: MUT != 34 -> offer[p] = 0
        :: else
        fi;
        match()
    :: FAULT == 2 && !drains -> die(); break
    od;
dead: skip
}

proctype Cutter() {
    if
    :: FAULT == 1 -> if :: cut[0] = true :: atomic { cut[1] = true; lost_reader = true } :: atomic { cut[2] = true; lost_reader = true } fi
    :: true
    fi
}

init {
    atomic { run Party(0, false); run Party(1, true); run Party(2, false); run Cutter() }
end:
    timeout ->
    byte v;
    for (v : 1 .. ROUNDS) {
        assert(!(told[v] == NOT && taken[v]));
        assert(!(told[v] == OK && !taken[v]) || lost_reader)
    }
    /* At rest: no party waits beside another that could serve it, at a channel that has ended, or
     * at a home that has ended. */
    assert(!(waits[0] && (waits[1] || waits[2])));
    assert(drains || !((waits[0] && !offer[0]) || (waits[1] && !offer[1]) || (waits[2] && !offer[2])));
    assert(!drains || !(waits[0] || waits[1] || waits[2]));
    assert(!ended || !((waits[0] && poisoned) || waits[1] || waits[2]))
}
