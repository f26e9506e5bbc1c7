"""`weft.check`: runs a network in one order after the other, until an order fails
(docs/checking.md).

Nothing is imported here, so that the plugin for pytest costs little where nothing is checked. The
modules, from below:

    options     the options of a check
    tokens      a schedule as a text
    engine      the search, which the extension module makes
    patches     clocks, random numbers and locks, and calls that are refused
    faults      simulated hosts
    properties  observes a run
    telling     a schedule, line by line
    report      the failures that were found
    functions   the function to be checked
    words       errors and values in a few words
    checker     a whole check
    parallel    a check in several OS processes
    api         `weft.check`, also as a decorator
    plugin      for pytest
"""
