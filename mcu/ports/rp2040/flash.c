/* flash.c: the flash chip from which the RP2040 starts (flash.h).
 *
 * Invariants
 *  1 Between rom.leave() and rom.read_as_memory() this core executes nothing from flash: change()
 *    is in SRAM, and in a program that lies in flash the handlers of interrupts cannot run.
 *  2 Afterwards the flash is read as boot2.S has set it up: serial reads with command 03h at
 *    clk_sys / 4. */
#include "flash.h"

static struct {
  void (*connect)(void), (*leave)(void);
  void (*erase)(uint32_t offset, size_t bytes, uint32_t block, uint8_t command);
  void (*program)(uint32_t offset, const uint8_t *from, size_t bytes);
  void (*flush)(void), (*read_as_memory)(void);
} rom;

enum { SSI_ENABLE = 0x18000008, SSI_BAUD = 0x18000014, BLOCK = 1 << 16, ERASE_BLOCK = 0xd8 };

/* Returns a function of the boot ROM by its two letters. The halfwords at 0x14 and 0x18 are the
 * addresses of the table and of the function that searches it. The volatile variables keep GCC
 * from warning that these addresses are small. */
static void *find(char first, char second) {
  typedef void *lookup(const uint16_t *table, uint32_t code);
  volatile uintptr_t table = 0x14, search = 0x18;
  lookup *f = (lookup *)(uintptr_t) * (const uint16_t *)search;
  return f((const uint16_t *)(uintptr_t) * (const uint16_t *)table,
           (uint32_t)second << 8 | (uint8_t)first);
}

static bool in_flash(void) { return WEFT_REG(PPB_VTOR) >> 28 == 1; }

uint32_t weft_flash_taken(void) {
  extern uint8_t __weft_data_start, __weft_data_end, __weft_data_load;
  return in_flash() ? (uint32_t)((uintptr_t)&__weft_data_load - 0x10000000u) +
                        (uint32_t)(&__weft_data_end - &__weft_data_start)
                    : 0;
}

/* Erases a sector if `page` is null, else programs a page. With `offset` at the end of the flash
 * nothing is changed, and the flash is made readable. */
WEFT_HOT_PART(flash) __attribute__((noinline)) static void change(uint32_t offset,
                                                                  const uint8_t *page,
                                                                  bool alone) {
  const weft_irq_t irq = weft_irq_off();
  if (!alone) WEFT_IRQ_ON(irq);
  rom.connect();
  rom.leave();
  if (page) rom.program(offset, page, WEFT_FLASH_PAGE);
  else if (offset != WEFT_FLASH_BYTES) rom.erase(offset, WEFT_FLASH_SECTOR, BLOCK, ERASE_BLOCK);
  rom.flush();
  rom.read_as_memory();
  WEFT_REG(SSI_ENABLE) = 0;
  WEFT_REG(SSI_BAUD) = 4;
  WEFT_REG(SSI_ENABLE) = 1;
  WEFT_IRQ_ON(irq);
}

void weft_flash_open(void) {
  rom.connect = (void (*)(void))find('I', 'F');
  rom.leave = (void (*)(void))find('E', 'X');
  rom.erase = (void (*)(uint32_t, size_t, uint32_t, uint8_t))find('R', 'E');
  rom.program = (void (*)(uint32_t, const uint8_t *, size_t))find('R', 'P');
  rom.flush = (void (*)(void))find('F', 'C');
  rom.read_as_memory = (void (*)(void))find('C', 'X');
  change(WEFT_FLASH_BYTES, 0, in_flash());
}
void weft_flash_erase(uint32_t offset) { change(offset, 0, in_flash()); }
void weft_flash_program(uint32_t offset, const void *page) { change(offset, page, in_flash()); }
