/* A buffer at its home: credits, and their recall before a second space may write (WIRE.md 6; SEMANTICS 1.3).
 *
 * Space A has all writer ends of a buffer of CAP slots and so its credits. It writes; at some moment B is given a writer end. A's process then
 * writes once more and tells B's by another channel (`word`), which writes after that. The home polls two rings, A's and B's, in any order.
 *
 *   A: credits ──PUT──► fewer ──CREDIT──► more         home: give ──RECALL──► asked ──RECALLED(n)──► B has its end, and A writes by OFFER
 *
 * MUT 41: B gets its end at once. 42: A puts without a credit. 43: a slot comes back when its value enters. 44: credits under way when they are
 * recalled are forgotten. 45: A goes on putting after its answer.
 *
 * Watched: the buffer never overflows; what B writes after A's word comes after what A wrote before it; everything is read; no slot is lost.
 */
#ifndef MUT
#define MUT 0
#endif
#define CAP 2
#define BEFORE 3                   /* A's writes before the word, 1 … BEFORE; B's is BEFORE + 1, A's last BEFORE + 2 */

mtype = { PUT, OFFER, RECALLED, DONE, CREDIT, RECALL, GIVE }
chan a_up = [6] of { mtype, byte };
chan a_down = [6] of { mtype, byte };
chan b_up = [2] of { mtype, byte };
chan b_down = [2] of { mtype, byte };
chan word = [1] of { bit };
chan buffer = [8] of { byte };
byte in_use;                       /* slots with a value */
byte read_all;
bool a_read, b_read;               /* the last write before the word was read; B's */

proctype A() {
    byte v = 1, credits = CAP, n;
    mtype k;
    bool recalled;
    do
    :: v > BEFORE + 2 -> break
    :: a_down?CREDIT, n -> credits = credits + n
    :: a_down?RECALL, n -> recalled = true; a_up!RECALLED, credits;
        if
        :: MUT != 45 -> credits = 0
        :: else
        fi
    :: v == BEFORE + 1 -> word!1; v = BEFORE + 2           /* B's turn: BEFORE + 1 is its value */
    :: v != BEFORE + 1 && v <= BEFORE + 2 && (credits || MUT == 42) && !(recalled && MUT != 45) ->
        a_up!PUT, v; credits = (credits -> credits - 1 : 0); v++
    :: v != BEFORE + 1 && v <= BEFORE + 2 && recalled && MUT != 45 ->
        a_up!OFFER, v;
        do
        :: a_down?DONE, n -> break
        :: a_down?CREDIT, n                                /* it crossed our answer: the home has counted it with what it asked back */
        od;
        v++
    od;
    /* It may be asked to the last. */
enda:
    do
    :: a_down?k, n ->
        if
        :: k == RECALL -> a_up!RECALLED, credits; credits = 0
        :: else
        fi
    od
}

proctype B() {
    byte n;
    b_down?GIVE, n;
    word?1;
    b_up!OFFER, BEFORE + 1;
    b_down?DONE, n
}

active proctype Home() {
    byte v, n, a_waits, b_waits;
    byte lent = CAP;               /* credits that A has or that are on their way to it */
    byte owed;                     /* free slots not given back yet */
    byte asked = 0;                /* 0 not, 1 RECALL sent, 2 answered */
    mtype k;
endloop:
    do
    :: a_up?k, v ->
        if
        :: k == PUT -> assert(in_use < CAP); buffer!v; in_use++; lent--;
            if
            :: MUT == 43 -> owed++
            :: else
            fi
        :: k == OFFER -> a_waits = v
        :: k == RECALLED -> asked = 2;
            /* Credits sent and not in the answer were under way: the link is FIFO, so A throws them away after it. All are ours again. */
            owed = (MUT == 44 -> owed + v : owed + lent);
            lent = 0;
            b_down!GIVE, 0
        fi
    :: b_up?k, v -> b_waits = v
    :: !asked && (MUT == 41) -> asked = 3; b_down!GIVE, 0
    :: !asked && MUT != 41 -> asked = 1; a_down!RECALL, 0
    :: asked >= 2 && owed && (asked == 2 || lent == 0) && a_waits -> buffer!a_waits; in_use++; owed--; a_waits = 0; a_down!DONE, 0
    :: asked >= 2 && owed && b_waits -> buffer!b_waits; in_use++; owed--; b_waits = 0; b_down!DONE, 0
    :: !asked && owed >= CAP / 2 -> a_down!CREDIT, owed; lent = lent + owed; owed = 0
    :: nempty(buffer) ->
        buffer?v; in_use--; read_all++;
        if
        :: v == BEFORE -> a_read = true
        :: v == BEFORE + 1 -> assert(a_read); b_read = true
        :: else
        fi;
        if
        :: MUT != 43 -> owed++
        :: else
        fi
    :: MUT == 41 && asked == 3 && owed -> a_down!CREDIT, owed; lent = lent + owed; owed = 0
    od
}

init {
    atomic { run A(); run B() }
end:
    timeout -> assert(read_all == BEFORE + 2)
}
