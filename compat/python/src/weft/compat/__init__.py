"""Old programs on Weft: thin layers with the names of PyCSP's implementations
(python/docs/compat.md)."""
