/* flash.h: erases, programs and reads the flash chip from which the RP2040 starts, through the
 * functions of the boot ROM (RP2040 datasheet, 2.8.3.1.3).
 *
 * While the chip erases or programs, nothing can be read from it. Therefore
 *  - a program that lies in SRAM continues: its interrupts stay on, and core 1 runs;
 *  - a program that lies in flash has interrupts off on this core meanwhile (some 45 ms for a
 *    sector, 0.7 ms for a page), and must let core 1 run only code in SRAM.
 *
 * In a program of the pico-sdk flash_sdk.c does the same by the SDK's functions. */
#ifndef WEFT_RP2040_FLASH_H
#define WEFT_RP2040_FLASH_H
#include "weft_mcu/platform.h"
#ifdef __cplusplus
extern "C" {
#endif
enum { WEFT_FLASH_BYTES = 0x200000, WEFT_FLASH_SECTOR = 4096, WEFT_FLASH_PAGE = 256 };

/* Makes the flash readable, and finds the functions of the boot ROM. Called once, before the other
 * functions. */
void weft_flash_open(void);
/* Erases the sector that begins at `offset`, a multiple of 4,096: every byte becomes 0xff. */
void weft_flash_erase(uint32_t offset);
/* Programs the page that begins at `offset`, a multiple of 256, with 256 bytes in SRAM. Bits that
 * are 1 can become 0; a byte of 0xff leaves the byte in flash as it is. */
void weft_flash_program(uint32_t offset, const void *page);
/* Returns the address at which the byte at `offset` is read, past the cache. */
WEFT_INLINE const uint8_t *weft_flash_at(uint32_t offset) {
  return (const uint8_t *)(uintptr_t)(0x13000000u + offset);
}
/* Returns how many bytes at the beginning of the flash this program takes; 0 if the program lies
 * in SRAM. */
uint32_t weft_flash_taken(void);
#ifdef __cplusplus
}
#endif
#endif
