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
        Parallel(_write(cout1, value), _write(cout2, value), check_poison=True)


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
