/* A buffer at its home: credits, and their recall before a second space's value may enter (WIRE.md 6; SEMANTICS 1.3, 1.4).
 *
 * Space A has all writer ends of a buffer of CAP slots. Its first write is an OFFER; with the
 * answer the home begins to lend credits. A goes on writing; at some moment B receives a writer
 * end. After its write BEFORE, A's process tells B's process by another channel (`word`), and B
 * writes after that. The home polls two rings, A's and B's, in any order. Once, A gives its credits
 * up without a RECALL, as before a choice.
 *
 * The reader reads one value, and the next value only once A's write CAP + 1 is over: a buffer with
 * room must let that write in.
 *
 *   A: OFFER ──DONE1──► credits ──PUT──► fewer ──none: WANT──► waits ──CREDIT──► more      ──RECALL, or unasked: RECALLED──► OFFER
 *
 * MUT 41: B's value enters while the home lends. 42: A puts without a credit. 43: a slot is lent
 * again as soon as its value enters. 44: slots that are still lent at the RECALLED are forgotten.
 * 45: A goes on putting after its RECALLED. 46: A sends no WANT. 47: a CREDIT that crossed the
 * RECALLED counts.
 *
 * Checked: the buffer never overflows; a value that B writes after A's word comes after the values
 * that A wrote before the word; A's values come in order; every value is read; a PUT always has a
 * credit.
 */
#ifndef MUT
#define MUT 0
#endif
#define CAP 3
#define HALF 2
#define BEFORE 4                   /* A's writes before the word, 1 … BEFORE; B's is BEFORE + 1, A's last BEFORE + 2 */

mtype = { PUT, OFFER, WANT, RECALLED, DONE, DONE1, CREDIT, RECALL, GIVE }
chan a_up = [8] of { mtype, byte };
chan a_down = [8] of { mtype, byte };
chan b_up = [2] of { mtype, byte };
chan b_down = [2] of { mtype, byte };
chan word = [1] of { bit };
chan buffer = [8] of { byte };
byte read_all, a_over, a_last;
bool a_read;                       /* the last write before the word was read */

#define WRITING (v != BEFORE + 1 && v <= BEFORE + 2)

proctype A() {
    byte v = 1, n, x, st;          /* st: 0 between writes, 1 waits for a credit, 2 waits for an answer */
    bool has, wanted, gave;        /* has: the home lends, as far as A knows */
enda:
    do
    :: atomic { st == 0 && v == BEFORE + 1 -> word!1; v++ }
    :: atomic { st == 0 && WRITING && has && (n > 0 || MUT == 42) -> a_up!PUT, v; n = (n > 0 -> n - 1 : 0); a_over++; v++ }
    :: atomic { st == 0 && WRITING && has && n == 0 && MUT != 42 ->
        st = 1;
        if
        :: wanted || MUT == 46
        :: else -> a_up!WANT, 0; wanted = true
        fi }
    :: atomic { st == 0 && WRITING && !has -> a_up!OFFER, v; st = 2 }
    :: atomic { st == 1 && has && n > 0 -> st = 0 }
    :: atomic { st == 1 && !has -> a_up!OFFER, v; st = 2 }
    :: atomic { a_down?DONE, x -> a_over++; v++; st = 0 }
    :: atomic { a_down?DONE1, x -> assert(!has); has = true; n = x; wanted = false; a_over++; v++; st = 0 }
    :: atomic { a_down?CREDIT, x ->
        if
        :: has || MUT == 47 -> has = true; n = n + x; wanted = false
        :: else
        fi }
    :: atomic { a_down?RECALL, x ->
        if
        :: has -> a_up!RECALLED, 0; has = (MUT == 45); n = (MUT == 45 -> n : 0)
        :: else
        fi }
    :: atomic { has && !gave && st != 2 -> gave = true; a_up!RECALLED, 0; has = (MUT == 45); n = (MUT == 45 -> n : 0) }
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
    byte used;                     /* the slots with a value, by the home's count */
    byte lent;                     /* A's credits, and credits and PUTs under way */
    bool lending, wanted, recalled, b_has;
    mtype k;
#define FREE (CAP - used - lent)
endloop:
    do
    :: atomic { a_up?k, v ->
        if
        :: k == PUT ->
            assert(lending && lent > 0); assert(len(buffer) < CAP);
            buffer!v; lent--; used = (MUT == 43 -> used : used + 1)
        :: k == OFFER -> a_waits = v
        :: k == WANT -> wanted = lending
        :: k == RECALLED -> assert(lending);
            lending = false; recalled = false; wanted = false;
            used = (MUT == 44 -> used + lent : used);
            lent = 0
        fi }
    :: atomic { b_up?k, v -> b_waits = v }
    :: atomic { !b_has -> b_has = true; b_down!GIVE, 0 }
    :: atomic { a_waits && !lending && FREE > 0 ->
        assert(len(buffer) < CAP); buffer!a_waits; used++; a_waits = 0;
        if
        :: !b_has -> lending = true; lent = FREE; a_down!DONE1, lent
        :: else -> a_down!DONE, 0
        fi }
    :: atomic { b_waits && (!lending || MUT == 41) && FREE > 0 ->
        assert(len(buffer) < CAP); buffer!b_waits; used++; b_waits = 0; b_down!DONE, 0 }
    :: atomic { lending && !recalled && (a_waits || b_waits || (b_has && FREE >= (wanted -> 1 : HALF))) -> recalled = true; a_down!RECALL, 0 }
    :: atomic { lending && !recalled && !b_has && !a_waits && FREE >= (wanted -> 1 : HALF) ->
        n = FREE; a_down!CREDIT, n; lent = lent + n; wanted = false }
    :: atomic { nempty(buffer) && !(read_all == 1 && a_over < CAP + 1) ->
        buffer?v; used = (used > 0 -> used - 1 : 0); read_all++;
        if
        :: v == BEFORE + 1 -> assert(a_read)
        :: else -> assert(v > a_last); a_last = v; a_read = a_read || v == BEFORE
        fi }
    od
}

init {
    atomic { run A(); run B() }
end:
    timeout -> assert(read_all == BEFORE + 2)
}
