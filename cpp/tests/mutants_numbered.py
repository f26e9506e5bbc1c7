"""The numbered mutants (explorer/mutated.py): what each mutant breaks, and the scenario that kills
it first, by a part of the scenario's name. Mutants of the Promela models have the same numbers
there (conformance/models/MUTANTS.md).

`run` shows that each mutant is killed by its scenario; `mutants.py` shows which other scenarios
kill it too.
"""

from __future__ import annotations

# number: (what is broken, the scenario)
NUMBERED: dict[int, tuple[str, str]] = {
    1: ("a locked peer is skipped", "four parties, three channels"),
    2: ("a choice claims its own word first", "choice meets choice: 2 processes"),
    3: ("no second look while enrolling", "choice meets choice: 2 processes"),
    4: ("standing: the writer does not read the word again", "standing meets two writers"),
    5: ("standing: the alternative does not read its list again", "standing meets two writers"),
    6: ("foreign: a value is handed to the sleeper", "foreign reader takes from a plain writer"),
    7: ("foreign: a withdrawal does not move the line on", "foreign reader is cancelled"),
    8: ("a cancellation stores its word blindly", "cancel meets commit: a choice"),
    9: ("biased lock: the owner does not look whether it was revoked", "biased lock: the owner"),
    10: ("biased lock: revoked without a heavy fence", "biased lock: the owner"),
    11: ("biased lock: the revoker does not wait for the owner to leave", "biased lock: the owner"),
    12: (
        "one-to-one: who commits does not look whether the other side waits",
        "one-to-one: order kept",
    ),
    13: ("one-to-one: who is in line does not look at the ring again", "one-to-one: order kept"),
    14: (
        "one-to-one: who sleeps beside a light side passes no heavy fence",
        "one-to-one: order kept",
    ),
    15: (
        "one-to-one: no more heavy fences once the other side has ceased to be light",
        "one-to-one: a reader sleeps",
    ),
    16: (
        "biased lock: who wins the word does not look whether it is biased again by now",
        "biased lock: the second bias",
    ),
    17: (
        "biased lock: a bias is given once more, not the next one",
        "biased lock: the second bias",
    ),
    18: ("owner's lock: the owner passes no fence when it should", "owner's lock: the owner"),
    19: ("owner's lock: a visitor passes no heavy fence when it should", "owner's lock: the owner"),
    20: (
        "owner's lock: a visitor passes its fence before it says that the owner is to pass one",
        "owner's lock: a visitor who",
    ),
    21: (
        "ended: only the guards that are enrolled so far are counted",
        "a merge is not over while",
    ),
    22: ("ended: a guard found ended while enrolling is not counted down", "two sources end while"),
    23: (
        "ended: two who end the last two channels at once, neither of whom claims",
        "two sources end while",
    ),
    24: (
        "foreign: who comes waits for an undecided reader, however many values there are",
        "slow to decide: a second value",
    ),
    25: (
        "foreign: who comes waits for the undecided although one of them has withdrawn",
        "cancelled as it is told comes again",
    ),
    31: ("wire: the writer is told before the reader", "wire: a home that dies"),
    32: ("wire: a withdrawal does not wait for its answer", "wire: a writer withdraws"),
    33: (
        "wire: a writer whose session ends is told that nothing happened",
        "wire: a cut at every step",
    ),
    34: ("wire: offers outlive their session", "wire: a cut at every step"),
    36: ("wire: a retirement drops a write that waits", "wire: a waiting write"),
    39: ("wire: ends whose session ended are retired, not dead", "wire: a cut at every step"),
    40: (
        "wire: of two sleepers who are let to meet the writer is woken first",
        "wire: two who sleep",
    ),
    41: (
        "credits: what another writes enters while the home lends",
        "wire: credits: a second space",
    ),
    42: ("credits: PUT without one", "wire: credits: a second space"),
    44: (
        "credits: what is still lent at the RECALLED is forgotten",
        "wire: credits: they are given up",
    ),
    45: ("credits: the writer goes on putting after its RECALLED", "wire: credits: a second space"),
    46: ("credits: who waits for one does not say so", "wire: credits: a reader"),
    47: ("credits: a CREDIT that crossed the RECALLED counts", "wire: credits: they are given up"),
    51: ("resending: a packet beyond a gap is taken", "wire: packets come"),
    52: ("resending: a packet is taken again", "wire: packets come"),
    53: ("resending: the highest number seen is acknowledged", "wire: packets come"),
    54: ("resending: an acknowledgement of what was never sent counts", "wire: packets come"),
    55: ("resending: an old acknowledgement moves the window", "wire: packets come"),
    61: ("wire: who sends an end lets go of it at once", "wire: an end moves to a third"),
    62: (
        "wire: who cannot reach the home of an end that came does not say so",
        "wire: an end moves, and those",
    ),
    63: (
        "wire: the acknowledgement of a value frees its ends, not the home's word",
        "wire: an end moves to a third",
    ),
    64: (
        "wire: the sender keeps what a dead receiver had got",
        "wire: an end moves, and its receiver",
    ),
    65: (
        "wire: who loses the home before it has confirmed does not say so",
        "wire: an end moves, and those",
    ),
    66: ("wire: no earlier key goes with an end", "wire: an end goes on at once"),
    67: (
        "wire: an adopter that was found by an earlier key does not tell the sender",
        "wire: an end goes on at once",
    ),
    71: ("wire: a choice that spans is never held", "wire: two choices that span cross"),
    72: (
        "wire: a choice that spans is held whatever the order",
        "wire: two choices that span cross",
    ),
    73: (
        "wire: who chooses elsewhere frees no choice that is held for it",
        "wire: a choice that is held is let go",
    ),
    74: (
        "wire: a home does not watch again for a choice after it was tried",
        "wire: a writer comes, is met by another",
    ),
    75: ("wire: a watch does not look whether somebody is there", "a watch is told of a writer"),
    76: (
        "wire: a READY that comes while another home is tried is dropped",
        "wire: a writer comes, is met by another",
    ),
    77: (
        "wire: the withdrawal of a choice does not wait for the home that is trying",
        "wire: a choice that spans is withdrawn",
    ),
    78: (
        "wire: of a home lost while trying it is said that nothing happened",
        "wire: a home of a choice",
    ),
    79: (
        "wire: the first channel that retires ends a choice that spans",
        "wire: sources at two homes",
    ),
    80: ("wire: homes are not asked in order", "wire: both homes are ready"),
    81: ("ring: a knock does not change the word that it wakes", "ring: who waits parks"),
    82: ("ring: who parks does not look once more", "ring: who waits parks"),
    83: ("ring: a writer that finds it full does not say so", "ring: a writer that finds"),
    91: ("wire: a slot is used again though somebody has a share", "wire: slots: lent"),
    92: (
        "wire: who lets go of a slot's mapping keeps nothing for what is under way",
        "wire: slots: lent",
    ),
    93: ("wire: who lets go of a slot's mapping leaves its name in the head", "wire: slots: lent"),
    96: ("wire: who lends a slot takes no share for the receiver", "wire: slots: lent"),
    101: (
        "wire: an extended read: the writer is told as the value is read",
        "wire: an extended read: its writer",
    ),
    102: (
        "wire: an extended read: a reader's death does not end it",
        "wire: an extended reader dies",
    ),
    103: (
        "wire: an extended read: what comes back is not read again",
        "wire: an extended reader dies",
    ),
    104: (
        "wire: an extended read whose session is cut counts as used",
        "wire: an extended reader dies",
    ),
    105: (
        "wire: an extended read: what came back goes behind what was written later",
        "wire: what comes back",
    ),
    106: (
        "wire: values made later: the death of a maker is not told to the reader",
        "wire: a value made after the commit",
    ),
    107: (
        "wire: values made later: what has committed is withdrawn",
        "wire: a value made after the commit",
    ),
    108: (
        "wire: values made later: a writer that is cut after MADE is told that nothing was taken",
        "wire: a value made after the commit",
    ),
    110: (
        "wire: barriers: the arrival of one whose session is over still counts",
        "wire: a space that has a barrier dies",
    ),
    111: (
        "wire: barriers: the end of a session is not the death of the barrier",
        "wire: a space that has a barrier dies",
    ),
    113: ("wire: barriers: what was withdrawn still counts", "wire: an arrival is asked back"),
    114: (
        "wire: barriers: a resignation does not complete the phase",
        "wire: a party is enrolled for all",
    ),
    115: (
        "wire: barriers: a share that is given back is a death",
        "wire: a share that was given back",
    ),
    116: (
        "wire: barriers: who comes after the death is not told",
        "wire: a space that has a barrier dies",
    ),
    117: (
        "wire: barriers: enrol() returns before its word is at the home",
        "wire: a party is enrolled for all",
    ),
    118: (
        "wire: barriers: choices are not told of the death",
        "wire: a space that has a barrier dies",
    ),
    119: (
        "wire: barriers: an arrival whose choice has taken the channel still counts",
        "wire: a choice at a barrier",
    ),
    121: (
        "wire: barriers: a choice that is asked back leaves its place at the barrier",
        "wire: a choice at a barrier",
    ),
    122: ("rounds: what is under way is not counted", "wire: rounds: two programs go on"),
    124: (
        "rounds: a session with who was not asked does not count",
        "wire: rounds: the last of three",
    ),
    125: ("rounds: their frames move the counters", "wire: rounds: two programs go on"),
    126: (
        "rounds: who is asked again does not answer",
        "wire: rounds: three programs in a triangle",
    ),
    127: ("rounds: who is asked asks nobody else", "wire: rounds: three programs in a line"),
    129: (
        "rounds: a session that is still opening does not count",
        "wire: rounds: somebody may come",
    ),
    131: ("rounds: who has gone is awaited", "wire: rounds: one of three programs is killed"),
    132: ("rounds: a second round is taken for the first", "wire: rounds: two programs go on"),
    134: (
        "wire: a TRY of some guards of a home answers a READY of the others",
        "wire: a writer comes while another home is asked",
    ),
    135: (
        "wire: a timer ends a choice, whichever home has not been asked",
        "wire: a timer comes at any step",
    ),
    136: (
        "wire: what is asked after a timer has come is not asked back",
        "wire: a timer comes, and the program",
    ),
    137: (
        "wire: a select that polls asks the first home alone",
        "wire: a select that polls asks each home",
    ),
    138: ("wire: two selects that poll wait for each other", "wire: two selects that poll cross"),
    139: (
        "wire: a timer does not ask back what is being asked",
        "wire: a timer comes, and the program",
    ),
    140: (
        "wire: a home does not look at a guard that is off",
        "wire: an output that is off holds a choice open",
    ),
    141: (
        "wire: a home watches a guard that is off",
        "wire: an output that is off holds a choice open",
    ),
    142: ("wire: a home tries an input that is off", "wire: an input that is off"),
    143: (
        "wire: an output that is off holds no choice open",
        "wire: an output that is off holds a choice open",
    ),
    144: (
        "wire: the loss of a home with nothing but guards that are off is the choice's",
        "wire: an output that is off meets nobody",
    ),
    145: (
        "wire: a home with nothing but guards that are off is not asked",
        "wire: a select that polls at an output that has retired",
    ),
    146: (
        "rounds: who hears of a deadlock does not tell its other peers",
        "wire: rounds: three programs in a line",
    ),
    147: (
        "wire: a home that was offered a choice as it was asked is not told that it has gone",
        "wire: a choice that is held is let go",
    ),
    155: (
        "wire: an adopter tells the sender only what the home cannot",
        "wire: an end moves, its receiver closes it",
    ),
    156: (
        "wire: who says BYE does not say first which ends it has closed again",
        "wire: an end moves, its receiver closes it",
    ),
    157: ("places: a CREDIT that crossed an OFFER counts", "wire: places: a reader comes and goes"),
    158: ("places: to the home it counts too", "wire: places: a reader comes and goes"),
    159: (
        "places: a reader that leaves is not asked back",
        "wire: places: a reader comes and goes",
    ),
    160: ("places: it leaves at once", "wire: places: a reader comes and goes"),
    161: (
        "places: another writer meets a reader that is promised",
        "wire: places: a second space comes",
    ),
    162: (
        "places: RECALL is answered by who has no credit",
        "wire: places: a reader comes and goes",
    ),
}
