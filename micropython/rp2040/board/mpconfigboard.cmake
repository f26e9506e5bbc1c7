# A Pico: what is different is in mpconfigboard.h.
set(PICO_BOARD "pico")
set(PICO_PLATFORM "rp2040")
