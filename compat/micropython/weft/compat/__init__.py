"""Names of older libraries on Weft."""
