/* rom.S: the boot ROM of the emulator, written for it from the RP2040 datasheet's description of the ROM's interface (2.8.2, 2.8.3).
 *
 * Invariants
 * - Everything that a program may rely on is at its address in the datasheet: the magic number at
 *   0x10, the version at 0x13, three pointers of 16 bits
 *   at 0x14 (functions, data, look-up). Every other address is an implementation detail.
 * - `udf #n` enters src/rom.mjs, which does the work and counts its cycles; all other code is
 *   ordinary code, and costs what its
 *   instructions cost. A function keeps r4-r11 and ip (the pico-sdk relies on ip), and needs no RAM but the
 * caller's stack.
 * - Only `code … code_end` is ever executed: the emulator faults on a jump to another place of the ROM, in
 *   particular through a null pointer.
 *
 * rom/make assembles this into src/rom_image.mjs, which is committed: running the emulator needs no compiler.
 */
    .syntax unified
    .cpu cortex-m0plus
    .thumb
    .text

vectors:
    .word 0x20042000
    .word reset + 1
    .word reset + 1             /* NMI and HardFault of a core without vectors of its own */
    .word reset + 1
    .byte 'M', 'u', 1
    .byte 3                     /* the version of RP2040 B2's ROM */
    .hword functions, data, lookup + 1

    .macro entry a, b, place
    .byte \a, \b
    .hword \place
    .endm

    .balign 4
functions:
    entry 'P', '3', popcount + 1
    entry 'R', '3', reverse + 1
    entry 'L', '3', clz + 1
    entry 'T', '3', ctz + 1
    entry 'M', 'S', memset + 1
    entry 'S', '4', memset + 1
    entry 'M', 'C', memcpy + 1
    entry 'C', '4', memcpy + 1
    entry 'U', 'B', usb_boot + 1
    entry 'I', 'F', connect_flash + 1
    entry 'E', 'X', exit_xip + 1
    entry 'R', 'E', erase + 1
    entry 'R', 'P', program + 1
    entry 'F', 'C', flush_cache + 1
    entry 'C', 'X', enter_xip + 1
    entry 'W', 'V', wait_for_vector + 1
    .hword 0, 0
data:
    entry 'C', 'R', copyright
    entry 'G', 'R', revision
    entry 'S', 'F', float_table
    entry 'S', 'D', double_table
    entry 'F', 'S', code
    entry 'F', 'E', code_end
    .hword 0, 0
copyright:
    .asciz "weft-rp2040: a boot ROM for emulation"
    .balign 4
revision:
    .word 0

    /* Words of the tables, in the order of the datasheet: natives 0x20 … 0x3f for single, 0x40 … 0x5f for double precision. */
    .macro table first
    .set n, 0
    .rept 32
    .word stubs + 4 * (\first + n) + 1
    .set n, n + 1
    .endr
    .endm
    .balign 4
    .hword 0, 32                /* the number of words, two bytes before the table, where the pico-sdk reads it */
float_table:
    table 0x20
    .hword 0, 32
double_table:
    table 0x40

    .balign 4
code:
/* void *lookup(uint16_t *table, uint32_t code): 0 if the table does not contain the code. */
lookup:
    ldrh r2, [r0]
    cmp r2, #0
    beq 2f
    cmp r2, r1
    beq 1f
    adds r0, #4
    b lookup
