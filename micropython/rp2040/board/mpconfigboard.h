// A Pico whose prompt is on UART 0, because a PC cannot enumerate the emulator's USB.
#define MICROPY_HW_BOARD_NAME "Weft's Pico"
#define MICROPY_HW_FLASH_STORAGE_BYTES (1024 * 1024)
#define MICROPY_HW_ENABLE_UART_REPL (1)
#define MICROPY_HW_ENABLE_USBDEV (0)
