"""PyCSP-locksharing's plug and play processes."""

from . import Alternative, Parallel, process


@process
def Identity(cin, cout):
    while True:
        cout(cin())


@process
def Prefix(cin, cout, prefixItem=None):
    cout(prefixItem)
    while True:
        cout(cin())


@process
def SeqDelta2(cin, cout1, cout2):
    while True:
        value = cin()
        cout1(value)
        cout2(value)


@process
def _write(cout, value):
    cout(value)


@process
def ParDelta2(cin, cout1, cout2):
    while True:
        value = cin()
        Parallel(_write(cout1, value), _write(cout2, value), check_poison=True).run()


@process
def AltDelta2(cin, cout1, cout2):
    """Writes first to the output that is ready first."""
    while True:
        value = cin()
        one, two = cout1.alt_pending_write(value), cout2.alt_pending_write(value)
        g, _ = Alternative(one, two).select()
        (cout2 if g is one else cout1)(value)


Delta2 = ParDelta2


@process
def Successor(cin, cout):
    while True:
        cout(cin() + 1)


@process
def Mux2(cin1, cin2, cout):
    alt = Alternative(cin1, cin2)
    while True:
        _, value = alt.select()
        cout(value)


@process
def SkipProcess():
    pass


@process
def poison_chans(*chans, verbose=False):
    """Poisons the given channels, or the channels of the given ends."""
    for ch in chans:
        if verbose:
            print("poison_chans() - poison", ch)
        ch.poison()
