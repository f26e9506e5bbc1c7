/* vectors.S: the vector table of a Cortex-M with WEFT_IRQS interrupt lines. The handler of line n
 * is weft_isr_n; that of an exception has the exception's name, as in weft_isr_systick. A handler
 * that neither the program nor the port defines is weft_isr_default.
 */
  .syntax unified
  .thumb
  .macro vector number
  .word weft_isr_\number
  .endm
  .macro fallback number
  .weak weft_isr_\number
  .thumb_set weft_isr_\number, weft_isr_default
  .endm

  .section .vectors, "a"
  .align 2
  .word __weft_stack
  .word weft_reset
  .word weft_isr_nmi, weft_isr_hardfault, weft_isr_hardfault, weft_isr_hardfault, weft_isr_hardfault
  .word 0, 0, 0, 0
  .word weft_isr_svcall
  .word 0, 0
  .word weft_isr_pendsv, weft_isr_systick
  .altmacro
  .set line, 0
  .rept WEFT_IRQS
  vector %line
  .set line, line + 1
  .endr

/* An interrupt for which there is no handler stops here, at a breakpoint. */
  .section .text.weft_isr_default, "ax"
  .global weft_isr_default
  .type weft_isr_default, %function
  .thumb_func
weft_isr_default:
  bkpt  78
  b     weft_isr_default
  .set line, 0
  .rept WEFT_IRQS
  fallback %line
  .set line, line + 1
  .endr
  .noaltmacro
  .irp name, nmi, hardfault, svcall, pendsv, systick
  fallback \name
  .endr
