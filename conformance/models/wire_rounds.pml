/* Do several programs stand still? Rounds of questions over their sessions (WIRE.md 10.3, 10.6).
 *
 * Programs 0, 1 and 2 have sessions 0-1 and 1-2, with TRIANGLE 0-2 too. Program 0 asks. Program 1
 * has two runs, which wake each other without a frame; the others have one run each. A run that
 * goes on queues frames, wakes the other run of its program, or comes to rest. A received frame
 * wakes a run of the receiver, or none.
 *   0 ──ASK──► a program that gets it first gives its state, asks its other sessions ──all have SAID, or are gone──► SAID ──► 0
 *              a program that does not wait asks none; on a repeated ASK: SAID, empty
 *   0: a round in which all wait and nothing is under way ──a second one: the same, and nothing has moved──► TELL to all
 *
 * The answers of a program are kept in `said`, by round; a SAID has the set of the programs whose
 * answers it brings. A program looks at all its runs at one moment, in which it takes in no frame.
 * Program 0 may look once at any moment, and looks when nothing moves any more: in the code the
 * last program to come to rest looks then.
 *
 * KILL: 2 is killed at any step; its peers notice one by one, and frames under way are lost or not.
 * JOIN: 2 has not joined yet; it may join by a meeting point of 1 as long as that is open. DEAF: 2
 * answers no rounds. ROUNDS=1: the first round is believed. That passes too: a program that goes on
 * after its answer was woken by a frame, and the first program to do so by a frame that was counted
 * where it was sent and not where it was taken. The second round is a precaution against other
 * things that may wake a program.
 *
 * MUT 122: frames under way are not counted (with ROUNDS=1: a session keeps its order, so that
 * frames under way in the first round are taken in before the second round is over, and have
 * moved). 123: a program looks at its runs one after the other. 124: a session with a program that
 * was not asked does not count. 125: frames of rounds move the counters. 126: a program that is
 * asked again does not answer. 127: a program that is asked asks no others. 128: an open meeting
 * point does not count as outside. 129: a session that is still opening does not count. 130: TELL
 * strikes running processes. 131: the answer of a program that has ended is awaited. 132: a second
 * round is mistaken for the first. 133: a running program reports that it waits.
 *
 * Checked: when a deadlock is reported, there was a moment between its rounds at which no run could
 * go on, no frame was under way and no program could join; and this still holds, unless a program
 * was killed since. TELL strikes only waiting runs. A deadlock that exists in the end is reported;
 * no other deadlock is ever reported.
 *
 * Not modelled: several programs that ask at once (each gathers its own answers), and a program
 * that loses patience: an answer to an earlier round is recognised by its number and ignored.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef FRAMES
#define FRAMES 1                     /* how many frames the runs may queue, all together */
#endif
#ifndef WAKES
#define WAKES 0                      /* how often a run of 1 may wake the other run */
#endif
#ifdef DEAF
#define ANSWERS(p) (p != 2)
#else
#define ANSWERS(p) true
#endif
#define LINK(a, b) link[(a) * 3 + (b)]
#define NOBODY 3
#define BIT(p) (1 << (p))

mtype = { DATA, HELLO, ASK, SAID, TELL };
chan link[9] = [7] of { mtype, byte, byte, bool };  /* the fields: type, round, whose answers, whether all have answered */

/* Runs: 0 of program 0; 1 and 2 of program 1; 3 of program 2. */
#define OWNER(r) ((r + 1) / 2)
bool busy[4], struck[4];             /* struck: Deadlock is thrown in it */

byte sent[9], taken[9];              /* counts of frames by LINK; in `taken` the receiver comes first */
bool linked[9];                      /* whether the first has a session with the second */
bool open[9];                        /* whether the first has the other's HELLO */
bool point;                          /* 1's meeting point is open */
bool killed;
byte frames = FRAMES, wakes = WAKES;

typedef Answer { bool waits; byte sent[3]; byte taken[3]; bool has[3] };
Answer said[6];                      /* the answer of program p in the round of parity k is at k * 3 + p */

byte want, found, whose;             /* 0's look: the round that it wants; the round that is over;
                                        the programs whose answers came */
