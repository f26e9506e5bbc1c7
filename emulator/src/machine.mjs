// @ts-check
/**
 * A whole RP2040: two cores, the package's peripherals around them, and one virtual clock.
 *
 * Invariants
 * - The core with the earlier local time runs next; on a tie they alternate, core 0 first. Only one
 *   instruction runs at a time, so a run depends on nothing but the image and the inputs of the
 *   test bench.
 * - The alarms of a cycle run before the instructions that begin in it. An access takes effect in
 *   the cycle in which its instruction begins.
 * - `clock.cycle` is the time of the instruction or alarm that is acting, and never decreases.
 *
 * start ── load() ──▶ ready ── run() ──▶ running ──▶ ready    ('limit' or 'until')
 *                                          ├───────▶ stopped  ('break' or 'lockup')
 *                                          └───────▶ idle     ('deadlock': both cores sleep, and
 *                                                              nothing is set to wake them)
 */
import { RP2040, Rosc, UnimplementedPeripheralLike } from './package.mjs';
import { Alarm, Clock } from './clock.mjs';
import { AWAKE, Core, HARDFAULT } from './core.mjs';
import { BusFault, FLASH, Memory, SRAM, SRAM_SIZE } from './memory.mjs';
import { Pins } from './pins.mjs';
import { Ppb } from './ppb.mjs';
import { Sio } from './sio.mjs';
import { Timer } from './timer.mjs';
import { Uart } from './uart.mjs';
import { LockstepPio } from './pio.mjs';
import { makeBlocks } from './blocks.mjs';
import { BusModel } from './bus.mjs';
import { EdgeHash } from './analyser.mjs';
import { Power } from './power.mjs';
import { Profile } from './profile.mjs';
import { explainStop, stoodIn } from './stops.mjs';
import { Rom, WAIT_FOR_VECTOR, loadRom } from './rom.mjs';
import { ImageError, hex, parseImage, startOf } from './image.mjs';

/**
 * @typedef {{
 *   conflicts?: boolean | import('./bus.mjs').BusOptions,
 *   uartDelay?: boolean,
 *   alarmNow?: 'miss' | 'fire',
 *   core1Delay?: number,
 *   hz?: number,
 *   runBoot2?: boolean,
 * }} MachineOptions
 *   conflicts: model conflicts of SRAM banks and the XIP cache; uartDelay: characters take their
 *   time on the line; alarmNow: what an alarm for the current microsecond does; core1Delay: cycles
 *   from the last word of the launch handshake to core 1's first instruction (default 40); hz:
 *   clk_sys until the firmware sets it (default 125 MHz); runBoot2: execute the image's boot2
 *   instead of skipping it
 *
 * @typedef {{ reason:
 *   'limit' | 'until' | 'break' | 'lockup' | 'deadlock' | 'stopped' | 'bootsel' | 'watchdog',
 *   cycle: number, core?: number, code?: number, why?: string, failed?: string, at?: number }} Stop
 *   at: the address for `weft-rp2040 explain`, of a bkpt of Weft's runtime; failed: one line that explains why the firmware itself has failed, whatever the bench decides;
 *   absent if it has not failed
 */

/** A place in the program: a symbol's name or an address. @typedef {string | number} Place */

