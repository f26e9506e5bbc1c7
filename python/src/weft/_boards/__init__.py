"""The parts of weft.boards, which runs processes on boards with MicroPython (rule 21)."""
