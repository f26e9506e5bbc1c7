"""A compiler from Lingua Franca (target C) to C for weft_mcu's reactors. The command is `weft lf`;
lf/README.md describes it."""
