"""Lingua Franca programs (target C) to C for weft_mcu's reactors. `weft lf` is its command;
lf/README.md its page."""
