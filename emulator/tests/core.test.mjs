// @ts-check
/**
 * Tests the core against the ARMv6-M Architecture Reference Manual (ARM DDI 0419) and the
 * Cortex-M0+ TRM (DDI 0484).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assembler, between, boot, finish, reach } from './bench.mjs';
import { ENTRY_CYCLES, EXIT_CYCLES } from '../src/index.mjs';

const PEND = (/** @type {number} */ irq) => `NVIC_ISPR = 1u << ${irq};`;

test('WFE with the event register set clears it and continues; a second WFE sleeps (ARMv6-M B1.5.18)', () => {
  const m = boot(
    assembler(
      'code',
      'sev\nwfe\n.global after_first\nafter_first: nop\nwfe\n.global after_second\nafter_second: bkpt 0',
    ) + 'int main(void){ code(); return 0; }',
  );
  reach(m, 'after_first');
  const stop = m.run(m.cycle + 10000);
  assert.equal(stop.reason, 'deadlock');
  assert.equal(m.cores[0].sleeping, 2);
  assert.equal(m.cores[0].pc, m.address('after_second'));
});

test('SEV sets the event register of both cores (ARMv6-M B1.5.18, RP2040 2.4.3.8)', () => {
  const m = boot(`
    volatile uint32_t woke;
    static void core1(void) { for (;;) { wfe(); woke++; } }
    int main(void) { start_core1(core1, 0x20041000); for (volatile int i = 0; i < 100; i++) {} uint32_t before = woke; sev(); wfe(); for (volatile int i = 0; i < 100; i++) {} check(woke == before + 1); return 0; }`);
  assert.equal(finish(m), 0);
});

test('exception entry and return set the event register (ARMv6-M B1.5.18)', () => {
  const m = boot(`
    void timer0(void) {}
    int main(void) { sev(); wfe(); NVIC_ISER = 1; ${PEND(0)} __asm volatile("nop\\nnop"); wfe(); return 0; }`);
  assert.equal(finish(m), 0);
});

test('SEVONPEND: a pending but disabled interrupt ends WFE; without SEVONPEND the core stays asleep (ARMv6-M B3.2.7)', () => {
  const source = (/** @type {number} */ scr) =>
    `int main(void) { SCR = ${scr}; sev(); wfe(); wfe(); return 0; }`;
  const awake = boot(source(16));
  awake.at(5000, () => awake.cores[0].setLine(5, true));
  assert.equal(finish(awake), 0);
  assert.ok(awake.cores[0].t >= 5000 && awake.cores[0].t < 5100);
  const asleep = boot(source(0));
  asleep.at(5000, () => asleep.cores[0].setLine(5, true));
  assert.equal(asleep.run(100000).reason, 'deadlock');
});

test('SEVONPEND counts only a transition to pending, not an interrupt that stays pending (ARMv6-M B3.2.7)', () => {
  const m = boot(`int main(void) { SCR = 16; ${PEND(5)} wfe(); ${PEND(5)} wfe(); return 0; }`);
  assert.equal(m.run(100000).reason, 'deadlock');
});

test('WFI under PRIMASK wakes on an enabled interrupt without taking it (ARMv6-M B1.5.19)', () => {
  const m = boot(`
    volatile uint32_t taken, order;
    void timer1(void) { taken = 1; REG(0xe000e280) = 2; }
    int main(void) { NVIC_ISER = 2; mask(); wfi(); order = taken; unmask(); __asm volatile("nop"); check(taken == 1 && order == 0); return 0; }`);
  m.at(4000, () => m.cores[0].pend(2));
  assert.equal(finish(m), 0);
  assert.ok(m.cores[0].sleepCycles > 3000);
});

test('WFE under PRIMASK is not woken by an enabled interrupt (ARMv6-M B1.5.18)', () => {
  const m = boot('int main(void) { NVIC_ISER = 2; mask(); sev(); wfe(); wfe(); return 0; }');
  m.at(4000, () => m.cores[0].pend(2));
  assert.equal(m.run(100000).reason, 'deadlock');
});

test('WFI is not woken by a disabled interrupt or by an event (ARMv6-M B1.5.19)', () => {
  const m = boot('int main(void) { wfi(); return 0; }');
  m.at(4000, () => m.cores[0].pend(2));
  m.at(5000, () => m.cores[0].signalEvent());
  assert.equal(m.run(100000).reason, 'deadlock');
});

