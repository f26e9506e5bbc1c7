/* Go-back-n below a session, on a link that loses, duplicates and reorders packets
 * (WIRE-LINKS.md 13).
 *
 * A packet carries its number; an acknowledgement carries how many packets were taken in order. The
 * link is a set of packets, each of which may arrive any number of times, in any order, or never.
 * The sender may resend the packets of its window at any time. (Numbers are 32 bits wide: no wrap
 * is modelled.)
 *
 *   sender:  [ acknowledged ][ window: sent, kept ][ not yet sent ]        base ──ACK(n), base < n <= next──► n
 *
 * MUT 51: a packet beyond a gap is taken. 52: a packet that was taken is taken again. 53: the
 * acknowledgement carries the highest number seen. 54: an acknowledgement of a packet that was
 * never sent moves the window. 55: an old acknowledgement moves the window back.
 *
 * Checked: packets are taken in order, each once; a packet that leaves the window has been taken;
 * in the end all packets can be taken.
 */
#ifndef MUT
#define MUT 0
#endif
#define N 4
#define WINDOW 2

bool on_way[N];                    /* this packet was sent at least once: it may arrive */
bool acks[N + 3];                  /* this acknowledgement was sent: it may arrive */
byte base, next;                   /* sender: [base, next) is kept */
byte due;                          /* receiver: the number of the next packet that it takes */
byte seen;                         /* the highest number that arrived, plus one */
byte taken[N];
byte rubbish = 1;                  /* acknowledgements that a hostile receiver may invent */

inline arrive(i) {
    seen = (i + 1 > seen -> i + 1 : seen);
    if
    :: i == due || (MUT == 51 && i > due) || (MUT == 52 && i < due) ->
        assert(i == due);
        taken[i]++;
        due = i + 1
    :: else
    fi;
    acks[(MUT == 53 -> seen : due)] = true
}

inline acknowledged(n) {
    if
    :: (n > base || MUT == 55) && (n <= next || MUT == 54) -> base = n
    :: else
    fi;
    assert(base <= next && next - base <= WINDOW);
    if
    :: base > 0 && base <= N -> assert(taken[base - 1])         /* the packet is no longer kept */
    :: else
    fi
}

active proctype Sender() {
endsend:
    do
    :: atomic { next < N && next - base < WINDOW -> on_way[next] = true; next++ }
    :: atomic { acks[0] -> acknowledged(0) }
    :: atomic { acks[1] -> acknowledged(1) }
    :: atomic { acks[2] -> acknowledged(2) }
    :: atomic { acks[3] -> acknowledged(3) }
    :: atomic { acks[4] -> acknowledged(4) }
    :: atomic { acks[5] -> acknowledged(5) }
    :: atomic { acks[6] -> acknowledged(6) }
    :: base == N -> break
    od
}

active proctype Receiver() {
endtake:
    do
    :: atomic { on_way[0] -> arrive(0) }
    :: atomic { on_way[1] -> arrive(1) }
    :: atomic { on_way[2] -> arrive(2) }
    :: atomic { on_way[3] -> arrive(3) }
    :: atomic { rubbish -> rubbish--; acks[N + 2] = true }
    :: base == N -> break
    od
}

init {
end:
    base == N -> assert(due == N)
}
