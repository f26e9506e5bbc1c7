# Configures the board as a Pico; mpconfigboard.h has the differences.
set(PICO_BOARD "pico")
set(PICO_PLATFORM "rp2040")