export class Machine {
  /** @param {MachineOptions} [options] */
  constructor(options = {}) {
    this.options = options;
    const clock = (this.clock = new Clock(options.hz ?? 125e6));
    const rp = (this.rp = new RP2040(/** @type {any} */ (clock)));
    this.sio = new Sio(rp, clock);
    this.memory = new Memory(rp, this.sio);
    /** @type {[Core, Core]} */
    this.cores = [new Core(0, clock, this.memory), new Core(1, clock, this.memory)];
    this.ppbs = this.cores.map((core) => new Ppb(core, clock));
    this.timer = new Timer(rp, clock, options.alarmNow ?? 'miss');
    this.pins = new Pins(rp, clock, (core, irq, level) => this.cores[core].setLine(irq, level));
    this.uarts = rp.uart.map((_, n) => new Uart(rp, clock, n, options.uartDelay ?? false));
    const { i2cs, spis, adc } = makeBlocks(rp, clock, this.pins);
    this.i2cs = i2cs;
    this.spis = spis;
    this.adc = adc;
    this.bus = options.conflicts
      ? new BusModel(options.conflicts === true ? {} : options.conflicts, this.memory)
      : null;
    this.edges = new EdgeHash();
    this.power = new Power(this);
    /** @type {import('./image.mjs').Image | null} */
    this.image = null;
    /** How the chip starts the image. @type {import('./image.mjs').Start | null} */
    this.start = null;
    /** @type {Profile | null} */
    this.profile = null;
    /**
     * The faults that did not stop the run.
     * @type {{ cycle: number, core: number, pc: number, why: string }[]}
     */
    this.warnings = [];
    /**
     * @type {((warning: { cycle: number, core: number, pc: number, why: string }) => void) | null}
     */
    this.onWarning = null;
    /** @type {Stop | null} */
    this.stop = null;
    /** The core that ran last: the other core wins a tie. */
    this.current = 1;
    /** @type {Map<number, (core: Core) => boolean | void>} */
    this.breakpoints = new Map();
    /** @type {{ core: number, instruction: number, action: () => void }[]} */
    this.injections = [];
    /** Called before every instruction. @type {((core: Core) => void) | null} */
    this.onInstruction = null;
    /**
     * Called before the boot ROM erases or programs flash, with the new contents of the flash.
     * @type {((change: import('./rom.mjs').FlashChange) => void) | null}
     */
    this.onFlash = null;
    /** The last fault of each core, as text. */
    this.faults = ['', ''];
    /** @type {number[]} the words of core 1's launch handshake so far */
    this.handshake = [];
    this.connect();
  }

  /** Replaces parts of rp2040js by the emulator's own. */
  connect() {
    const { rp, clock, cores } = this;
    const peripherals = /** @type {Record<number, any>} */ (rp.peripherals);
    peripherals[0x40054] = this.timer;
    peripherals[0x40034] = this.uarts[0];
    peripherals[0x40038] = this.uarts[1];
    peripherals[0x40018] = new UnimplementedPeripheralLike(rp, 'IO_QSPI');
    this.power.connect(peripherals[0x40008]);
    peripherals[0x40060] = new Rosc(rp);
    peripherals[0x40064] = new UnimplementedPeripheralLike(rp, 'VREG_AND_CHIP_RESET');
    peripherals[0x40064].registers[0] = 0xb1; // VREG: on, 1.1 V
    this.pios = [0, 1].map((n) => new LockstepPio(rp, clock, n));
    this.pios.forEach((pio, n) => {
      peripherals[n ? 0x50300 : 0x50200] = pio;
      rp.pio[n] = pio;
    });
    this.uarts.forEach((uart, n) => (rp.uart[n] = /** @type {any} */ (uart)));
    rp.setInterrupt = (irq, level) => {
      cores[0].setLine(irq, level);
      cores[1].setLine(irq, level);
    };
    rp.addClockListener((hz) => clock.setFrequency(hz));
    rp.logger = {
      debug: () => {},
      info: () => {},
      warn: (/** @type {string} */ name, /** @type {string} */ message) =>
        this.warn(`${name}: ${message}`),
      error: (/** @type {string} */ name, /** @type {string} */ message) =>
        this.warn(`${name}: ${message}`),
    };
    const watchdog = /** @type {{ onWatchdogTrigger: () => void }} */ (peripherals[0x40058]);
    watchdog.onWatchdogTrigger = () => {
      const why = 'the watchdog resets the chip, which is not emulated';
      this.halt({ reason: 'watchdog', cycle: clock.cycle, why, failed: why });
    };
    loadRom(rp.bootrom);
    const rom = new Rom({
      boot: () => this.boot(),
      waitForVector: () => this.waitForVector(),
      bootLoader: (core) => {
        const failed = 'the firmware asks for the USB boot loader, which is not emulated';
        this.halt({ reason: 'bootsel', cycle: core.t, core: core.id, failed });
      },
      flash: rp.flash,
      cyclesOf: (micros) => Math.ceil((micros * clock.hz) / 1e6),
      flushCache: () => this.bus?.flush(),
      onFlash: (change) => this.onFlash?.(change),
      load8: (address) => cores[0].load8(address),
    });
    this.sio.onLine = (core, irq, level) => cores[core].setLine(irq, level);
    this.pins.watchers.push((pin, level, cycle) => this.edges.edge(pin, level, cycle));
    for (const core of cores) {
      core.ppb = this.ppbs[core.id];
      core.contention = this.bus;
      core.rom = rom;
      core.onSEV = () => {
        cores[0].signalEvent();
        cores[1].signalEvent();
      };
      core.onBreak = (c, code) => {
        const why = `at ${hex(c.pc)}`;
        const failed = this.failureOf(c, code) ?? undefined;
        const at = explainStop(this, c, code)?.at;
        this.halt({
          reason: 'break',
          cycle: c.t,
          core: c.id,
          code,
          why,
          ...(failed && { failed }),
          ...(at !== undefined && { at }),
        });
      };
      core.onFault = (c, why, locked) => {
        this.warn(why);
        this.faults[c.id] = why;
        if (locked)
          this.halt({
            reason: 'lockup',
            cycle: c.t,
            core: c.id,
            why,
            failed: `core ${c.id} locked up: ${why}`,
          });
      };
    }
    if (this.bus) {
      this.bus.attach(cores);
      peripherals[0x14000] = this.bus.xipControl(rp);
    }
    const psm = peripherals[0x40010];
    const write = psm.writeUint32.bind(psm);
    psm.writeUint32 = (/** @type {number} */ offset, /** @type {number} */ value) => {
      const was = psm.frceOff & 0x10000;
      write(offset, value);
      const is = psm.frceOff & 0x10000;
      if (is && !was) this.holdCore1();
      else if (was && !is) this.releaseCore1();
    };
    this.waitForVector();
  }

