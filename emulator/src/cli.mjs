// @ts-check
/**
 * The command weft-rp2040.
 *
 * Invariants
 * - Every error is one line on stderr. Exit codes: 0 done, 1 the firmware failed, 2 bad usage or
 *   image, 130 interrupted.
 * - The trace is a complete file however the run ends. UART text goes to stdout, messages about the
 *   run go to stderr. With --json the last line of stdout is one JSON object.
 */
import { readFileSync, writeSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { VcdWriter } from './analyser.mjs';
import { Cable, Pace } from './bridge.mjs';
import { lookUp, unknown } from './codes.mjs';
import { explain, explainArguments, whereIs } from './explain.mjs';
import { ImageError, elfSymbols, hex, parseImage, startOf } from './image.mjs';
import { LogReader, logTexts } from './log.mjs';
import { Machine } from './machine.mjs';

const HELP = `weft-rp2040: run firmware on an emulated dual-core RP2040

usage: weft-rp2040 run IMAGE [options]     IMAGE is .uf2, .elf or a raw binary
       weft-rp2040 gdb IMAGE [options]     waits for gdb: target remote :3333
       weft-rp2040 info IMAGE              what is in the image
       weft-rp2040 explain CODE [ELF]      what a code of a release build means: WEFT_E_QUEUED, -1, 'bkpt 77'
       weft-rp2040 log ELF [FROM]          the log of a board: FROM is a serial line, a file, a Unix socket, or '-'
       weft-rp2040 help

when to stop
  --max-cycles N       after N cycles of clk_sys (default 125e6, one second)
  --max-us N           after N microseconds
  --until-uart TEXT    when TEXT has appeared on UART 0; not appearing is a failure
  --until-stdin        when standard input ends, so that the run ends with the program that has started it
  --until PLACE        when this function (or 0x address) is reached; not reaching it is a failure
  A bkpt instruction also ends the run: 'bkpt 0' is success, any other number a failure.

what to see
  --trace FILE.vcd     logic analyser on the GPIO pads
  --pins 2,3,25        pads in the trace (default all)
  --uart FILE          UART 0 to a file; '-' is stdout (default)
  --uart1 FILE         UART 1 likewise (default: not shown)
  --no-uart            show no UART
  --uart-socket PATH   UART 0 on a Unix socket, for a program at the other end of the line; the run keeps to the wall's
                       clock and has no limit of its own
  --uart1-socket PATH  UART 1 likewise
  --log                what the firmware logs (mcu/LOG.md) in place of the bytes of UART 0
  --profile            cycles by function, to stderr
  --json               the figures of the run as one JSON object on stdout
  --quiet              no summary, no warnings

how to model
  --conflicts          SRAM bank and XIP cache conflicts
  --uart-delay         characters take their time on the wire
  --alarm-now MODE     an alarm set to the current microsecond: miss (default) or fire
  --core1-delay N      cycles from launch handshake to core 1's first instruction (default 40)
  --boot2              execute the image's boot2 instead of skipping it
  --input TEXT         send TEXT to UART 0 at the start (\\n, \\r, \\t understood)
  --base ADDRESS       where a raw binary is loaded (default 0x20000000)

for gdb
  --port N             on 127.0.0.1 (default 3333; 0 for any that is free, which is printed)
  What to see and how to model are as for run; when to stop is gdb's. Cores are threads 1 and 2.

for explain
  --at ADDRESS         also the function and line of this address of the ELF: pc or lr, as a debugger or run shows them
  --json               as one JSON object

exit status: 0 done, 1 the firmware failed, 2 bad usage or image, 130 interrupted
`;

class UsageError extends Error {}

/**
 * @param {string | undefined} text
 * @param {string} option
 * @param {number} fallback
 * @returns {number}
 */
function number(text, option, fallback) {
  if (text === undefined) return fallback;
  const value = Number(text.replaceAll('_', ''));
  if (!Number.isFinite(value) || value < 0 || text.trim() === '')
    throw new UsageError(`${option} wants a number, not '${text}'`);
  return value;
}

/** @param {string} path */
function readImage(path) {
  try {
    return new Uint8Array(readFileSync(path));
  } catch (error) {
    throw new ImageError(
      `cannot read it: ${/** @type {NodeJS.ErrnoException} */ (error).code ?? error}`,
    );
  }
}

/**
 * Writes all of `data` before it returns, because the process may be killed next.
 * @param {number} fd
 * @param {string | Uint8Array} data
 */
function put(fd, data) {
  let rest = typeof data === 'string' ? Buffer.from(data) : Buffer.from(data);
  while (rest.length) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const code = /** @type {NodeJS.ErrnoException} */ (error).code;
      if (code === 'EPIPE') return;
      if (code !== 'EAGAIN') throw error;
    }
  }
}

