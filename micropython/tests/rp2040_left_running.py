"""A program for test_rp2040.py, which ends while a function that allocates all the time still runs
on core 1. Then the prompt and a soft reset work.
"""

import _thread


def busy(s):
    while True:
        s[0] = [s[0] and s[0][:10], bytes(40)]


state = [None]
_thread.start_new_thread(busy, (state,))
while state[0] is None:
    pass
print("core 1 runs")