bool whole, still_between;
bool heard_tell[3];
byte i, j;                           /* counters within atomic steps */

#define HERE(r) (!struck[r] && !(OWNER(r) == 2 && killed))
#define MOVES(r) (busy[r] && HERE(r))
#define IDLE(a, b) (!linked[(a) * 3 + (b)] || (open[(a) * 3 + (b)] && !(LINK(a, b)??[DATA, _, _, _])))
#define NOBODY_MOVES (!MOVES(0) && !MOVES(1) && !MOVES(2) && !MOVES(3))
/* A killed program that is not known to be killed still has sessions, and may wake a run. */
#define NOTHING_DUE (IDLE(0, 1) && IDLE(1, 0) && IDLE(1, 2) && IDLE(2, 1) && IDLE(0, 2) && IDLE(2, 0) && !point && \
                     !(killed && (linked[5] || linked[2])))
#define STILL (NOBODY_MOVES && NOTHING_DUE)

inline wake(run_) { if :: HERE(run_) && !busy[run_] -> busy[run_] = true :: else fi }
/* A frame that arrives wakes a run of p, or none. */
inline wakes_one(program_) {
    if
    :: true
    :: program_ == 0 -> wake(0)
    :: program_ == 1 -> wake(1)
    :: program_ == 1 -> wake(2)
    :: program_ == 2 -> wake(3)
    fi
}
inline queue(from_, to_, kind_, round_, mask_, all_) {
    if
    :: kind_ == DATA || kind_ == HELLO || MUT == 125 -> sent[from_ * 3 + to_]++
    :: else
    fi;
    if :: (to_ == 2 && killed) :: else -> link[from_ * 3 + to_]!kind_, round_, mask_, all_ fi
}

/* Deadlock is raised in the waiting runs of program p. Then p informs its other peers. */
inline tell(teller, by_) {
    if
    :: heard_tell[teller]
    :: else ->
        heard_tell[teller] = true;
        for (i : 0 .. 3) {
            if
            :: OWNER(i) == teller && HERE(i) && (!busy[i] || MUT == 130) -> assert(!busy[i]); struck[i] = true
            :: else
            fi
        }
        for (i : 0 .. 2) {
            if
            :: i != teller && i != by_ && linked[teller * 3 + i] -> queue(teller, i, TELL, 0, 0, false)
            :: else
            fi
        }
        i = 0
    fi
}

/* Plays the runs of all programs, and events from outside. */
active proctype World() {
    byte r, q;
    bool spared, stays;              /* 2 is not killed; the meeting point stays open */
end:
    do
    :: atomic { MOVES(0) -> r = 0; goto moves }
    :: atomic { MOVES(1) -> r = 1; goto moves }
    :: atomic { MOVES(2) -> r = 2; goto moves }
    :: atomic { MOVES(3) -> r = 3; goto moves }
#ifdef KILL
    :: atomic { !killed && !spared -> killed = true }
    :: atomic { !killed && !spared -> spared = true }
#endif
#ifdef JOIN
    :: atomic { point && !linked[7] ->
        linked[5] = true; linked[7] = true; busy[3] = true;
        queue(1, 2, HELLO, 0, 0, false); queue(2, 1, HELLO, 0, 0, false) }
    :: atomic { point && !stays -> point = false }
    :: atomic { point && !stays -> stays = true }
#endif
    od;
moves:
    atomic {
        if
        :: frames > 0 ->             /* it queues a frame over a session of its program */
            if
            :: OWNER(r) != 0 && linked[OWNER(r) * 3 + 0] -> q = 0
            :: OWNER(r) != 1 && linked[OWNER(r) * 3 + 1] -> q = 1
            :: OWNER(r) != 2 && linked[OWNER(r) * 3 + 2] -> q = 2
            :: true -> q = NOBODY
            fi;
            if
            :: q != NOBODY -> frames--; queue(OWNER(r), q, DATA, 0, 0, false)
            :: else
            fi
        :: wakes > 0 && (r == 1 || r == 2) -> wakes--; wake(3 - r)
        :: busy[r] = false
        fi;
        r = 0; q = 0
    };
    goto end
}