/**
 * Explains a code. A bad ELF is an ImageError, whose message `about` begins with the file's name.
 * @param {string[]} args those after the command's name
 * @param {(path: string) => void} about
 * @returns {number}
 */
function explainCode(args, about) {
  const { code, elf, at, json, help, extra } = explainArguments(args);
  if (help) {
    put(1, HELP);
    return 0;
  }
  if (!code) throw new UsageError("explain wants a CODE, such as WEFT_E_QUEUED, -1 or 'bkpt 77'");
  if (extra.length) throw new UsageError(`too many arguments: ${extra.join(' ')}`);
  if (!lookUp(code).length) throw new UsageError(unknown(code));
  if (at !== undefined && elf === undefined)
    throw new UsageError('--at wants the ELF too, in which the function and line are');
  const address = number(at, '--at', 0);
  if (!Number.isInteger(address) || address >= 2 ** 32)
    throw new UsageError(`--at wants an address of 32 bits, not '${at}'`);
  let where = null;
  if (elf !== undefined) {
    about(elf);
    const data = readImage(elf);
    if (at === undefined)
      elfSymbols(data); // Throws if the file is not an ELF.
    else where = whereIs(data, elf, address);
  }
  put(1, explain(code, where, json));
  if (elf !== undefined && at === undefined)
    put(
      2,
      'weft-rp2040: with --at ADDRESS (pc, or lr in weft_panic) function and line are shown\n',
    );
  return 0;
}

/** @param {string[]} argv @returns {Promise<number>} exit status */
export async function main(argv) {
  let subject = '';
  try {
    // This command reads its arguments itself, because a code may be a negative number.
    const first = argv.findIndex((arg) => arg !== '--json');
    if (argv[first] === 'explain')
      return explainCode(
        [...argv.slice(0, first), ...argv.slice(first + 1)],
        (path) => (subject = `${path}: `),
      );
    const { values, positionals } = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        'max-cycles': { type: 'string' },
        'max-us': { type: 'string' },
        'until-uart': { type: 'string' },
        until: { type: 'string' },
        'until-stdin': { type: 'boolean' },
        trace: { type: 'string' },
        pins: { type: 'string' },
        uart: { type: 'string' },
        uart1: { type: 'string' },
        'no-uart': { type: 'boolean' },
        'uart-socket': { type: 'string' },
        'uart1-socket': { type: 'string' },
        log: { type: 'boolean' },
        profile: { type: 'boolean' },
        json: { type: 'boolean' },
        quiet: { type: 'boolean' },
        conflicts: { type: 'boolean' },
        'uart-delay': { type: 'boolean' },
        'alarm-now': { type: 'string' },
        'core1-delay': { type: 'string' },
        boot2: { type: 'boolean' },
        input: { type: 'string' },
        port: { type: 'string' },
        base: { type: 'string' },
      },
    });
    const [command, path, ...rest] = positionals;
    if (values.help || command === 'help') {
      put(1, HELP);
      return 0;
    }
    if (command !== 'run' && command !== 'info' && command !== 'gdb' && command !== 'log')
      throw new UsageError(
        command
          ? `no command '${command}': run, gdb, info, explain, log or help`
          : 'no command: run, gdb, info, explain, log or help',
      );
    if (!path) throw new UsageError(`${command} wants an ${command === 'log' ? 'ELF' : 'IMAGE'}`);
    if (command === 'log' && rest.length < 2) {
      subject = `${path}: `;
      const texts = logTexts(readImage(path));
      subject = '';
      return await log(texts, rest[0] ?? '-');
    }
    if (rest.length) throw new UsageError(`too many arguments: ${rest.join(' ')}`);
    subject = `${path}: `;
    const image = parseImage(
      readImage(path),
      number(values.base, '--base', 0x20000000),
      basename(path),
    );
    if (command === 'info') return info(path, image, values.json === true);
    const texts = values.log ? logTexts(readImage(path)) : undefined;
    subject = '';
    return command === 'gdb'
      ? await debug(image, values, texts)
      : await run(path, image, values, texts);
  } catch (error) {
    const known =
      error instanceof UsageError || error instanceof ImageError || error instanceof RangeError;
    const parsing = /** @type {NodeJS.ErrnoException} */ (error).code?.startsWith('ERR_PARSE_ARGS');
    const system = /** @type {NodeJS.ErrnoException} */ (error).syscall !== undefined;
    if (!known && !parsing && !system) throw error;
    const message = /** @type {Error} */ (error).message.split('\n')[0];
    put(
      2,
      `weft-rp2040: ${error instanceof ImageError ? subject : ''}${message}${error instanceof UsageError || parsing ? " (try 'weft-rp2040 help')" : ''}\n`,
    );
    return 2;
  }
}

