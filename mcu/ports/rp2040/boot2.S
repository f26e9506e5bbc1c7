/* boot2.S: the second-stage boot code: 252 bytes that the boot ROM copies from flash to SRAM and
 * runs, and a checksum that tools/image.py adds.
 *
 * The code sets the flash interface to serial reads with command 03h, which every flash chip knows,
 * at clk_sys / 4; then it starts the program behind it. Quad reads would be faster but need
 * chip-specific commands; hot code is in SRAM anyway.
 */
  .syntax unified
  .cpu cortex-m0plus
  .thumb
  .section .boot2, "ax"
  .global __weft_boot2
  .type __weft_boot2, %function
  .thumb_func
__weft_boot2:
  ldr   r3, =0x18000000     /* SSI */
  movs  r1, #0
  str   r1, [r3, #0x08]     /* SSIENR: off while it is configured */
  movs  r1, #4
  str   r1, [r3, #0x14]     /* BAUDR */
  ldr   r1, =0x001f0300     /* CTRLR0: standard SPI, 32-bit data frames, transmit then receive */
  str   r1, [r3, #0x00]
  movs  r1, #0
  str   r1, [r3, #0x04]     /* CTRLR1: one data frame */
  ldr   r2, =0x180000f4
  ldr   r1, =0x03000218     /* SPI_CTRLR0: command 03h, 8-bit instruction, 24-bit address */
  str   r1, [r2]
  movs  r1, #1
  str   r1, [r3, #0x08]     /* on: the flash can be read as memory from now on */
  ldr   r0, =0x10000100     /* the program's vector table */
  ldr   r1, =0xe000ed08     /* VTOR */
  str   r0, [r1]
  ldmia r0!, {r1, r2}
  mov   sp, r1
  bx    r2
  .pool
