/* Slots of shared memory that are lent to other spaces, which may know them without a descriptor
 * (WIRE.md 9.2).
 *
 * A maker has SEGS segments and sends VALUES values, each to one of two receivers or to both; 0
 * sends one on to 1. Each value is written into a segment without shares; if there is none, the
 * value goes in pieces: no writer waits.
 *
 *   MAKE (share 1, written) ──► share + 1 ──► is the name there? ──LEASE, with or without the
 *   descriptor──► maker's share goes
 *   LEASE ──► mapped, named ──► view ──► share goes      LET GO: name out ──► shares? ──none:
 *   unmapped; some: leaving──none any more──► unmapped
 *
 * A receiver may die at any step (KILL): a segment of which it had a share, or for which a share
 * was on its way, keeps its count for ever, and is not used again.
 *
 * MUT 91: a segment is used again although there is a share in it. 92: a space that lets go keeps
 * nothing for the frames under way. 93: a space that lets go leaves its name in. 95: a space that
 * lets go checks the shares, and then removes its name. 96: a lender takes no share for the
 * receiver.
 *
 * The order, in which a share is taken before the name is looked for, needs no mutant: a lender has
 * a share itself until the frame is on its way, so a space that lets go before that keeps the
 * mapping.
 *
 * Checked: a view shows the sent value, as long as it exists; a LEASE without a descriptor names a
 * segment that its receiver has mapped; at the end all values were sent, whichever space died, and
 * without a death all shares are back.
 */
#ifndef MUT
#define MUT 0
#endif
#define SEGS 2
#ifdef KILL
#define VALUES 2
#else
#define VALUES 3
#endif
#define SPACES 2                    /* receivers, 0 and 1 */
#define NONE 9

/* The fields of a frame: segment, value, whether the descriptor was passed. */
chan to0 = [3] of { byte, byte, bool };
chan to1 = [4] of { byte, byte, bool };
#define N(s, r) ((s) * SPACES + (r))
#define HAS(s, r) (mapped[N(s, r)] || leaving[N(s, r)])

byte shares[SEGS], bytes[SEGS];     /* the count in the head, and the bytes behind the head */
bool named[4];                      /* by segment and receiver: whether the head contains the name */
bool mapped[4], leaving[4];         /* the receiver's lists: known segments, and those to be forgotten */
bool dead[SPACES];
byte sent;

/* Called by a space that itself has a share: takes a share for r, then looks up r's name, then
 * sends the frame. If the session has ended, the frame is dropped, and the share is not returned.
 * */
inline lend(s, v, r) {
    shares[s] = (MUT == 96 -> shares[s] : shares[s] + 1);
    by_name = named[N(s, r)];
    if
    :: atomic { dead[r] -> by_name = false }
    :: atomic { !dead[r] && r == 0 -> to0!s, v, !by_name; by_name = false }
    :: atomic { !dead[r] && r == 1 -> to1!s, v, !by_name; by_name = false }
    fi
}

active proctype Maker() {
    byte s = NONE, v = 1;
    bool by_name;
    do
    :: v > VALUES -> break
    :: v <= VALUES ->
        atomic {                    /* make(): no other space can add a share to a segment without shares */
            if
            :: shares[0] == 0 || (MUT == 91 && shares[0] < 2) -> s = 0
            :: shares[1] == 0 || (MUT == 91 && shares[1] < 2) -> s = 1
            :: else -> s = NONE
            fi;
            if
            :: s != NONE -> shares[s] = 1; bytes[s] = v
            :: else
            fi
        }
        if
        :: s == NONE
        :: s != NONE ->
            if
            :: lend(s, v, 0)
            :: lend(s, v, 1)
            :: lend(s, v, 0); lend(s, v, 1)
            fi;
            atomic { shares[s]--; s = NONE }
        fi;
        v++
    od;
    sent = v - 1
}

/* A receiver has one view at a time. It lets go of a segment between two values, as when its list
 * is full: receiver 0 twice, 1 once. */
proctype Receiver(byte me; chan in) {
    byte s, v, at;
    byte let_go;
    bool by_name, passed, was, onward;
    {
endr:
    do
    :: atomic { in?s, v, passed ->
            assert(passed || HAS(s, me));
            mapped[N(s, me)] = !leaving[N(s, me)]
        };
        if
        :: mapped[N(s, me)] -> named[N(s, me)] = true
        :: else
        fi;
        assert(bytes[s] == v);
        if
        :: me == 0 && !onward -> onward = true; lend(s, v, 1)
        :: true
        fi;
        atomic { assert(bytes[s] == v); shares[s]--; s = 0; v = 0; passed = false }
    :: atomic { let_go < 2 - me && (mapped[N(0, me)] || mapped[N(1, me)]) -> let_go++;
            if
            :: mapped[N(0, me)] -> at = 0
            :: mapped[N(1, me)] -> at = 1
            fi };
        if
        :: MUT == 95 -> was = shares[at] != 0; named[N(at, me)] = false
        :: MUT == 93 -> was = shares[at] != 0
        :: else -> named[N(at, me)] = false; was = shares[at] != 0
        fi;
        atomic { mapped[N(at, me)] = false; leaving[N(at, me)] = was && MUT != 92; at = 0; was = false }
    :: atomic { leaving[N(0, me)] && shares[0] == 0 -> leaving[N(0, me)] = false }
    :: atomic { leaving[N(1, me)] && shares[1] == 0 -> leaving[N(1, me)] = false }
    od
    } unless { dead[me] }
}

#ifdef KILL
active proctype Killer() {
    if
    :: dead[0] = true
    :: dead[1] = true
    fi
}
#endif

init {
    atomic { run Receiver(0, to0); run Receiver(1, to1) }
end:
    timeout ->
    assert(sent == VALUES);
    assert(dead[0] || empty(to0));
    assert(dead[1] || empty(to1));
    assert(dead[0] || dead[1] || (shares[0] == 0 && shares[1] == 0))
}
