"""The parts of weft.boards, which runs processes on boards (rule 21)."""
