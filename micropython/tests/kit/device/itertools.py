"""The one function of itertools that scenarios use; MicroPython has no itertools."""


def pairwise(things):
    return zip(things, things[1:])
