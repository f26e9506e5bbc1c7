/* flash_sdk.c: the flash chip (flash.h) in a program of the pico-sdk, by the SDK's hardware_flash,
 * which executes from SRAM and sets the flash up again as boot2 has done.
 *
 * Invariant: while the chip erases or programs, interrupts are off on this core, unless the whole
 * program is in SRAM (`no_flash`, `copy_to_ram`). */
#include "flash.h"
#include "hardware/flash.h"
#include "hardware/sync.h"

extern char __flash_binary_end;

#if (defined(PICO_NO_FLASH) && PICO_NO_FLASH) || (defined(PICO_COPY_TO_RAM) && PICO_COPY_TO_RAM)
#define BEGIN() 0
#define END(irq) (void)(irq)
#else
#define BEGIN() save_and_disable_interrupts()
#define END(irq) restore_interrupts(irq)
#endif

void weft_flash_open(void) {}
uint32_t weft_flash_taken(void) {
  const uintptr_t end = (uintptr_t)&__flash_binary_end;
  return end >> 28 == 1 ? (uint32_t)(end - 0x10000000u) : 0;
}
void weft_flash_erase(uint32_t offset) {
  const uint32_t irq = BEGIN();
  flash_range_erase(offset, WEFT_FLASH_SECTOR);
  END(irq);
}
void weft_flash_program(uint32_t offset, const void *page) {
  const uint32_t irq = BEGIN();
  flash_range_program(offset, page, WEFT_FLASH_PAGE);
  END(irq);
}
