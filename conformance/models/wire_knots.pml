/* A knot over several OS processes, beside processes that run (WIRE.md 10.9): are the named
 * processes stuck for ever?
 *
 * Spaces 0, 1 and 2 have a session to each other, and each has one process, with the space's
 * number. Channels: A, B, K, each a rendezvous at its home. `Looks` stands for the space that asks:
 * each round examines every space once, in any order, at any moment.
 *
 *   Looks: round 1 ──► round 2 ──► round 3 ──► named: those that were stuck in each round, at the
 *   same place, with the same figures, and settled
 *
 * CASE 1: 1 reads from A and has a writer end of B, 2 reads from B and has one of A: they may be
 * stuck. 0 has another writer end of A, which it uses or closes. CASE 2: 1 reads from A, and has a
 * writer end of A itself: it may be stuck alone. 0 has another writer end of A, and sends it to 2
 * over K. HA, HB: the homes of A and B; that of K is 0. With HA=0 the sender of the end is the
 * end's home, with HA=2 the receiver is, with HA=1 neither: ADOPT, ADOPTED, RETIRE (7.4).
 *
 * Each process chooses what it does with its ends, at most L0, L1, L2 times; then it waits or runs,
 * for ever. Looks looks at any moment, and once more when nothing moves any more.
 *
 * MUT 148: only one round. 149: figures do not count. 150: frames under way in the sessions do not
 * count. 151: an end that the home has noted for a peer counts as held by the peer, whether the
 * peer confirms that or not. 152: an end in a value belongs to no process. 153: a running process
 * is stuck. 154: it is never known that a peer holds an end. With ROUNDS=2 the model passes too:
 * the third round is
 * for choices over several homes, which are not modelled here.
 *
 * Checked: a named process is never woken. When nothing moves, exactly the stuck processes are
 * named; but no process is named at a channel of which an end lies in a waiting value.
 *
 * Not modelled: choices (those over several homes may go on while they are asked), buffers,
 * barriers, calls and parents, several processes in a space, several ends of one side in a space,
 * spaces with two sessions or that die, a withdrawal.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef CASE
#define CASE 1
#endif
#ifndef HA
#define HA 0
#endif
#ifndef HB
#define HB 1
#endif
#ifndef L0
#define L0 2
#endif
#ifndef L1
#define L1 1
#endif
#ifndef L2
#define L2 1
#endif
#if MUT == 148
#define ROUNDS 1
#elif !defined(ROUNDS)
#define ROUNDS 3
#endif

#define N 3                              /* spaces, processes, channels */
#define A 0
#define B 1
#define K 2
#define HOME(c) ((c) == A -> HA : ((c) == B -> HB : 0))
#define BIT(i) (1 << (i))
/* Kinds of ends: 2 * channel, and 1 more if it writes. */
#define R(c) (2 * (c))
#define W(c) (2 * (c) + 1)
#define OTHER(e) ((e) ^ 1)
#define AT(e) HOME((e) / 2)
#define KINDS 6
#define NOWHERE KINDS
#define LINK(a, b) link[(a) * N + (b)]

mtype = { OFFER, DONE, RETIRE, ADOPT, ADOPTED };
chan link[N * N] = [4] of { mtype, byte, byte };    /* the fields: type, kind of end, and for DONE
                                                       the kind of the end that comes along, or
                                                       NOWHERE */
byte sent[N * N], taken[N * N];          /* counts of frames by LINK; in `taken` the receiver comes first */

byte waits[N];                           /* by process: the kind of end at which it waits, or
                                            NOWHERE */
byte left[N];
byte hold[N];                            /* by process: the kinds of ends that it has */
byte far[N];                             /* by space: the ends that it has of other spaces' channels
                                            */
byte under[N];                           /* of the ends in `far`: those under way to another space,
                                            or in a value */
byte lent[KINDS];                        /* kept at the home: the spaces that have an end */
byte loc[KINDS];                         /* kept at the home: the number of ends that the home itself has */
byte line[KINDS];                        /* kept at the home: the spaces whose process waits */
byte passed[N];                          /* by channel: how many values have passed */

byte named;                              /* the set of named processes */
byte i, j, k;                            /* counters within atomic steps */

