"""What weft.boards is made of: processes on boards that run MicroPython (rule 21)."""
