/* A rendezvous at its home: the place of a waiting reader is lent to the only far writer (WIRE.md
 * 6.6).
 *
 * Space A writes 1 … WRITES. Without a credit a write is an OFFER; with one it is a PUT, which is
 * over at once. Once, A gives a credit up without a RECALL, as before a choice. The home's reader R
 * reads again and again; twice it tries to leave the queue. At some moment a second writer B
 * arrives at the home: from then on nothing is lent. With KIND=1 the channel is poisoned instead,
 * with KIND=2 A closes its end behind its last write, and with KIND=3 nothing else happens.
 *
 *   A: OFFER ──DONE──► …          CREDIT, of no OFFER since ──► has it ──PUT; RECALL, or unasked: RECALLED──► has none
 *   home: R waits, nobody writes ──CREDIT──► lent ──PUT: R has the value; OFFER: they have crossed──► not lent
 *                                              └──B comes, R would leave, poison──RECALL──► recalled ──PUT, OFFER, RECALLED──► not lent
 *
 * MUT 157: a CREDIT that crossed an OFFER counts for A. 158: it counts for the home too. 159: the
 * place of a leaving reader is not recalled. 160: the reader leaves at once. 161: B meets a reader
 * whose place is lent. 162: A answers a RECALL even without a credit.
 *
 * Checked: a PUT and a RECALLED always have a credit; the values of A's completed writes are read
 * once, in their order; at the end no two parties wait that could meet, and a reader that tried to
 * leave has left.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef KIND
#define KIND 0
#endif
#define WRITES 4

mtype = { PUT, OFFER, RECALLED, CLOSE, DONE, ENDED, CREDIT, RECALL }
chan up = [6] of { mtype, byte };
chan down = [6] of { mtype, byte };

byte over;                         /* the last of A's writes that succeeded */
byte read;                         /* the last of A's values that R has */
bool a_idle, a_credit, ended;      /* ended: A has learned this */

active proctype A() {
    byte v = 1, n;
    bool waits, gave, closed;
end:
    do
    :: atomic { !waits && v <= WRITES && !ended && a_credit -> a_credit = false; up!PUT, v; over = v; v++ }
    :: atomic { !waits && v <= WRITES && !ended && !a_credit -> waits = true; up!OFFER, v }
    :: atomic { a_credit && !gave && !waits && v <= WRITES -> gave = true; a_credit = false; up!RECALLED, 0 }
    :: atomic { KIND == 2 && v == WRITES + 1 && !waits && !closed ->
        closed = true;
        if
        :: a_credit -> a_credit = false; up!RECALLED, 0
        :: else
        fi;
        up!CLOSE, 0 }
    :: atomic { down?DONE, n -> assert(waits); waits = false; over = v; v++ }
    :: atomic { down?ENDED, n -> assert(waits); waits = false; ended = true }
    :: atomic { down?CREDIT, n ->         /* n: the last OFFER that had reached the home; here the
                                             value in that OFFER */
        if
        :: closed
        :: !closed && (MUT == 157 || !waits || n >= v) -> assert(!a_credit); a_credit = true
        :: else
        fi }
    :: atomic { down?RECALL, n ->
        if
        :: a_credit || MUT == 162 -> a_credit = false; up!RECALLED, 0
        :: else
        fi }
    od
}

bool r_waits, promised, r_leaves, lends, lent, recalled, poisoned, gone, b_waits, b_is;
byte a_waits, last;

#define HAS(v) { \
    if \
    :: v <= WRITES -> assert(v > read); read = v \
    :: else \
    fi; \
    r_waits = false; promised = false; r_leaves = false }
#define MAY_LEND (lends && !lent && r_waits && !r_leaves && !b_is && !b_waits && !a_waits && !poisoned && !gone)

/* Ends the lending: R waits as before, or leaves, or learns how the channel has ended. */
inline free_it() {
    lent = false; recalled = false; promised = false;
    if
    :: r_leaves || poisoned -> r_waits = false; r_leaves = false
    :: else
    fi;
    if
    :: r_waits && b_waits -> HAS(WRITES + 1); b_waits = false
    :: else
    fi
}

active proctype Home() {
    byte v, left = 2;
    mtype k;
    bool b_over;
end:
    do
    :: atomic { up?k, v ->
        if
        :: k == PUT -> assert(lent && r_waits);
            lent = false;
            if
            :: recalled -> lends = false; recalled = false
            :: else
            fi;
            HAS(v)
        :: k == OFFER ->
            last = v;
            if
            :: lent && MUT != 158 -> lends = false; free_it()
            :: else
            fi;
            if
            :: poisoned -> down!ENDED, 0
            :: !poisoned && r_waits && !promised -> HAS(v); down!DONE, 0; lends = lends || !b_is
            :: else -> a_waits = v
            fi
        :: k == RECALLED -> assert(lent); lends = false; free_it()
        :: k == CLOSE ->              /* the CLOSE may have crossed a CREDIT, which A ignores */
            if
            :: lent -> free_it()
            :: else
            fi;
            lends = false; gone = true; r_waits = r_waits && b_is
        fi }
    /* the reader R */
    :: atomic { !r_waits && !poisoned && !(gone && !b_is) && (read < WRITES || b_waits || left > 0) ->
        if
        :: a_waits -> HAS(a_waits); a_waits = 0; down!DONE, 0; lends = lends || !b_is
        :: !a_waits && b_waits -> HAS(WRITES + 1); b_waits = false
        :: else -> r_waits = true
        fi }
    :: atomic { r_waits && !r_leaves && left > 0 ->
        left--;
        if
        :: promised && MUT != 160 -> r_leaves = true
        :: else -> r_waits = false; promised = false
        fi }
    /* the lender */
    :: atomic { MAY_LEND && nfull(down) -> lent = true; promised = true; down!CREDIT, last }
    :: atomic { lent && !recalled && ((r_leaves && MUT != 159) || b_waits || poisoned) && nfull(down) -> recalled = true; down!RECALL, 0 }
    /* independent events */
    :: atomic { KIND == 0 && !b_is && !b_over -> b_is = true; b_over = true; b_waits = true;
        if
        :: r_waits && (!promised || MUT == 161) -> HAS(WRITES + 1); b_waits = false
        :: else
        fi }
    :: atomic { KIND == 1 && !poisoned && over > 0 -> poisoned = true;
        if
        :: a_waits -> a_waits = 0; down!ENDED, 0
        :: else
        fi;
        if
        :: r_waits && !promised -> r_waits = false
        :: else
        fi }
    od
}

init {
end:
    timeout ->
    assert(empty(up) && empty(down));
    assert(!r_leaves && !recalled);
    assert(!(r_waits && (a_waits || b_waits)));
    assert(lent == a_credit);
    assert(over == WRITES || (KIND == 1 && poisoned));
    assert(read == over || poisoned && read >= over)
}
