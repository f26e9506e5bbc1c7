"""weft check."""