  /** @param {string} why */
  warn(why) {
    const core = this.cores[this.current];
    const warning = { cycle: this.clock.cycle, core: core.id, pc: core.pc, why };
    this.warnings.push(warning);
    if (this.onWarning) this.onWarning(warning);
  }

  /**
   * Returns the reason why a breakpoint instruction ends the run as a failure, or null. The
   * instruction is a failure if its number is not 0; if it is in an exception handler, such as the
   * pico-sdk's default handlers; or if it is in `_exit` called with a status other than 0 (by
   * panic, abort, assert).
   * @param {Core} core @param {number} code
   */
  failureOf(core, code) {
    if (code !== 0) {
      const known = explainStop(this, core, code);
      return `the firmware stopped with bkpt ${code} on core ${core.id}${known ? `: ${known.sentence}` : ''}`;
    }
    if (core.ipsr === HARDFAULT)
      return `core ${core.id} is in HardFault: ${this.faults[core.id] || 'it was pended'}`;
    if (core.ipsr !== 0) {
      const what = core.ipsr < 16 ? `exception ${core.ipsr}` : `interrupt ${core.ipsr - 16}`;
      return `the firmware stopped with bkpt 0 on core ${core.id} in the handler of ${what} (has it no handler of its own?)`;
    }
    const inside = stoodIn(this, core, '_exit');
    return inside && core.r[0] !== 0
      ? `the firmware called exit(${core.r[0]}) on core ${core.id}`
      : null;
  }

  /**
   * Returns the reason why the run up to a stop counts as failed, in one line; null if the run does
   * not count as failed.
   * @param {Stop} stop
   * @returns {string | null}
   */
  failure(stop) {
    if (stop.failed) return stop.failed;
    const stuck = this.cores.find((core) => core.running && core.ipsr === HARDFAULT);
    if (stuck)
      return `core ${stuck.id} is in HardFault: ${this.faults[stuck.id] || 'it was pended'}`;
    return stop.reason === 'deadlock' ? 'both cores sleep and nothing is set to wake them' : null;
  }

  /** Ends run() after the current instruction. @param {Stop} stop */
  halt(stop) {
    this.stop ??= stop;
  }

  // ---- core 1 and its bootrom (datasheet 2.8.2) ----

  holdCore1() {
    const core = this.cores[1];
    core.running = false;
    core.sleeping = AWAKE;
    this.handshake = [];
    this.sio.words[1] = [];
    this.sio.updateLine(1);
    this.sio.bootrom = () => {};
  }

  /** Core 1 waits in the bootrom and takes words until they form a launch. */
  waitForVector() {
    this.cores[1].running = false;
    this.cores[1].pc = WAIT_FOR_VECTOR;
    this.handshake = [];
    this.sio.bootrom = (word) => this.bootWord(word);
  }

  /** Releases core 1 from reset: the core's bootrom sends 0 and waits. */
  releaseCore1() {
    this.waitForVector();
    this.sio.deliver(0, 0);
    this.cores[0].signalEvent();
  }