inline queue(from_, to_, what_, kind_, more_) {
    sent[(from_) * N + (to_)]++;
    LINK(from_, to_)!what_, kind_, more_
}
inline wake(p_) {
    assert(waits[p_] != NOWHERE);
    assert(!(named & BIT(p_)));
    waits[p_] = NOWHERE
}
/* Process p, which waits at a kind of end, goes on; `more` is a kind of end that p receives. */
inline answer(p_, kind_, more_) {
    line[kind_] = line[kind_] & ~BIT(p_);
    if
    :: p_ == AT(kind_) ->
        wake(p_);
        if :: more_ != NOWHERE -> hold[p_] = hold[p_] | BIT(more_) :: else fi
    :: else -> queue(AT(kind_), p_, DONE, kind_, more_)
    fi
}
/* Called when no end of this kind is left: parties that wait on the other side learn of that. */
inline ended(kind_) {
    if
    :: loc[kind_] == 0 && lent[kind_] == 0 ->
        for (k : 0 .. N - 1) { if :: line[OTHER(kind_)] & BIT(k) -> answer(k, OTHER(kind_), NOWHERE) :: else fi }
        k = 0
    :: else
    fi
}
/* Space 0, the home of K, gives 2 the writer end of A that 2 has read there. */
inline sends(kind_) {
    if
    :: AT(kind_) == 0 -> loc[kind_]--; lent[kind_] = lent[kind_] | BIT(2)
    :: AT(kind_) == 2 -> far[0] = far[0] & ~BIT(kind_); under[0] = under[0] & ~BIT(kind_)
    :: else                              /* the end is 0's until ADOPTED has come */
    fi
}
/* Handles, at the home, the arrival of process p at a kind of end. */
inline comes(p_, kind_) {
    line[kind_] = line[kind_] | BIT(p_);
    for (i : 0 .. N - 1) {
        if
        :: (line[OTHER(kind_)] & BIT(i)) && (line[kind_] & BIT(p_)) ->
            passed[(kind_) / 2]++;
            if
            :: (kind_) / 2 == K ->
                answer(0, W(K), NOWHERE);
                sends(W(A));
                answer(2, R(K), W(A));
                if :: HA == 2 -> queue(0, 2, RETIRE, W(A), NOWHERE) :: else fi
            :: else ->
                answer(i, OTHER(kind_), NOWHERE);
                answer(p_, kind_, NOWHERE)
            fi
        :: else
        fi
    }
    i = 0;
    if :: (line[kind_] & BIT(p_)) -> ended(OTHER(kind_)) :: else fi
}

proctype Space(byte me) {
    mtype what;
    byte from, kind, more;
end:
    do
    :: atomic {
        if
        :: me != 0 && nempty(LINK(0, me)) -> from = 0
        :: me != 1 && nempty(LINK(1, me)) -> from = 1
        :: me != 2 && nempty(LINK(2, me)) -> from = 2
        fi;
        LINK(from, me)?what, kind, more;
        taken[me * N + from]++;
        if
        :: what == OFFER -> comes(from, kind)
        :: what == DONE ->
            wake(me);
            if
            :: more == NOWHERE
            :: more != NOWHERE && AT(more) == me -> hold[me] = hold[me] | BIT(more); loc[more]++
            :: more != NOWHERE && AT(more) != me ->
                hold[me] = hold[me] | BIT(more);
                far[me] = far[me] | BIT(more);
                if :: AT(more) != from -> queue(me, AT(more), ADOPT, more, from) :: else fi
            fi
        :: what == RETIRE -> lent[kind] = lent[kind] & ~BIT(from); ended(kind)
        :: what == ADOPT ->
            lent[kind] = lent[kind] | BIT(from);
            queue(me, more, ADOPTED, kind, NOWHERE)
        :: what == ADOPTED ->
            far[me] = far[me] & ~BIT(kind); under[me] = under[me] & ~BIT(kind);
            queue(me, from, RETIRE, kind, NOWHERE)
        fi;
        what = 0; from = 0; kind = 0; more = 0 }
    od
}

