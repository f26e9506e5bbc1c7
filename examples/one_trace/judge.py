"""The process that runs on the second host."""

from weft.processes import process


@process
def judge(levels, verdicts):
    for level in levels:
        verdicts.write("high" if level > 20 else "low")
