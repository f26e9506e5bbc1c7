/* An end that moves between spaces as a value (WIRE.md 7.4).
 *
 * Spaces 0, 1, 2 and the home of the channel. One counted end starts at 0; it may be sent on, dropped on the way, retired, and one space may be killed:
 * the frames that it had sent arrive or are lost. With LEAVE a space that has nothing to do with
 * the end any more may say BYE. The home has a bit for each space.
 *
 *   holds ──END(token)──► in transit ──ADOPTED, DROPPED, the receiver died──► let go: RETIRE, if nothing else is held or under way
 *
 * MUT 61: the sender lets go when it sends. 62: a dropped end is not reported. 63: the receiver frees the sender, not the home. 64: the sender says nothing
 * when the receiver dies. 65: ADOPT is not sent by a space whose bit is set. 66: the key of the previous holder is not sent with the end. 67: an adopter that
 * was found by that key does not tell the sender. 155: an adopter that was found by the first key does not. 156: a space that says BYE does not tell the sender of an end
 * that it has closed, and of which the home has not answered.
 *
 * The bit of a space stands for its key. A space is `sure` once the home has said ADOPTED to it; until then the end that it sends on has the key of space 0 too.
 *
 * Checked: the home never says "retired" while a living space holds the end, or while the end is on
 * its way to one; it says "died" only if a space was killed; and at rest a living space holds the
 * end or the home has said that its side has ended.
 */
#ifndef MUT
#define MUT 0
#endif
#define NS 3
#define MOVES 2

#define OLDER 8                                         /* flag in the token: space 0's key is sent along */

mtype = { END, ADOPT, ADOPTED, DROPPED, RETIRE, DIED, DEAD, SURE, TELL }
typedef Links { chan to[NS] = [6] of { mtype, byte } };
Links link[NS];                                         /* link[a].to[b] */
chan to_home[NS] = [6] of { mtype, byte, byte };        /* the fields: kind, token, the sender of the end */
chan from_home[NS] = [6] of { mtype, byte, byte };
bool alive[NS], holds[NS], bit_[NS], sure[NS];
byte got_by[NS], got_from[NS];                          /* for the end that it has adopted and is not sure of: the token, and its last holder */
byte transit[NS * (MOVES + 1)];                         /* [space * (MOVES+1) + token]: 1 + receiver of an end not yet confirmed */
byte coming[NS];                                        /* the number of ends under way to a space */
byte moves, kills, leaves;
bool gone_, died, killed, left[NS];

#define IN_TRANSIT(s) (transit[(s) * 3 + 1] || transit[(s) * 3 + 2])

inline let_go(s, how) {
    if
    :: !holds[s] && !IN_TRANSIT(s) -> to_home[s]!how, 0, 0
    :: else
    fi
}

