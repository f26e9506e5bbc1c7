/* Extended reads at far ends, and values that come back (WIRE.md 4.6, 4.7).
 *
 * A writer and two readers, each a space with a session to the home of one channel. A reader has
 * the value (DONE), and reports the end of its block (END) or gives the value back (BACK). Its
 * session may be cut at any step, which may lose the frames under way. The home holds the writer
 * until then. A value that comes back is the next to be read, and its writer stays held.
 *
 *   home, for the value:  none ──OFFER──► offered ──a reader──► out with it ──END; a cut, not KEEPS──► none: the writer is told
 *                                             ▲                     └──BACK; a cut, KEEPS──► back ──a reader──► out with it
 *
 * MUT 101: the writer is told as the value is read. 102: a reader's death does not end its read.
 * 103: a value that comes back is not read again. 104: the home regards the value of a read whose
 * session is cut as used. 105: a value that came back goes behind those written later.
 * KEEPS: the readers have asked for values to come back.
 *
 * Checked: a writer is told once, and not during a block whose session was not cut; a value is used
 * (its block has ended) once, or at least once if a session is cut and KEEPS is set; if the first
 * value came back, the second is not read before it.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef KEEPS
#define KEEPS 1
#endif
#define NV 2                        /* values, written one after the other */

mtype = { OFFER, END, BACK, DONE }
chan up[3] = [4] of { mtype, byte };     /* 0 writes, 1 and 2 read */
chan down[3] = [4] of { mtype, byte };

bool cut[3];                        /* reader 1 may be cut */
bool known;                         /* the home knows of the cut */
byte used[NV + 1];                  /* how many blocks with this value ended normally */
byte inside[3];                     /* the value that a reader has in its block */
bool told[NV + 1];
bool giving = true;                 /* reader 1 may give a value back, once */

active proctype Writer() {
    byte v, n;
    for (v : 1 .. NV) { up[0]!OFFER, v }
    do
    :: n == NV -> break
    :: else ->
        atomic { down[0]?DONE, v; assert(!told[v]); told[v] = true };
        assert(!(inside[1] == v && !cut[1]) && inside[2] != v);
        n++
    od
}

proctype Reader(byte me) {
    byte v;
end:
    do
    :: cut[me] -> inside[me] = 0; break
    :: else ->
        up[me]!OFFER, 0;
endwait:
        if
        :: down[me]?DONE, v -> inside[me] = v
        :: cut[me] -> break
        fi;
        if
        :: atomic { !cut[me] -> inside[me] = 0; used[v]++; assert(used[v] <= 1 || cut[1]); up[me]!END, v }
        :: atomic { me == 1 && giving && KEEPS && !cut[me] -> giving = false; inside[me] = 0; up[me]!BACK, v }
        :: cut[me] -> inside[me] = 0; break
        fi
    od
}

active proctype Home() {
    byte v, p, o;
    mtype k;
    byte line[2];                   /* waiting values: the first is the next to be read */
    byte out[3];                    /* the value that a reader has */
    bool wants[3];
    bool back;                      /* a value that came back has not yet been read again */
    byte last_new;
end:
    do
    :: atomic {
        if
        :: up[0]?k, v -> p = 0
        :: up[1]?k, v -> p = (known -> 3 : 1)
        :: up[2]?k, v -> p = 2
        fi;
        if
        :: p == 3                                       /* a frame of a session that is over */
        :: p == 0 -> if :: line[0] == 0 -> line[0] = v :: else -> line[1] = v fi
        :: (p == 1 || p == 2) && k == OFFER -> wants[p] = true
        :: (p == 1 || p == 2) && k == END -> if :: MUT == 101 :: else -> assert(out[p] == v); down[0]!DONE, v fi; out[p] = 0
        :: (p == 1 || p == 2) && k == BACK ->
            out[p] = 0;
            if
            :: MUT == 103 -> down[0]!DONE, v
            :: MUT == 105 && line[0] != 0 -> line[1] = v; back = true
            :: else -> assert(line[1] == 0); line[1] = line[0]; line[0] = v; back = true
            fi
        fi }
    :: atomic { cut[1] && !known ->                     /* frames under way are lost; frames that
                                                           have arrived were processed */
        known = true; wants[1] = false; v = out[1]; out[1] = 0;
        if
        :: v == 0 || MUT == 102
        :: v != 0 && MUT != 102 && (!KEEPS || MUT == 104) -> if :: MUT == 101 :: else -> down[0]!DONE, v fi
        :: v != 0 && MUT != 102 && KEEPS && MUT != 104 -> line[1] = line[0]; line[0] = v; back = true
        fi }
    :: atomic { line[0] != 0 && (wants[1] || wants[2]) ->
        p = (wants[1] -> 1 : 2);
        if :: wants[1] && wants[2] -> if :: p = 1 :: p = 2 fi :: else fi;
        wants[p] = false; v = line[0]; line[0] = line[1]; line[1] = 0; out[p] = v;
        assert(!(back && v > last_new));            /* a returned value precedes values that were
                                                       never read */
        if :: v > last_new -> last_new = v :: else -> back = false fi;
        if :: cut[p] :: else -> down[p]!DONE, v fi;
        if :: MUT == 101 -> down[0]!DONE, v :: else fi }
    od
}

proctype Cutter() {
    if :: cut[1] = true :: true fi
}

init {
    atomic { run Reader(1); run Reader(2); run Cutter() }
end:
    timeout ->
    byte v;
    for (v : 1 .. NV) {
        assert(told[v]);                            /* no writer is held for ever */
        assert(!KEEPS || used[v] >= 1)              /* reader 2 is still alive: each value was used */
    }
}