proctype Program(byte me) {
    mtype kind;
    byte from = NOBODY, round, mask;
    bool all;
    byte asker = NOBODY, awaited, got, known;  /* the answers that the program gathers; the latest
                                                  round that it knows of */
    bool gathered = true, complete;
    bool waits;
end:
    do
    :: atomic { me == 0 && want != 0 -> known = want; want = 0; asker = NOBODY }; goto begin
    :: atomic { !(me == 2 && killed) && nempty(LINK(0, me)) -> LINK(0, me)?kind, round, mask, all; from = 0 }; goto heard
    :: atomic { !(me == 2 && killed) && nempty(LINK(1, me)) -> LINK(1, me)?kind, round, mask, all; from = 1 }; goto heard
    :: atomic { linked[me * 3 + 2] && nempty(LINK(2, me)) -> LINK(2, me)?kind, round, mask, all; from = 2 }; goto heard
    :: atomic { me != 2 && killed && linked[me * 3 + 2] ->     /* it notices that 2 has died */
        linked[me * 3 + 2] = false; open[me * 3 + 2] = false;
        do :: LINK(2, me)?[_, _, _, _] -> LINK(2, me)?kind, round, mask, all :: else -> break od;
        if
        :: (awaited & BIT(2)) != 0 && MUT != 131 -> awaited = awaited & ~BIT(2); complete = false
        :: else
        fi;
        kind = 0; round = 0; mask = 0; all = false;
        wakes_one(me) };
        goto finish
    od;
heard:
    atomic {
        if
        :: kind == DATA || kind == HELLO || MUT == 125 -> taken[me * 3 + from]++
        :: else
        fi;
        if
        :: kind == DATA -> wakes_one(me)
        :: kind == HELLO -> open[me * 3 + from] = true
        :: kind == ASK && (me == 0 || round <= known || (MUT == 132 && known != 0)) ->
            if :: MUT == 126 :: else -> queue(me, from, SAID, round, 0, true) fi
        :: kind == ASK && me != 0 && round > known && !(MUT == 132 && known != 0) ->
            known = round; asker = from;
            kind = 0; from = NOBODY; round = 0;
            goto begin
        :: kind == SAID ->
            if
            :: round == known && (awaited & BIT(from)) != 0 ->
                awaited = awaited & ~BIT(from);
                got = got | mask;
                complete = complete && all;
                kind = 0; from = NOBODY; round = 0; mask = 0; all = false;
                goto finish
            :: else
            fi
        :: kind == TELL -> tell(me, from)
        fi;
        kind = 0; from = NOBODY; round = 0; mask = 0; all = false;
        goto end
    };
begin:                               /* a step: no frame is taken in */
    if
    :: me == 1 && MUT == 123 -> waits = !MOVES(1); waits = waits && !MOVES(2)
    :: else
    fi;
    atomic {
        if
        :: me == 2 && killed -> goto end
        :: me == 0 -> waits = !MOVES(0)
        :: me == 1 && MUT != 123 -> waits = !MOVES(1) && !MOVES(2)
        :: me == 2 && !killed -> waits = !MOVES(3)
        :: else
        fi;
        i = (known % 2) * 3 + me;
        said[i].waits = (waits || MUT == 133) && !(me == 1 && point && MUT != 128);
        gathered = false; complete = true; awaited = 0; got = BIT(me);
        for (j : 0 .. 2) {
            said[i].has[j] = linked[me * 3 + j] && (open[me * 3 + j] || MUT != 129);
            said[i].sent[j] = (said[i].has[j] -> sent[me * 3 + j] : 0);
            said[i].taken[j] = (said[i].has[j] -> taken[me * 3 + j] : 0);
            if
            :: linked[me * 3 + j] && !open[me * 3 + j] && MUT != 129 -> said[i].waits = false
            :: linked[me * 3 + j] && open[me * 3 + j] && j != asker && ANSWERS(j) && !(MUT == 127 && me != 0) ->
                awaited = awaited | BIT(j)
            :: else
            fi
        }
        if
        :: !said[i].waits && awaited != 0 -> awaited = 0; complete = false  /* the round will have no conclusion */
        :: else
        fi;
        for (j : 0 .. 2) {
            if :: (awaited & BIT(j)) != 0 -> queue(me, j, ASK, known, 0, false) :: else fi
        }
        i = 0; j = 0; waits = false
    };
finish:
    atomic {
        if
        :: !(me == 2 && killed) && !gathered && awaited == 0 ->
            gathered = true;
            if
            :: me == 0 -> whose = got; whole = complete; found = known
            :: me != 0 && linked[me * 3 + asker] -> queue(me, asker, SAID, known, got, complete)
            :: else
            fi;
            asker = NOBODY; got = 0; complete = false
        :: else
        fi
    };
    goto end
}

