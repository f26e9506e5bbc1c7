"""The parts of which weft.coroutines, weft.threads and weft.greenlets are made."""
