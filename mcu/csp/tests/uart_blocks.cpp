// uart_blocks: the program of uart.cpp with blocks of bytes as values.
#define BLOCKS
#include "uart.cpp"