1:  ldrh r0, [r0, #2]
    bx lr
2:  movs r0, #0
    bx lr

/* Counts the bits in pairs, nibbles and bytes, and adds up the bytes by a multiplication. */
    .balign 4
popcount:
    ldr r1, =0x55555555
    lsrs r2, r0, #1
    ands r2, r1
    subs r0, r2
    ldr r1, =0x33333333
    lsrs r2, r0, #2
    ands r2, r1
    ands r0, r1
    adds r0, r2
    lsrs r1, r0, #4
    adds r0, r1
    ldr r1, =0x0f0f0f0f
    ands r0, r1
    ldr r1, =0x01010101
    muls r0, r1
    lsrs r0, #24
    bx lr

/* Swaps the bits, pairs and nibbles of each byte, then the bytes. */
    .macro swap mask, by
    ldr r1, =\mask
    lsrs r2, r0, #\by
    ands r2, r1
    ands r0, r1
    lsls r0, #\by
    orrs r0, r2
    .endm
reverse:
    swap 0x55555555, 1
    swap 0x33333333, 2
    swap 0x0f0f0f0f, 4
    rev r0, r0
    bx lr

/* Sets r1 to the number of the highest bit set in r0, which is not 0, by halving. */
    .macro highest
    movs r1, #0
    .irp by, 16, 8, 4, 2, 1
    lsrs r2, r0, #\by
    beq 1f
    mov r0, r2
    adds r1, #\by
1:
    .endr
    .endm
clz:
    cmp r0, #0
    beq none
    highest
    movs r0, #31
    subs r0, r1
    bx lr
ctz:
    rsbs r1, r0, #0
    ands r0, r1                 /* only the lowest bit */
    beq none
    highest
    mov r0, r1
    bx lr
none:
    movs r0, #32
    bx lr

/* uint8_t *memset(uint8_t *to, uint8_t value, uint32_t bytes): whole words from the first aligned address on, four at a time. */
memset:
    push {r0, lr}
    uxtb r1, r1
1:  cmp r2, #0
    beq 9f
    lsls r3, r0, #30
    beq 2f
    strb r1, [r0]
    adds r0, #1
    subs r2, #1
    b 1b
2:  lsls r3, r1, #8
    orrs r1, r3
    lsls r3, r1, #16
    orrs r1, r3
    mov r3, r1
    subs r2, #16
    blo 4f
3:  stmia r0!, {r1, r3}
    stmia r0!, {r1, r3}
    subs r2, #16
    bhs 3b
4:  adds r2, #16
5:  subs r2, #4
    blo 6f
    stmia r0!, {r1}
    b 5b
6:  adds r2, #4
    beq 9f
7:  strb r1, [r0]
    adds r0, #1
    subs r2, #1
    bne 7b
9:  pop {r0, pc}

/* uint8_t *memcpy(uint8_t *to, const uint8_t *from, uint32_t bytes): words if both addresses can be aligned, otherwise bytes. */
memcpy:
    push {r0, r4, r5, r6, r7, lr}
    mov r3, r0
    eors r3, r1
    lsls r3, r3, #30
    bne 6f
1:  cmp r2, #0
    beq 9f
    lsls r3, r0, #30
    beq 2f
    ldrb r3, [r1]
    strb r3, [r0]
    adds r0, #1
    adds r1, #1
    subs r2, #1
    b 1b
2:  subs r2, #16
    blo 4f
3:  ldmia r1!, {r4, r5, r6, r7}
    stmia r0!, {r4, r5, r6, r7}
    subs r2, #16
    bhs 3b
4:  adds r2, #16
5:  subs r2, #4
    blo 8f
    ldmia r1!, {r3}
    stmia r0!, {r3}
    b 5b
8:  adds r2, #4
6:  cmp r2, #0
    beq 9f
7:  ldrb r3, [r1]
    strb r3, [r0]
    adds r0, #1
    adds r1, #1
    subs r2, #1
    bne 7b
9:  pop {r0, r4, r5, r6, r7, pc}

    .pool

/* Natives: `stubs + 4 * n` enters native n and returns. */
    .balign 4
stubs:
    .set n, 0
    .rept 0x60
    udf #n
    bx lr
    .set n, n + 1
    .endr
code_end:

    .set reset, stubs + 4 * 0
    .set wait_for_vector, stubs + 4 * 1
    .set usb_boot, stubs + 4 * 2
    .set connect_flash, stubs + 4 * 3
    .set exit_xip, stubs + 4 * 4
    .set erase, stubs + 4 * 5
    .set program, stubs + 4 * 6
    .set flush_cache, stubs + 4 * 7
    .set enter_xip, stubs + 4 * 8