test('WFI in a handler is not woken by an interrupt of the same priority (ARMv6-M B1.5.19)', () => {
  const m = boot(
    `void timer0(void) { wfi(); __asm("bkpt 3"); } void timer1(void) {} int main(void) { NVIC_ISER = 3; ${PEND(0)} return 0; }`,
  );
  m.at(4000, () => m.cores[0].pend(2));
  assert.equal(m.run(100000).reason, 'deadlock');
});

test('the NVIC latches a level that falls before its handler runs (ARMv6-M B3.4.1)', () => {
  const m = boot(`
    volatile uint32_t taken;
    void timer1(void) { taken++; }
    int main(void) { NVIC_ISER = 2; mask(); wfi(); for (volatile int i = 0; i < 50; i++) {} unmask(); __asm volatile("nop"); check(taken == 1); return 0; }`);
  m.at(3000, () => m.cores[0].setLine(1, true));
  m.at(3100, () => m.cores[0].setLine(1, false));
  assert.equal(finish(m), 0);
});

test('a level still high at the return from its handler is pending again (ARMv6-M B3.4.1)', () => {
  const m = boot(`
    volatile uint32_t taken;
    void timer1(void) { if (++taken == 3) NVIC_ICER = 2; }
    int main(void) { NVIC_ISER = 2; while (taken < 3) {} return 0; }`);
  m.at(3000, () => m.cores[0].setLine(1, true));
  assert.equal(finish(m), 0);
  assert.equal(m.read32('taken'), 3);
});

test('ICPR clears a latched pulse but not a line that is still high (ARMv6-M B3.4.6)', () => {
  const m = boot(
    'volatile uint32_t pulse, level; int main(void) { wfe(); NVIC_ICPR = 2; pulse = NVIC_ISPR; wfe(); wfe(); NVIC_ICPR = 2; level = NVIC_ISPR; return 0; }',
  );
  m.at(3000, () => {
    m.cores[0].setLine(1, true);
    m.cores[0].setLine(1, false);
    m.cores[0].signalEvent();
  });
  m.at(4000, () => {
    m.cores[0].setLine(1, true);
    m.cores[0].signalEvent();
  });
  m.at(5000, () => m.cores[0].signalEvent());
  assert.equal(finish(m), 0);
  assert.equal(m.read32('pulse'), 0);
  assert.equal(m.read32('level'), 2);
});

test(`an interrupt reaches its handler after ${ENTRY_CYCLES} cycles and its return costs ${EXIT_CYCLES} more (Cortex-M0+ TRM 1.1)`, () => {
  const m = boot(
    assembler('timer0', 'bx lr') +
      assembler(
        'code',
        'ldr r0, =0xe000e200\nmovs r1, #1\nnop\nnop\n.global pending\npending: str r1, [r0]\n.global back\nback: nop\nbx lr',
      ) +
      'int main(void) { NVIC_ISER = 1; code(); return 0; }',
  );
  reach(m, 'pending');
  const began = m.cores[0].t;
  reach(m, 'timer0');
  assert.equal(m.cores[0].t - began, 2 + ENTRY_CYCLES);
  const entered = m.cores[0].t;
  reach(m, 'back');
  assert.equal(m.cores[0].t - entered, 2 + EXIT_CYCLES);
});

test('the lower priority number runs first, then the lower interrupt number (ARMv6-M B1.5.4)', () => {
  const m = boot(`
    volatile uint32_t order;
    void timer0(void) { order = order * 10 + 1; }
    void timer1(void) { order = order * 10 + 2; }
    void io_bank0(void) { order = order * 10 + 3; }
    int main(void) { REG(0xe000e400) = 0xc0c0; NVIC_ISER = 0x2003; mask(); NVIC_ISPR = 0x2003; unmask(); __asm volatile("nop"); return 0; }`);
  assert.equal(finish(m), 0);
  assert.equal(m.read32('order'), 312);
});

test('a higher priority preempts a handler and an equal one does not (ARMv6-M B1.5.4)', () => {
  const m = boot(`
    volatile uint32_t order;
    void timer0(void) { order = order * 10 + 1; NVIC_ISPR = 0x2002; __asm volatile("nop"); order = order * 10 + 2; }
    void timer1(void) { order = order * 10 + 3; }
    void io_bank0(void) { order = order * 10 + 4; }
    int main(void) { REG(0xe000e400) = 0x4040; NVIC_ISER = 0x2003; NVIC_ISPR = 1; __asm volatile("nop"); return 0; }`);
  assert.equal(finish(m), 0);
  assert.equal(m.read32('order'), 1423);
});

