"""`weft.check`: runs a function that runs a network in every order, and finds one that fails (docs/checking.md).

Nothing is imported here, so that the plugin for pytest costs little where nothing is checked. From below:

    options   what a check is asked for        tokens     a schedule as a text
    engine    the extension module's search    patches    clocks, random numbers, locks, what is refused
    faults    hosts that are simulated         properties what a run is looked at for
    telling   a schedule, line by line         report     what was found
    functions the function that is checked     words      errors and values in a few words
    checker   all of it together               parallel   in several OS processes
    api       `weft.check`, the decorator      plugin     for pytest
"""
