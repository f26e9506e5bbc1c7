/* A value that is made after the commit, at a far end (WIRE.md 4.8).
 *
 * A writer and a reader, each a space with a session to the home of one channel. The writer offers
 * an output without its value and may withdraw it. When it is asked (COMMIT), it makes the value,
 * or fails to (FAILED). Its session may be cut at any step, which may lose the frames under way.
 *
 *   writer: offered ──WITHDRAW──► asked ──WITHDRAWN──► not taken
 *             └──COMMIT (or from asked)──► makes ──MADE──► sent ──DONE──► taken        a cut: in doubt once MADE was sent, else not taken
 *                                            └──FAILED──► not taken
 *   home:   offered ──the reader──► committed: COMMIT ──MADE──► the reader's DONE, then the writer's │ FAILED, a cut──► the reader's DIED
 *
 * MUT 106: the reader is not told that the writer that makes the value was cut. 107: an output that
 * has committed is withdrawn. 108: a writer that is cut after MADE is told that nothing was taken.
 * 109: the writer assumes that a withdrawal that crosses COMMIT succeeds.
 *
 * Checked: the reader gets a value that was made, once, or is told of a death; if a writer was told
 * that its value was taken, it was; if it was told that it was not, it was not; no party waits for
 * ever.
 */
#ifndef MUT
#define MUT 0
#endif

mtype = { OFFER, WITHDRAW, COMMIT, MADE, FAILED, WITHDRAWN, DONE, DIED }
mtype = { NONE, TAKEN, NOT, DOUBT }
chan up = [3] of { mtype };         /* the writer's session */
chan down = [3] of { mtype };
chan to_reader = [1] of { mtype };

bool cut, known;                    /* the writer's session is cut; the home knows that */
bool made, got, died, reading;
mtype told = NONE;

active proctype Writer() {
    mtype k;
    bool asked, making, sent;
    up!OFFER;
    do
    :: told != NONE -> break
    :: cut -> told = (sent && MUT != 108 -> DOUBT : NOT)
    :: !cut && !asked && !making && !sent -> asked = true; up!WITHDRAW;
        if
        :: MUT == 109 -> told = NOT
        :: else
        fi
    :: !cut && making -> making = false;
        if
        :: atomic { !cut -> made = true; sent = true; up!MADE }
        :: atomic { !cut -> up!FAILED; told = NOT }
        :: cut
        fi
    :: down?k ->
        if
        :: k == COMMIT -> making = true
        :: k == DONE -> assert(sent); told = TAKEN
        :: k == WITHDRAWN -> told = NOT
        fi
    od
}

active proctype Reader() {
    mtype k;
    reading = true;
endwait:
    to_reader?k;
    if
    :: k == DONE -> assert(made && !got); got = true
    :: k == DIED -> died = true
    fi
}

active proctype Home() {
    mtype k;
    bool offered, committed;
end:
    do
    :: atomic { up?k ->
        if
        :: known
        :: !known && k == OFFER -> offered = true
        :: !known && k == WITHDRAW ->
            if
            :: offered || (MUT == 107 && committed) -> offered = false; committed = false; down!WITHDRAWN
            :: else
            fi
        :: !known && k == MADE -> if :: committed -> committed = false; to_reader!DONE; down!DONE :: else fi
        :: !known && k == FAILED -> assert(committed); committed = false; to_reader!DIED
        fi }
    :: atomic { offered && reading && !known -> offered = false; committed = true; reading = false; down!COMMIT }
    :: atomic { cut && !known -> known = true; offered = false;
        if
        :: committed && MUT != 106 -> committed = false; to_reader!DIED
        :: else
        fi }
    od
}

proctype Cutter() {
    if
    :: cut = true
    :: true
    fi
}

init {
    atomic { run Cutter() }
end:
    timeout ->
    assert(told != NONE || cut);
    assert(!(told == NOT && got));
    assert(!(told == TAKEN && !got));
    assert(got || died || reading)      /* a reader that has committed does not wait for ever */
}
