/* vectors.S: vector table, reset, and the second-stage boot code of a flash image.
 *
 * An image for SRAM begins with the vector table. After a UF2 download to SRAM the boot ROM jumps
 * to the first byte of the image, so the table must be harmless when it is run as code. It is: the
 * words 0x20042000 and 0x2000xxxx decode as shifts and moves of low registers. The fifth word,
 * which the architecture reserves, holds a branch to reset.
 */
  .syntax unified
  .cpu cortex-m0plus
  .thumb

  .section .vectors, "a"
  .align 8
  .global __weft_vectors
__weft_vectors:
  .word __weft_stack0
  .word weft_reset
  .word weft_isr_nmi
  .word weft_isr_hardfault
  b.n   weft_reset
  nop
  .word 0, 0, 0, 0, 0, 0
  .word weft_isr_svcall
  .word 0, 0
  .word weft_isr_pendsv
  .word weft_isr_systick
  .word weft_isr_timer0, weft_isr_timer1, weft_isr_timer2, weft_isr_timer3
  .word weft_isr_pwm, weft_isr_usb, weft_isr_xip
  .word weft_isr_pio0_0, weft_isr_pio0_1, weft_isr_pio1_0, weft_isr_pio1_1
  .word weft_isr_dma0, weft_isr_dma1, weft_isr_io_bank0, weft_isr_io_qspi
  .word weft_isr_sio0, weft_isr_sio1, weft_isr_clocks
  .word weft_isr_spi0, weft_isr_spi1, weft_isr_uart0, weft_isr_uart1
  .word weft_isr_adc, weft_isr_i2c0, weft_isr_i2c1, weft_isr_rtc
  .global weft_reset
  .type weft_reset, %function
  .thumb_func
weft_reset:
  ldr   r0, =__weft_vectors
  ldr   r1, =0xe000ed08 /* VTOR */
  str   r0, [r1]
  ldr   r1, [r0]
  mov   sp, r1
  bl    weft_start
  .pool

/* An interrupt for which the program defines no handler stops here, at a breakpoint. */
  .section .text.weft_isr_default, "ax"
  .global weft_isr_default
  .type weft_isr_default, %function
  .thumb_func
weft_isr_default:
  bkpt  78
  b     weft_isr_default
  .irp name, nmi, hardfault, svcall, pendsv, systick, timer0, timer1, timer2, timer3, pwm, usb, xip, pio0_0, pio0_1, pio1_0, pio1_1, dma0, dma1, io_bank0, io_qspi, sio0, sio1, clocks, spi0, spi1, uart0, uart1, adc, i2c0, i2c1, rtc
  .weak weft_isr_\name
  .thumb_set weft_isr_\name, weft_isr_default
  .endr