  /**
   * Takes one word of the sequence 0, 0, 1, vectors, sp, pc. Each word is echoed; a wrong word
   * starts the sequence again.
   * @param {number} word
   */
  bootWord(word) {
    const words = this.handshake;
    const expected = words.length < 2 ? 0 : words.length === 2 ? 1 : null;
    if (expected !== null && word !== expected) this.handshake = word === 0 ? [0] : [];
    else words.push(word);
    this.sio.deliver(0, word);
    this.cores[0].signalEvent();
    if (this.handshake.length < 6) return;
    const [, , , vectors, sp, pc] = this.handshake;
    this.handshake = [];
    this.sio.bootrom = null;
    const core = this.cores[1];
    core.reset();
    this.ppbs[1].reset();
    core.vtor = vectors >>> 0;
    core.r[13] = sp & ~3;
    core.pc = (pc & ~1) >>> 0;
    core.r[14] = WAIT_FOR_VECTOR | 1;
    core.t = this.cores[0].t + (this.options.core1Delay ?? 40);
    core.running = true;
  }

  // ---- loading ----

  /**
   * Loads a UF2, ELF or raw image and resets the chip to its start.
   * @param {Uint8Array | import('./image.mjs').Image} image
   * @param {{ base?: number, name?: string }} [options] base: the address of a raw binary
   */
  load(image, { base, name } = {}) {
    const parsed = image instanceof Uint8Array ? parseImage(image, base, name) : image;
    this.start = startOf(parsed);
    this.image = parsed;
    for (const { address, bytes } of parsed.segments) this.write(address, bytes);
    this.boot();
    return this;
  }

  /** Takes core 0 from its reset to the image's first instruction in zero time. */
  boot() {
    const start = this.start;
    if (start === null) throw new ImageError('load an image before starting it');
    const core = this.cores[0];
    core.reset();
    core.running = true;
    if (start.how === 'entry') {
      core.pc = start.pc;
      core.r[13] = SRAM + SRAM_SIZE;
    } else if (start.boot2 && this.options.runBoot2) {
      // The bootrom copies boot2 to the top of scratch Y and calls it there with LR 0; the stack is
      // below (datasheet 2.8.1.3).
      this.write(0x20041f00, this.read(FLASH, 252));
      core.pc = 0x20041f00;
      core.r[13] = 0x20041f00;
      core.r[14] = 0;
    } else {
      core.vtor = start.vectors;
      core.r[13] = core.load32(start.vectors) & ~3;
      core.pc = (core.load32(start.vectors + 4) & ~1) >>> 0;
    }
  }

  // ---- running ----

  /** Current time in cycles. */
  get cycle() {
    return this.clock.cycle;
  }

  /** Current time in microseconds since the start. */
  get micros() {
    return this.clock.nanos / 1000;
  }

  /**
   * Runs until a cycle, a condition or a stop. The condition is checked after every instruction,
   * which is slow: pass a condition only when it is needed.
   * @param {number} [limit] the absolute cycle at which to return
   * @param {() => boolean} [until]
   * @returns {Stop}
   */
  run(limit = Infinity, until) {
    this.stop = null;
    if (limit === Infinity && !until && this.breakpoints.size === 0) limit = this.cycle + 1e12;
    const [core0, core1] = this.cores;
    const clock = this.clock;
    for (;;) {
      const hooked =
        until !== undefined ||
        this.breakpoints.size > 0 ||
        this.injections.length > 0 ||
        this.onInstruction !== null;
      const awake0 = core0.running && core0.sleeping === AWAKE;
      const awake1 = core1.running && core1.sleeping === AWAKE;
      let core;
      if (awake0 && awake1)
        core = core0.t < core1.t || (core0.t === core1.t && this.current === 1) ? core0 : core1;
      else if (awake0) core = core0;
      else if (awake1) core = core1;
      else {
        if (clock.next > limit) {
          if (clock.next === Infinity) return { reason: 'deadlock', cycle: clock.cycle };
          this.power.asleepUntil(limit);
          clock.cycle = limit;
          return { reason: 'limit', cycle: limit };
        }
        if (clock.next === Infinity) return { reason: 'deadlock', cycle: clock.cycle };
        this.power.asleepUntil(clock.next);
        clock.runNext();
        if (this.stop) return this.stop;
        if (until && until()) return { reason: 'until', cycle: clock.cycle };
        continue;
      }
      if (clock.next <= core.t) {
        if (clock.next > limit) return { reason: 'limit', cycle: clock.cycle };
        clock.runNext();
        if (this.stop) return this.stop;
        if (until && until()) return { reason: 'until', cycle: clock.cycle };
        continue;
      }
      if (core.t >= limit) {
        if (clock.cycle < limit) clock.cycle = limit;
        return { reason: 'limit', cycle: limit };
      }
      clock.cycle = core.t;
      this.current = core.id;
      if (hooked && this.beforeInstruction(core)) return /** @type {any} */ (this.stop);
      const profile = this.profile;
      if (profile === null) core.t += core.step();
      else {
        const pc = core.pc;
        const exceptions = core.exceptions;
        const cycles = core.step();
        core.t += cycles;
        profile.add(core, pc, cycles, core.exceptions !== exceptions);
      }
      if (this.stop) return this.stop;
      if (until && until()) return { reason: 'until', cycle: clock.cycle };
    }
  }

