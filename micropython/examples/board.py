"""A pin for the examples: the board's own, or on a PC one that a script presses."""

try:
    from machine import Pin  # noqa: F401

    PLAYED = None
except ImportError:
    PLAYED = []  # pins with a handler, for who plays the board

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
