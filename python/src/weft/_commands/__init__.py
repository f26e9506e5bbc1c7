"""The tasks of the command `weft`."""