proctype Space(byte me) {
    byte t, to, from;
    mtype k;
endloop:
    do
    :: !alive[me] -> break
    :: atomic { alive[me] && holds[me] -> holds[me] = false; let_go(me, RETIRE) }
    :: atomic { alive[me] && holds[me] && moves < MOVES ->
        select(to : 0 .. NS - 1);
        if
        :: to != me && alive[to] ->
            moves++; holds[me] = false; coming[to]++;
            link[me].to[to]!END, moves + (!sure[me] && MUT != 66 -> OLDER : 0);
            if
            :: MUT == 61 -> let_go(me, RETIRE)
            :: else -> transit[me * 3 + moves] = 1 + to
            fi
        :: else
        fi }
    :: atomic { alive[me] && kills -> kills--; killed = true; alive[me] = false; holds[me] = false;
        transit[me * 3 + 1] = 0; transit[me * 3 + 2] = 0; coming[me] = 0;
        for (to : 0 .. NS - 1) {
            if
            :: to != me ->
                do                                      /* the frames that it had sent arrive, or are lost from some point on */
                :: len(link[me].to[to]) < 5 -> break
                :: nempty(link[me].to[to]) -> link[me].to[to]?k, t; coming[to] = (k == END -> coming[to] - 1 : coming[to])
                od;
                link[me].to[to]!DEAD, 0
            :: else
            fi
        };
        if
        :: true
        :: do :: nempty(to_home[me]) -> to_home[me]?k, t, from :: empty(to_home[me]) -> break od
        fi;
        to_home[me]!DEAD, 0, 0 }
#ifdef LEAVE
    :: atomic { alive[me] && leaves && !holds[me] && !IN_TRANSIT(me) && !coming[me] ->  /* BYE: the frames that it has sent arrive */
        leaves--;
        if
        :: got_by[me] && alive[got_from[me]] && MUT != 156 -> link[me].to[got_from[me]]!DROPPED, got_by[me]
        :: else
        fi;
        alive[me] = false; left[me] = true;
        for (to : 0 .. NS - 1) {
            if
            :: to != me && alive[to] -> link[me].to[to]!DEAD, 0
            :: else
            fi
        };
        to_home[me]!DEAD, 0, 0 }
#endif
    :: atomic { alive[me] && nempty(from_home[me]) ->
        from_home[me]?k, t, from;                       /* ADOPTED goes to the sender; SURE and TELL go to the adopter */
        if
        :: k == SURE || k == TELL ->
            sure[me] = true; got_by[me] = 0;
            if
            :: alive[from] && !(k == TELL && MUT == 67) && !(k == SURE && MUT == 155) -> link[me].to[from]!DROPPED, t
            :: else
            fi
        :: k == ADOPTED ->
        if
        :: transit[me * 3 + t] -> transit[me * 3 + t] = 0; let_go(me, RETIRE)
        :: else
        fi
        fi }
    :: atomic { alive[me] && me != 0 && nempty(link[0].to[me]) -> from = 0; link[0].to[me]?k, t } ; goto got
    :: atomic { alive[me] && me != 1 && nempty(link[1].to[me]) -> from = 1; link[1].to[me]?k, t } ; goto got
    :: atomic { alive[me] && me != 2 && nempty(link[2].to[me]) -> from = 2; link[2].to[me]?k, t } ;
got:    atomic {
        if
        :: !alive[me]
        :: alive[me] && k == END && coming[me] ->
            coming[me]--;
            if
            :: true ->                                  /* the end is received */
                holds[me] = true; sure[me] = false; got_by[me] = t % OLDER; got_from[me] = from;
                if
                :: MUT == 65 && bit_[me]
                :: else -> to_home[me]!ADOPT, t, from
                fi;
                if
                :: MUT == 63 && alive[from] -> link[me].to[from]!ADOPTED, t % OLDER
                :: else
                fi
            :: MUT != 62 && alive[from] -> link[me].to[from]!DROPPED, t % OLDER
            :: MUT == 62 || !alive[from]
            fi
        :: alive[me] && (k == DROPPED || k == ADOPTED) ->
            if
            :: transit[me * 3 + t] -> transit[me * 3 + t] = 0; let_go(me, RETIRE)
            :: else
            fi
        :: alive[me] && k == DEAD ->
            if
            :: MUT != 64 && (transit[me * 3 + 1] == 1 + from || transit[me * 3 + 2] == 1 + from) ->
                transit[me * 3 + 1] = (transit[me * 3 + 1] == 1 + from -> 0 : transit[me * 3 + 1]);
                transit[me * 3 + 2] = (transit[me * 3 + 2] == 1 + from -> 0 : transit[me * 3 + 2]);
                let_go(me, DIED)
            :: else
            fi
        :: else
        fi }
    od
}

inline look() {                                         /* Checks the end after each change of a bit. */
    if
    :: !bit_[0] && !bit_[1] && !bit_[2] && !gone_ ->
        gone_ = true;
        assert(died || !((alive[0] && (holds[0] || coming[0])) || (alive[1] && (holds[1] || coming[1])) || (alive[2] && (holds[2] || coming[2]))));
        assert(!died || killed)
    :: else
    fi
}

active proctype Home() {
    byte s, t, from;
    mtype k;
    bool known;
endhome:
    do
    :: atomic {
        if
        :: to_home[0]?k, t, from -> s = 0
        :: to_home[1]?k, t, from -> s = 1
        :: to_home[2]?k, t, from -> s = 2
        fi;
        if
        :: k == ADOPT ->
            known = bit_[from];
            if
            :: gone_ || !(known || (t >= OLDER && bit_[0])) ->           /* a dead end; the space's own share, if it has one, is released */
                assert(killed || left[s]);              /* a space that left had closed the end, and the end's sender knew that first */
                if
                :: alive[s] && holds[s] -> holds[s] = false; let_go(s, RETIRE)
                :: else
                fi
            :: else -> bit_[s] = true
            fi;
            t = t % OLDER;
            if
            :: known && MUT != 63 && alive[from] -> from_home[from]!ADOPTED, t, 0
            :: else
            fi;
            if
            :: !alive[s]
            :: alive[s] && known -> from_home[s]!SURE, t, from
            :: alive[s] && !known -> from_home[s]!TELL, t, from
            fi
        :: k == RETIRE -> bit_[s] = false; look()
        :: k == DIED || k == DEAD -> died = died || bit_[s]; bit_[s] = false; look()
        fi }
    od
}

init {
    atomic {
        byte s;
        for (s : 0 .. NS - 1) { alive[s] = true }
        holds[0] = true; bit_[0] = true; sure[0] = true;
#ifdef KILL
        kills = 1;
#endif
#ifdef LEAVE
        leaves = 1;
#endif
        for (s : 0 .. NS - 1) { run Space(s) }
    }
end:
    timeout ->
    assert(gone_ || (alive[0] && holds[0]) || (alive[1] && holds[1]) || (alive[2] && holds[2]))
}