test('SVC, PendSV and their priorities (ARMv6-M B1.5.2, B3.2.4)', () => {
  const m = boot(`
    volatile uint32_t order;
    void svcall(void) { order = order * 10 + 1; REG(0xe000ed04) = 1u << 28; order = order * 10 + 2; }
    void pendsv(void) { order = order * 10 + 3; }
    int main(void) { REG(0xe000ed20) = 3u << 22; __asm volatile("svc 0\\nnop"); return 0; }`);
  assert.equal(finish(m), 0);
  assert.equal(m.read32('order'), 123);
});

test('the frame: r0-r3, r12, lr, return address, xPSR on an 8-byte boundary (ARMv6-M B1.5.6)', () => {
  const m = boot(
    assembler('timer0', 'mov r0, sp\nldr r1, =frame\nstr r0, [r1]\nbkpt 0') +
      'volatile uint32_t frame;' +
      assembler(
        'code',
        'sub sp, #4\nmovs r0, #10\nmovs r1, #11\nmovs r2, #12\nmovs r3, #13\nldr r4, =0xe000e200\nmovs r5, #1\n.global at\nat: str r5, [r4]\n.global back\nback: nop',
      ) +
      'int main(void) { NVIC_ISER = 1; code(); return 0; }',
  );
  reach(m, 'at');
  const sp = m.cores[0].r[13];
  assert.equal(finish(m), 0);
  const frame = m.read32('frame');
  assert.equal(frame % 8, 0);
  assert.equal(frame, ((sp - 32) & ~4) >>> 0);
  assert.deepEqual(
    [0, 1, 2, 3].map((i) => m.read32(frame + 4 * i)),
    [10, 11, 12, 13],
  );
  assert.equal(m.read32(frame + 24), m.address('back'));
  assert.equal((m.read32(frame + 28) >>> 9) & 1, (sp >>> 2) & 1);
});

test('SysTick counts RELOAD + 1 cycles, sets COUNTFLAG and wakes WFE (ARMv6-M B3.3)', () => {
  const m = boot(`
    volatile uint32_t ticks;
    void systick(void) { ticks++; }
    int main(void) { REG(0xe000e014) = 999; REG(0xe000e018) = 0; REG(0xe000e010) = 7; while (ticks < 5) wfe(); return 0; }`);
  /** @type {number[]} */
  const entries = [];
  m.cores[0].onException = (core, exception, entry) =>
    void (entry && exception === 15 && entries.push(core.t));
  assert.equal(finish(m), 0);
  assert.deepEqual(
    entries.slice(1).map((t, i) => t - entries[i]),
    [1000, 1000, 1000, 1000],
  );
});

test('SysTick reads: the value counts down and a write clears it and COUNTFLAG (ARMv6-M B3.3.5)', () => {
  const m = boot(`
    volatile uint32_t a, b, flag, cleared;
    int main(void) { REG(0xe000e014) = 99; REG(0xe000e018) = 5; REG(0xe000e010) = 5;
      a = REG(0xe000e018); b = REG(0xe000e018); for (volatile int i = 0; i < 50; i++) {} flag = REG(0xe000e010); cleared = REG(0xe000e010); return 0; }`);
  assert.equal(finish(m), 0);
  assert.ok(m.read32('a') > m.read32('b'));
  assert.equal(m.read32('flag') >>> 16, 1);
  assert.ok(m.read32('a') < 100);
});

test('an unaligned access, an unmapped address and an undefined instruction each take HardFault (ARMv6-M B1.5.6, A3.2.1)', () => {
  for (const bad of [
    '__asm volatile("str %0, [%0]" ::"l"(0x20000001));',
    '(void)*(volatile uint32_t *)0x30000000;',
    '__asm volatile("udf 0");',
    '((void (*)(void))0x40000001)();',
    '((void (*)(void))1)();',
    '*(volatile uint32_t *)0x10000000 = 1;',
  ]) {
    const m = boot(
      `void hardfault(void) { __asm volatile("bkpt 7"); } int main(void) { ${bad} return 0; }`,
    );
    assert.equal(finish(m), 7, bad);
    assert.equal(m.warnings.length, 1, bad);
  }
});