proctype Process(byte me) {
    byte e;
endwait:
    do
    :: atomic { waits[me] == NOWHERE && left[me] > 0 && (hold[me] & ~BIT(W(K))) != 0 ->
        left[me]--;
        if
        :: hold[me] & BIT(R(A)) -> e = R(A)
        :: hold[me] & BIT(W(A)) -> e = W(A)
        :: hold[me] & BIT(R(B)) -> e = R(B)
        :: hold[me] & BIT(W(B)) -> e = W(B)
        :: hold[me] & BIT(R(K)) -> e = R(K)
        :: (hold[me] & BIT(W(K))) && (hold[me] & BIT(W(A))) -> e = W(K)
        fi;
        if
        :: true ->                       /* it reads or writes */
            waits[me] = e;
            if                           /* from now on the end is in a value */
            :: e == W(K) ->
                hold[me] = hold[me] & ~BIT(W(A));
                if :: HA != 0 -> under[me] = under[me] | BIT(W(A)) :: else fi
            :: else
            fi;
            if
            :: AT(e) == me -> comes(me, e)
            :: else -> queue(me, AT(e), OFFER, e, NOWHERE)
            fi
        :: me == 0 && e == W(A) ->       /* it closes the end */
            hold[me] = hold[me] & ~BIT(e);
            if
            :: AT(e) == me -> loc[e]--; ended(e)
            :: else -> far[me] = far[me] & ~BIT(e); queue(me, AT(e), RETIRE, e, NOWHERE)
            fi
        fi;
        e = 0 }
    od
}

/* The answers of a round, and the figures of the previous round, with which the new figures are
 * compared. */
byte asked;
byte at_[N], holds_[N], figure[N], far_[N], under_[N], lent_[KINDS], loc_[KINDS], sent_[N * N], taken_[N * N];
byte was_at[N], was_figure[N], was_sent[N * N];
byte good;                               /* the processes stuck in each round so far, while nothing has moved */
byte going, opens, before;               /* processes that may go on; channels at which an
                                            unknown party may be */

inline moment(s) {
    asked = asked | BIT(s);
    at_[s] = waits[s]; holds_[s] = hold[s]; far_[s] = far[s]; under_[s] = under[s];
    for (i : 0 .. N - 1) {
        sent_[s * N + i] = sent[s * N + i];
        taken_[s * N + i] = taken[s * N + i];
        if :: HOME(i) == s -> figure[i] = passed[i] :: else fi
    }
    for (i : 0 .. KINDS - 1) { if :: AT(i) == s -> lent_[i] = lent[i]; loc_[i] = loc[i] :: else fi }
    i = 0
}
/* Finds the channels with an end that no known process holds. */
inline look_for_unknown() {
    opens = 0;
    for (i : 0 .. KINDS - 1) {
        if
        :: MUT != 152 && loc_[i] > ((holds_[AT(i)] & BIT(i)) -> 1 : 0) -> opens = opens | BIT(i / 2)
        :: else
        fi;
        for (j : 0 .. N - 1) {
            if
            :: j != AT(i) && (lent_[i] & BIT(j)) && (!(far_[j] & BIT(i)) || MUT == 154) && MUT != 151 -> opens = opens | BIT(i / 2)
            :: else
            fi;
            if
            :: j != AT(i) && (far_[j] & BIT(i)) && (!(holds_[j] & BIT(i)) || (under_[j] & BIT(i))) && MUT != 152 ->
                opens = opens | BIT(i / 2)
            :: else
            fi
        }
    }
    i = 0; j = 0
}
/* Rule 14.3: finds the processes that may go on, besides those in `going`. */
inline look_who_goes_on() {
    for (i : 0 .. N - 1) {
        if
        :: at_[i] == NOWHERE && MUT != 153 -> going = going | BIT(i)
        :: at_[i] != NOWHERE && (opens & BIT(at_[i] / 2)) -> going = going | BIT(i)
        :: at_[i] != NOWHERE && !((holds_[0] | holds_[1] | holds_[2]) & BIT(OTHER(at_[i]))) -> going = going | BIT(i)
        :: else
        fi
    }
    before = BIT(N);
    do
    :: before == going -> break
    :: else ->
        before = going;
        for (i : 0 .. N - 1) {
            for (j : 0 .. N - 1) {
                if
                :: at_[i] != NOWHERE && (going & BIT(j)) && (holds_[j] & (BIT(at_[i]) | BIT(OTHER(at_[i])))) -> going = going | BIT(i)
                :: else
                fi
            }
        }
    od;
    i = 0; j = 0; before = 0
}
#define SETTLED(s, h) (was_sent[(s) * N + (h)] <= taken_[(h) * N + (s)] && was_sent[(h) * N + (s)] <= taken_[(s) * N + (h)])
inline compare(first) {
    for (i : 0 .. N - 1) {
        if
        :: first || at_[i] == NOWHERE
        :: !first && at_[i] != NOWHERE ->
            if
            :: was_at[i] != at_[i] || (was_figure[at_[i] / 2] != figure[at_[i] / 2] && MUT != 149) -> good = good & ~BIT(i)
            :: else
            fi;
            if
            :: i != AT(at_[i]) && !SETTLED(i, AT(at_[i])) && MUT != 150 -> good = good & ~BIT(i)
            :: else
            fi
        fi
    }
    for (i : 0 .. N - 1) { was_at[i] = at_[i]; was_figure[i] = figure[i] }
    for (i : 0 .. N * N - 1) { was_sent[i] = sent_[i] }
    i = 0
}
inline forget() {
    for (i : 0 .. N - 1) { at_[i] = 0; holds_[i] = 0; figure[i] = 0; far_[i] = 0; under_[i] = 0 }
    for (i : 0 .. KINDS - 1) { lent_[i] = 0; loc_[i] = 0 }
    for (i : 0 .. N * N - 1) { sent_[i] = 0; taken_[i] = 0 }
    i = 0; asked = 0; going = 0; opens = 0
}