/** @param {string} path @param {import('./image.mjs').Image} image @param {boolean} json */
function info(path, image, json) {
  const start = startOf(image);
  const functions = image.symbols.filter((s) => s.kind === 'function').length;
  const segments = image.segments.map((s) => ({ address: s.address, size: s.bytes.length }));
  if (json)
    put(
      1,
      JSON.stringify({
        format: image.format,
        segments,
        start,
        functions,
        symbols: image.symbols.length,
      }) + '\n',
    );
  else {
    put(1, `${path}: ${image.format}, ${segments.reduce((sum, s) => sum + s.size, 0)} bytes\n`);
    for (const s of segments) put(1, `  ${hex(s.address)}  ${s.size} bytes\n`);
    put(
      1,
      start.how === 'vectors'
        ? `  starts by the vector table at ${hex(start.vectors)}${start.boot2 ? ', after a valid boot2' : ''}\n`
        : `  starts at ${hex(start.pc)}\n`,
    );
    put(
      1,
      image.symbols.length
        ? `  ${image.symbols.length} symbols, ${functions} functions\n`
        : '  no symbols\n',
    );
  }
  return 0;
}

/**
 * The byte sink that --uart names: a descriptor, or null to drop the bytes.
 * @param {string | undefined} target
 */
async function openSink(target) {
  if (target === undefined) return null;
  if (target === '-') return 1;
  const { openSync } = await import('node:fs');
  return openSync(target, 'w');
}

/**
 * Prints the log that a board sends.
 * @param {ReturnType<typeof logTexts>} texts @param {string} from
 * @returns {Promise<number>}
 */