test('a fault inside HardFault locks the core up and ends the run (ARMv6-M B1.5.14)', () => {
  const m = boot(
    'void hardfault(void) { __asm volatile("str %0, [%0]" ::"l"(0x20000001)); } int main(void) { __asm volatile("udf 0"); return 0; }',
  );
  const stop = m.run(1e6);
  assert.equal(stop.reason, 'lockup');
  assert.match(String(stop.why), /unaligned word write at 0x20000001/);
});

test('cycle counts of the instruction set (Cortex-M0+ TRM table 3-1; RP2040 2.1.3, 2.3.1)', () => {
  /** @type {[string, number][]} */
  const rows = [
    ['nop', 1],
    ['movs r1, #1', 1],
    ['muls r1, r2, r1', 1],
    ['adds r1, r1, r2', 1],
    ['ldr r1, [r4]', 2],
    ['str r1, [r4]', 2],
    ['ldrb r1, [r4]', 2],
    ['ldmia r4!, {r1, r2, r3}', 4],
    ['stmia r4!, {r1, r2, r3}', 4],
    ['push {r1, r2, lr}', 4],
    ['push {r1}', 2],
    ['sub sp, #8', 1],
    ['b 1f\n1:', 2],
    ['beq 1f\n1:', 1],
    ['bne 1f\n1:', 2],
    ['mrs r1, primask', 3],
    ['msr apsr_nzcvq, r1', 3],
    ['dmb', 3],
    ['isb', 3],
    ['cpsid i', 1],
    ['cpsie i', 1],
    ['ldr r1, [r5]', 1],
    ['str r1, [r5, #0x14]', 1],
    ['ldr r1, [r6]', 4],
    ['str r1, [r6, #0x34]', 5],
    ['bl 1f\n1:', 3],
    ['sev', 1],
  ];
  for (const [line, cycles] of rows) {
    const m = boot(
      assembler(
        'code',
        `push {r4, r5, r6, r7, lr}\nldr r4, =0x20010000\nldr r5, =0xd0000000\nldr r6, =0x40054000\nmovs r1, #1\n.global from\nfrom: ${line}\n.global to\nto: bkpt 0`,
      ) + 'int main(void) { code(); return 0; }',
    );
    assert.equal(between(m, 'from', 'to'), cycles, line);
  }
});

test('POP with the PC takes 3 + N cycles, BX and BLX 2 (Cortex-M0+ TRM table 3-1)', () => {
  const m = boot(
    assembler('leaf', 'bx lr') +
      assembler(
        'code',
        'push {r4, lr}\nldr r4, =leaf\n.global call\ncall: blx r4\n.global back\nback: nop\n.global out\nout: pop {r4, pc}',
      ) +
      'int main(void) { code(); __asm volatile(".global home\\nhome: nop"); return 0; }',
  );
  assert.equal(between(m, 'call', 'leaf'), 2);
  reach(m, 'back');
  reach(m, 'out');
  const began = m.cores[0].t;
  m.step();
  assert.equal(m.cores[0].t - began, 5);
});

test('SLEEPONEXIT: the return to thread mode sleeps instead (ARMv6-M B1.5.20)', () => {
  const m = boot(
    `volatile uint32_t n; void timer0(void) { n++; } int main(void) { SCR = 2; NVIC_ISER = 1; NVIC_ISPR = 1; __asm volatile("nop"); return 0; }`,
  );
  m.at(9000, () => m.cores[0].pend(1));
  assert.equal(m.run(100000).reason, 'deadlock');
  assert.equal(m.read32('n'), 2);
});

test('an injected interrupt is taken exactly at the requested instruction, whichever it is', () => {
  const source = `volatile uint32_t x; void timer1(void) { x += 100; } int main(void) { NVIC_ISER = 2; for (int i = 0; i < 5; i++) x++; return 0; }`;
  const plain = boot(source);
  finish(plain);
  const total = plain.cores[0].instructions;
  let takenAnywhere = 0;
  for (let n = 0; n < total; n++) {
    const m = boot(source);
    m.injectInterrupt(0, n, 1);
    finish(m);
    if (m.cores[0].exceptions) {
      takenAnywhere++;
      const x = m.read32('x');
      assert.ok(x === 105 || (x >= 1 && x <= 5) || x === 0, `after instruction ${n}: ${x}`);
    }
  }
  assert.ok(takenAnywhere > 20);
});
