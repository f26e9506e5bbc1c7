"""Old programs on Weft: thin layers with the names of PyCSP's implementations
(compat/docs/pycsp.md)."""