  /** @param {Core} core @returns {boolean} whether to stop before the instruction */
  beforeInstruction(core) {
    for (let i = 0; i < this.injections.length; i++) {
      const injection = this.injections[i];
      if (injection.core !== core.id || core.instructions < injection.instruction) continue;
      this.injections.splice(i--, 1);
      injection.action();
    }
    if (this.onInstruction) this.onInstruction(core);
    const breakpoint = this.breakpoints.get(core.pc);
    if (breakpoint && breakpoint(core) !== false)
      this.halt({ reason: 'stopped', cycle: core.t, core: core.id });
    return this.stop !== null;
  }

  /** Runs for some cycles from now. @param {number} cycles @returns {Stop} */
  runFor(cycles) {
    return this.run(this.cycle + cycles);
  }

  /** Runs for some microseconds from now. @param {number} micros @returns {Stop} */
  runMicros(micros) {
    return this.run(this.clock.cycleOf(this.clock.nanos + micros * 1000));
  }

  /** Runs one instruction of the core that is next. @returns {Stop} */
  step() {
    const before = this.cores[0].instructions + this.cores[1].instructions;
    return this.run(
      Infinity,
      () => this.cores[0].instructions + this.cores[1].instructions !== before,
    );
  }

  /**
   * Runs until an instruction at `place` is about to execute.
   * @param {Place} place @param {number} [limit] cycle @param {number} [core] only on this core
   * @returns {Stop} reason 'stopped' when reached
   */
  runTo(place, limit = Infinity, core) {
    const address = this.address(place);
    const old = this.breakpoints.get(address);
    const at = this.cores.map((c) => c.pc === address && c.running);
    const counts = this.cores.map((c) => c.instructions);
    this.breakpoints.set(address, (c) => {
      // A core that is already at the place when the run begins does not count as having reached
      // the place.
      if (at[c.id] && c.instructions === counts[c.id]) return false;
      return core === undefined || c.id === core;
    });
    try {
      return this.run(limit);
    } finally {
      if (old) this.breakpoints.set(address, old);
      else this.breakpoints.delete(address);
    }
  }

  // ---- test benches ----

  /**
   * Calls `action` in an exact cycle, before the instructions that begin in it; returns a function
   * that cancels it.
   * @param {number} cycle @param {() => void} action @returns {() => void}
   */
  at(cycle, action) {
    const alarm = new Alarm(this.clock, action);
    alarm.scheduleAt(cycle);
    return () => alarm.cancel();
  }

  /** Like at(), some microseconds from now. @param {number} micros @param {() => void} action */
  after(micros, action) {
    return this.at(this.clock.cycleOf(this.clock.nanos + micros * 1000), action);
  }

  /**
   * Drives a pad from outside; null stops driving it.
   * @param {number} pin
   * @param {0 | 1 | null} level
   */
  drive(pin, level) {
    this.pins.drive(pin, level);
  }

  /** @param {number} pin @returns {0 | 1} */
  level(pin) {
    return this.pins.level(pin);
  }

  /**
   * Watches one pad, or all pads with `pin` null; returns a function that ends the watch.
   * @param {number | null} pin @param {import('./pins.mjs').PinWatcher} watcher
   */
  watch(pin, watcher) {
    /** @type {import('./pins.mjs').PinWatcher} */
    const call =
      pin === null ? watcher : (n, level, cycle) => void (n === pin && watcher(n, level, cycle));
    this.pins.watchers.push(call);
    return () => {
      const at = this.pins.watchers.indexOf(call);
      if (at >= 0) this.pins.watchers.splice(at, 1);
    };
  }