async function log(texts, from) {
  const { createReadStream, statSync } = await import('node:fs');
  const { connect } = await import('node:net');
  const reader = new LogReader(texts, (line) => put(1, `${line}\n`));
  const source =
    from === '-'
      ? process.stdin
      : statSync(from).isSocket()
        ? connect(from)
        : createReadStream(from);
  const interrupt = () => source.destroy();
  process.once('SIGINT', interrupt);
  try {
    for await (const bytes of source) reader.push(bytes);
    return 0;
  } catch (error) {
    const code = /** @type {NodeJS.ErrnoException} */ (error).code;
    if (code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ABORT_ERR') return 130;
    throw error;
  } finally {
    process.removeListener('SIGINT', interrupt);
  }
}

/**
 * Makes a machine with an image, according to the options of run and gdb, and connects the
 * observers that these options name.
 * @param {import('./image.mjs').Image} image @param {Record<string, any>} values
 * @param {ReturnType<typeof logTexts>} [texts] of the log, if it is shown
 */
async function prepare(image, values, texts) {
  const alarmNow = values['alarm-now'] ?? 'miss';
  if (alarmNow !== 'miss' && alarmNow !== 'fire')
    throw new UsageError(`--alarm-now is miss or fire, not '${alarmNow}'`);
  const pins =
    values.pins === undefined
      ? undefined
      : String(values.pins)
          .split(',')
          .map((p) => number(p, '--pins', 0));
  if (pins?.some((p) => !Number.isInteger(p) || p > 29))
    throw new UsageError('--pins wants GPIO numbers from 0 to 29');
  const machine = new Machine({
    conflicts: values.conflicts === true,
    uartDelay: values['uart-delay'] === true,
    alarmNow,
    core1Delay: number(values['core1-delay'], '--core1-delay', 40),
    runBoot2: values.boot2 === true,
  });
  machine.load(image);
  const uart = values['no-uart'] ? null : await openSink(values.uart ?? (texts ? undefined : '-'));
  if (texts) {
    const reader = new LogReader(texts, (line) => put(1, `${line}\n`));
    machine.onUart((byte) => reader.push([byte]));
  }
  const uart1 = await openSink(values.uart1);
  if (uart !== null) machine.onUart((byte) => put(uart, Uint8Array.of(byte)));
  if (uart1 !== null) machine.onUart((byte) => put(uart1, Uint8Array.of(byte)), 1);
  const say = (/** @type {string} */ line) => values.quiet || put(2, `${line}\n`);
  let warned = 0;
  machine.onWarning = ({ cycle, core, pc, why }) => {
    if (++warned <= 10) say(`weft-rp2040: cycle ${cycle}, core ${core}, pc ${hex(pc)}: ${why}`);
    if (warned === 10) say('weft-rp2040: further warnings are only counted');
  };
  if (values.input !== undefined)
    machine.feed(
      String(values.input).replace(
        /\\([nrt])/g,
        (_, c) => ({ n: '\n', r: '\r', t: '\t' })[/** @type {'n'} */ (c)],
      ),
    );
  const nanosOf = (/** @type {number} */ c) => machine.clock.nanosOf(c);
  const vcd =
    values.trace === undefined
      ? null
      : new VcdWriter(values.trace, { levels: machine.pins.levels, pins, nanosOf });
  if (vcd) machine.watch(null, (pin, level, cycle) => vcd.edge(pin, level, cycle));
  return { machine, say, vcd };
}

/** Options that determine when `run` stops and what it counts; under gdb the debugger decides. */
const NOT_FOR_GDB = [
  'max-cycles',
  'max-us',
  'until-uart',
  'until',
  'until-stdin',
  'profile',
  'json',
  'uart-socket',
  'uart1-socket',
];

/**
 * @param {import('./image.mjs').Image} image
 * @param {Record<string, any>} values
 * @param {ReturnType<typeof logTexts>} [texts]
 * @returns {Promise<number>}
 */
async function debug(image, values, texts) {
  const wrong = NOT_FOR_GDB.find((name) => values[name] !== undefined);
  if (wrong) throw new UsageError(`--${wrong} is not for gdb, which decides itself when to stop`);
  const port = number(values.port, '--port', 3333);
  if (!Number.isInteger(port) || port > 65535)
    throw new UsageError('--port wants a number from 0 to 65535');
  const { serve } = await import('./gdb.mjs');
  const { machine, vcd } = await prepare(image, values, texts);
  const ended = new AbortController();
  const abort = () => ended.abort();
  process.once('SIGINT', abort);
  process.once('SIGTERM', abort);
  try {
    const onListening = (/** @type {number} */ n) =>
      put(2, `weft-rp2040: waiting for gdb: target remote 127.0.0.1:${n}\n`);
    return (await serve(machine, { port, signal: ended.signal, onListening })) === 'killed'
      ? 0
      : 130;
  } finally {
    vcd?.close(machine.cycle);
  }
}

/**
 * @param {string} path
 * @param {import('./image.mjs').Image} image
 * @param {Record<string, any>} values
 * @param {ReturnType<typeof logTexts>} [texts]
 * @returns {Promise<number>}
 */
async function run(path, image, values, texts) {
  if (values.port !== undefined) throw new UsageError('--port is for gdb');
  const wanted = values['until-uart'] === undefined ? null : String(values['until-uart']);
  if (wanted === '') throw new UsageError('--until-uart wants some text');
  let seen = '';
  let found = false;
  const { machine, say, vcd } = await prepare(image, values, texts);
  const cables = ['uart-socket', 'uart1-socket'].flatMap((name, uart) =>
    values[name] === undefined ? [] : [new Cable(machine, uart, values[name])],
  );
  let limit = number(values['max-cycles'], '--max-cycles', cables.length ? Infinity : 125e6);
  if (values['max-us'] !== undefined)
    limit = machine.clock.cycleOf(number(values['max-us'], '--max-us', 0) * 1000);
  machine.onUart((byte) => {
    if (wanted === null || found) return;
    seen = (seen + String.fromCharCode(byte)).slice(-wanted.length);
    if (seen === wanted) {
      found = true;
      machine.halt({ reason: 'until', cycle: machine.cycle });
    }
  });
  if (values.until !== undefined)
    machine.breakpoint(/^0x/i.test(values.until) ? Number(values.until) : values.until);
  const profile = values.profile ? machine.startProfile() : null;

  let interrupted = false;
  const interrupt = () => {
    interrupted = true;
  };
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  let input = true;
  const ended = () => {
    input = false;
  };
  if (values['until-stdin']) process.stdin.once('end', ended).once('error', ended).resume();
  const began = process.hrtime.bigint();
  /** @type {import('./machine.mjs').Stop} */
  let stop = { reason: 'limit', cycle: 0 };
  try {
    for (const cable of cables) await cable.open();
    const pace = cables.length ? new Pace(machine, cables) : null;
    // The run is split into slices, so that an interrupt is noticed between them.
    for (;;) {
      stop = pace ? await pace.slice(limit) : machine.run(Math.min(limit, machine.cycle + 2e6));
      if (stop.reason !== 'limit' || machine.cycle >= limit) break;
      if (!pace) await new Promise((resolve) => setImmediate(resolve));
      if (interrupted || !input) break;
    }
  } finally {
    process.stdin.pause();
    for (const cable of cables) cable.close();
    vcd?.close(machine.cycle);
    process.removeListener('SIGINT', interrupt);
    process.removeListener('SIGTERM', interrupt);
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  const failed = judge(stop, machine.failure(stop), wanted, found, values.until);
  const statistics = machine.statistics();
  const instructions = statistics.cores[0].instructions + statistics.cores[1].instructions;
  say(
    `weft-rp2040: ${interrupted ? 'interrupted' : describe(stop)} after ${statistics.cycles} cycles (${statistics.micros.toFixed(3)} us); ` +
      `${statistics.edges} edges, hash ${statistics.edgeHash}; ${instructions} instructions at ${(instructions / seconds / 1e6).toFixed(1)} MIPS`,
  );
  for (const core of statistics.cores)
    if (core.started)
      say(
        `  core: ${core.instructions} instructions, asleep ${((100 * core.sleepCycles) / Math.max(1, statistics.cycles)).toFixed(1)} %, ` +
          `${core.exceptions} exceptions, ${core.stallCycles} stall cycles`,
      );
  const { wait, sleep } = statistics.power;
  const share = (/** @type {number} */ n) =>
    ((100 * n) / Math.max(1, statistics.cycles)).toFixed(1);
  say(`  chip: ${share(wait)} % with both cores asleep, ${share(sleep)} % more in SLEEP`);
  if (failed && !interrupted) put(2, `weft-rp2040: ${failed}${hint(path, image, stop)}\n`);
  const rows = profile?.functions(image.symbols);
  if (rows && !values.json) {
    put(2, '      cycles       %      calls      core 0      core 1  function\n');
    const total = rows.reduce((sum, row) => sum + row.total, 0);
    for (const row of rows)
      put(
        2,
        `${String(row.total).padStart(12)} ${((100 * row.total) / total).toFixed(2).padStart(7)} ${String(row.calls).padStart(10)} ` +
          `${String(row.cycles[0]).padStart(11)} ${String(row.cycles[1]).padStart(11)}  ${row.name}\n`,
      );
  }
  const status = interrupted ? 130 : failed ? 1 : 0;
  if (values.json)
    put(
      1,
      JSON.stringify({ image: path, status, stop, ...statistics, instructions, profile: rows }) +
        '\n',
    );
  return status;
}

/**
 * Returns advice on how to find the place of a stop at one of Weft's codes; empty for other stops.
 * @param {string} path @param {import('./image.mjs').Image} image
 * @param {import('./machine.mjs').Stop} stop
 */
function hint(path, image, stop) {
  if (stop.at === undefined || image.format !== 'elf') return '';
  const word = /^[\w./+@%:=,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
  return `; to see where: weft-rp2040 explain bkpt${stop.code} ${word} --at ${hex(stop.at)}`;
}

/** @param {import('./machine.mjs').Stop} stop */
function describe(stop) {
  switch (stop.reason) {
    case 'limit':
      return 'limit reached';
    case 'until':
      return 'text seen';
    case 'stopped':
      return `place reached by core ${stop.core}`;
    case 'break':
      return `bkpt ${stop.code} on core ${stop.core} ${stop.why}`;
    case 'lockup':
      return `lockup of core ${stop.core}`;
    case 'bootsel':
      return 'USB boot loader asked for';
    case 'watchdog':
      return 'watchdog reset';
    default:
      return 'both cores asleep for good';
  }
}

/**
 * Returns the reason why the run counts as failed, in one line; null if the run does not count as
 * failed.
 * @param {import('./machine.mjs').Stop} stop
 * @param {string | null} failed what the machine reports about the firmware itself
 * @param {string | null} wanted @param {boolean} found @param {string | undefined} place
 */
function judge(stop, failed, wanted, found, place) {
  if (failed) return failed;
  if (wanted !== null && !found) return `'${wanted}' did not appear on the UART`;
  if (place !== undefined && stop.reason !== 'stopped') return `'${place}' was not reached`;
  return null;
}
