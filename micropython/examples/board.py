"""Provides the parts of a board that the examples use: a pin, or on a PC a pin that a script
changes; and the second core, or a stand-in for it.
"""

try:
    from machine import Pin  # noqa: F401

    PLAYED = None
except ImportError:
    PLAYED = []  # the pins with a handler, for the script that simulates the board

    class Pin:
        IN, OUT, PULL_UP, IRQ_FALLING = 0, 1, 2, 4

        def __init__(self, number, mode=0, pull=0):
            self.number, self.level, self.handler = number, 0, None

        def value(self, level=None):
            if level is None:
                return self.level
            self.level = level

        def irq(self, handler, trigger=0, hard=False):
            self.handler = handler
            PLAYED.append(self)


def beside(step):
    """Calls step() each millisecond beside the program, until it returns True: on core 1 (a
    thread), or, where there are no threads, in a timer's hard interrupt. step() must not
    allocate."""
    try:
        from _thread import start_new_thread
    except ImportError:
        from weft_board import tick

        def beat():
            if step():
                tick(0, None)

        tick(1000, beat)
        return
    try:
        from time import sleep_ms
    except ImportError:
        from time import sleep

        def sleep_ms(n):
            sleep(n / 1000)

    def loop():
        while not step():
            sleep_ms(1)

    start_new_thread(loop, ())