  /**
   * Stops run() before `place` executes; if the action returns false, the run continues.
   * @param {Place} place
   * @param {(core: Core) => boolean | void} [action]
   */
  breakpoint(place, action = () => true) {
    const address = this.address(place);
    this.breakpoints.set(address, action);
    return () => void this.breakpoints.delete(address);
  }

  /**
   * Pends an interrupt just before a core executes its instruction number `instruction`, counted
   * from the core's start (the first is 0).
   * @param {number} core @param {number} instruction @param {number} irq 0-31
   */
  injectInterrupt(core, instruction, irq) {
    this.inject(core, instruction, () => this.cores[core].pend(1 << irq));
  }

  /**
   * Like injectInterrupt(), but runs an action.
   * @param {number} core
   * @param {number} instruction
   * @param {() => void} action
   */
  inject(core, instruction, action) {
    this.injections.push({ core, instruction, action });
  }

  /** Address of a symbol (or the number itself). @param {Place} place @returns {number} */
  address(place) {
    if (typeof place === 'number') return place;
    const symbol = this.image?.symbols.find((s) => s.name === place);
    if (!symbol)
      throw new RangeError(
        `no symbol '${place}' in the image: load the ELF, and mind static functions that were inlined`,
      );
    return symbol.address;
  }

  /**
   * Reads memory without side effects on timing.
   * @param {Place} place
   * @param {number} length
   * @returns {Uint8Array}
   */
  read(place, length) {
    const [memory, offset] = this.storage(this.address(place), length);
    return memory.slice(offset, offset + length);
  }

  /** @param {Place} place @param {Uint8Array} bytes */
  write(place, bytes) {
    const [memory, offset] = this.storage(this.address(place), bytes.length);
    memory.set(bytes, offset);
  }

  /** @param {Place} place @returns {number} unsigned */
  read32(place) {
    const bytes = this.read(place, 4);
    return new DataView(bytes.buffer).getUint32(0, true);
  }

  /** @param {Place} place @param {number} value */
  write32(place, value) {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, value >>> 0, true);
    this.write(place, bytes);
  }

  /** @param {number} address @param {number} length @returns {[Uint8Array, number]} */
  storage(address, length) {
    const canonical = this.memory.canonical(address);
    if (canonical >= SRAM && canonical + length <= SRAM + SRAM_SIZE) {
      if (address !== canonical && length > 4)
        throw new RangeError('bulk access through the non-striped alias: go word by word');
      return [this.rp.sram, canonical - SRAM];
    }
    if (canonical >= FLASH && canonical + length <= FLASH + this.rp.flash.length)
      return [this.rp.flash, canonical - FLASH];
    throw new RangeError(`0x${address.toString(16)} is not in SRAM or flash`);
  }

  /** Sends bytes to a UART's receiver. @param {string | Uint8Array} bytes @param {number} [uart] */
  feed(bytes, uart = 0) {
    for (const byte of typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
      this.uarts[uart].receive(byte);
  }

  /**
   * Calls `listener` with each byte that a UART has sent.
   * @param {(byte: number, cycle: number) => void} listener
   * @param {number} [uart]
   */
  onUart(listener, uart = 0) {
    this.uarts[uart].listeners.push(listener);
  }

  /** Starts counting cycles by address; see profile.mjs. @returns {Profile} */
  startProfile() {
    if (!this.image) throw new ImageError('load an image before profiling it');
    this.profile = new Profile(this.memory);
    return this.profile;
  }

  /** Returns figures of the run so far. */
  statistics() {
    return {
      cycles: this.cycle,
      micros: this.micros,
      hz: this.clock.hz,
      edges: this.edges.count,
      edgeHash: this.edges.digest,
      warnings: this.warnings.length,
      cores: this.cores.map((core) => ({
        started: core.running || core.instructions > 0,
        instructions: core.instructions,
        cycles: core.t,
        sleepCycles:
          core.sleepCycles + (core.sleeping && this.cycle > core.t ? this.cycle - core.t : 0),
        stallCycles: core.stallCycles,
        exceptions: core.exceptions,
        pc: core.pc,
      })),
      power: this.power.times,
      xip: this.bus ? { hits: this.bus.hits, misses: this.bus.misses } : null,
    };
  }
}

export { BusFault };