/* Draws program 0's conclusion from the answers of the round of parity k. */
inline stands_still(parity, it_is) {
    it_is = whole;
    for (i : 0 .. 2) {
        if
        :: (whose & BIT(i)) != 0 ->
            it_is = it_is && said[parity * 3 + i].waits;
            for (j : 0 .. 2) {
                if
                :: !said[parity * 3 + i].has[j]
                :: said[parity * 3 + i].has[j] && ((whose & BIT(j)) == 0 || !said[parity * 3 + j].has[i]) ->
                    it_is = it_is && MUT == 124
                :: else ->
                    it_is = it_is && (said[parity * 3 + i].sent[j] == said[parity * 3 + j].taken[i] || MUT == 122)
                fi
            }
        :: else
        fi
    }
    i = 0; j = 0
}
inline has_moved(it_has) {
    it_has = (before != whose);
    for (i : 0 .. 2) {
        if
        :: (whose & BIT(i)) != 0 ->
            for (j : 0 .. 2) {
                it_has = it_has || said[i].has[j] != said[3 + i].has[j] || said[i].sent[j] != said[3 + i].sent[j] ||
                         said[i].taken[j] != said[3 + i].taken[j]
            }
        :: else
        fi
    }
    i = 0; j = 0
}

/* Only the difference between two rounds counts: between two looks all counters are moved down. */
inline forget() {
    for (i : 0 .. 2) {
        for (j : 0 .. 2) {
            sent[i * 3 + j] = sent[i * 3 + j] - taken[j * 3 + i];
            taken[j * 3 + i] = 0;
            said[i].has[j] = false; said[i].sent[j] = 0; said[i].taken[j] = 0;
            said[3 + i].has[j] = false; said[3 + i].sent[j] = 0; said[3 + i].taken[j] = 0
        }
        said[i].waits = false; said[3 + i].waits = false
    }
    i = 0; j = 0; whose = 0; whole = false; found = 0; still_between = false
}

active proctype Looks() {
    byte round, before;
    bool good, moved, last, due;
    if
    :: true                          /* at any moment */
    :: last = true
    fi;
look:
    if
    :: last -> timeout; due = STILL
    :: else
    fi;
    atomic { forget(); round++; want = round };
    atomic { found == round -> stands_still(round % 2, good); still_between = STILL; before = whose };
    if
    :: !good -> goto over
    :: good && ROUNDS == 1 -> goto tells
    :: good && ROUNDS != 1
    fi;
    atomic { round++; whose = 0; whole = false; found = 0; want = round };
    atomic { found == round -> stands_still(round % 2, good); has_moved(moved) };
    if
    :: good && !moved -> goto tells
    :: else
    fi;
over:
    atomic { good = false; moved = false; before = 0; forget() };
    if
    :: last -> assert(!due || !ANSWERS(2))
    :: !last -> last = true; goto look
    fi;
    goto done;
tells:
    atomic {
        assert(ANSWERS(2));
        assert(still_between);
        assert(killed || STILL);
        tell(0, 0)
    };
done:
    skip
}

init {
    atomic {
        linked[1] = true; linked[3] = true; open[1] = true; open[3] = true;
        busy[0] = true; busy[1] = true;
#ifdef JOIN
        point = true;
#else
        linked[5] = true; linked[7] = true; open[5] = true; open[7] = true;
        busy[3] = true;
#endif
#ifdef TRIANGLE
        linked[2] = true; linked[6] = true; open[2] = true; open[6] = true;
#endif
        run Program(0); run Program(1); run Program(2)
    };
}
