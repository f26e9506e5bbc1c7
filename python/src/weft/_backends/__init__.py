"""What weft.coroutines, .threads and .greenlets are made of."""