active proctype Looks() {
    byte round;
    bool last;
    if
    :: true                              /* at any moment */
    :: last = true
    fi;
look:
    if :: last -> timeout :: else fi;
    atomic { good = 7; round = 0 };
    do
    :: round == ROUNDS -> break
    :: round < ROUNDS && asked != 7 ->
        if
        :: atomic { !(asked & BIT(0)) -> moment(0) }
        :: atomic { !(asked & BIT(1)) -> moment(1) }
        :: atomic { !(asked & BIT(2)) -> moment(2) }
        fi
    :: round < ROUNDS && asked == 7 ->
        d_step {
            look_for_unknown();
            look_who_goes_on();
            good = good & ~going;
            compare((round == 0));
            round++;
            if
            :: round == ROUNDS ->        /* a process that waits for one that may have moved may
                                            go on too */
                going = ~good & 7;
                look_who_goes_on();
                named = named | (~going & 7);
                if
                :: last ->               /* nothing moves: which processes are stuck? */
                    assert(opens == 0 || (opens == BIT(A) && waits[0] == W(K)));
                    good = ~going & 7;
                    going = 0;
                    look_who_goes_on();
                    assert(good == (~going & 7))
                :: else
                fi;
                for (i : 0 .. N - 1) { was_at[i] = 0; was_figure[i] = 0 }
                for (i : 0 .. N * N - 1) { was_sent[i] = 0 }
                i = 0
            :: else
            fi;
            forget() }
    od;
    if
    :: !last -> last = true; goto look
    :: else
    fi
}

/* Records that process p has an end of this kind. */
inline has(p_, kind_) {
    hold[p_] = hold[p_] | BIT(kind_);
    if
    :: AT(kind_) == p_ -> loc[kind_]++
    :: else -> far[p_] = far[p_] | BIT(kind_); lent[kind_] = lent[kind_] | BIT(p_)
    fi
}

init {
    atomic {
        for (i : 0 .. N - 1) { waits[i] = NOWHERE }
        i = 0;
        left[0] = L0; left[1] = L1; left[2] = L2;
        do                               /* a process with fewer steps runs for ever, and does
                                            nothing */
        :: left[0] > 0 -> left[0]--
        :: left[1] > 0 -> left[1]--
        :: left[2] > 0 -> left[2]--
        :: true -> break
        od;
        has(1, R(A)); has(0, W(A));
#if CASE == 1
        has(1, W(B)); has(2, R(B)); has(2, W(A));
#else
        has(1, W(A)); has(0, W(K)); has(2, R(K));
#endif
        run Process(0); run Process(1); run Process(2);
        run Space(0); run Space(1); run Space(2)
    }
}
