// @ts-check
/** ./run thesis ball: shows a drop. See --help. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CONTROLLERS, Session, SessionError } from './session.mjs';
import { inWords, picture } from './picture.mjs';

const HELP = `usage: ./run thesis ball [OPTIONS]    drop the ball through the turning disc, on the emulated RP2040

  --seed N             of fall times, photogate noise and bounces (1)
  --controller NAME    ${CONTROLLERS.join(', ')} (actors)
  --image FILE         the ELF of a controller of your own instead, for 1600 pulses a turn
  --drops N            how many, one after the other (1); the picture is of the last
  --pulses N           of the stepper for a turn: 1600 or 3200 (1600)
  --fall US            every fall is off by this many microseconds, instead of up to 2000 either way
  --constants SET      calibrated, or thesis: the numbers of the thesis's own program, for its own device (calibrated)
  --conflicts          with the model of bus conflicts
  --out FILE           .svg, or .png if rsvg-convert is there (out/ball.svg)
  --json               figures for programs, no picture unless --out

exit status: 0 if every ball passed, 1 if one did not, 2 for a wrong option`;

/** @param {string} words @returns {never} */
function refuse(words) {
  console.error(`ball: ${words}; ./run thesis ball --help lists the options`);
  process.exit(2);
}

/** @param {string[]} args */
function parse(args) {
  const options = {
    seed: 1,
    controller: 'actors',
    image: '',
    drops: 1,
    pulses: 1600,
    fall: /** @type {number | null} */ (null),
    constants: 'calibrated',
    conflicts: false,
    out: /** @type {string | null} */ (null),
    json: false,
  };
  const number = (
    /** @type {string} */ name,
    /** @type {string | undefined} */ value,
    /** @type {number} */ low,
    /** @type {number} */ high,
  ) => {
    const n = Number(value);
    if (value === undefined || value === '' || !Number.isInteger(n) || n < low || n > high)
      refuse(`${name} needs a whole number from ${low} to ${high}, not '${value ?? ''}'`);
    return n;
  };
  for (let i = 0; i < args.length; i++) {
    const name = args[i];
    if (name === '--help' || name === '-h') {
      console.log(HELP);
      process.exit(0);
    } else if (name === '--seed') options.seed = number(name, args[++i], 0, 2 ** 32 - 1);
    else if (name === '--drops') options.drops = number(name, args[++i], 1, 1000);
    else if (name === '--fall') options.fall = number(name, args[++i], -20000, 20000);
    else if (name === '--pulses') {
      options.pulses = Number(args[++i]);
      if (![1600, 3200].includes(options.pulses))
        refuse(`--pulses is 1600 or 3200, not '${args[i] ?? ''}'`);
    } else if (name === '--controller') {
      options.controller = args[++i];
      if (!CONTROLLERS.includes(/** @type {any} */ (options.controller)))
        refuse(
          `there is no controller '${options.controller ?? ''}'; there are ${CONTROLLERS.join(', ')}`,
        );
    } else if (name === '--image') {
      options.image = args[++i] ?? refuse('--image needs a file name');
      if (!existsSync(options.image)) refuse(`--image ${options.image}: there is no such file`);
    } else if (name === '--constants') {
      options.constants = args[++i];
      if (!['calibrated', 'thesis'].includes(options.constants))
        refuse(`--constants is calibrated or thesis, not '${options.constants ?? ''}'`);
    } else if (name === '--out') {
      options.out = args[++i] ?? refuse('--out needs a file name');
      if (!/\.(svg|png)$/.test(options.out))
        refuse(`--out makes .svg and .png, not '${options.out}'`);
    } else if (name === '--json') options.json = true;
    else if (name === '--conflicts') options.conflicts = true;
    else refuse(`there is no option '${name}'`);
  }
  return options;
}

/** @param {string} file @param {string} svg */
function write(file, svg) {
  mkdirSync(dirname(resolve(file)), { recursive: true });
  if (file.endsWith('.svg')) return writeFileSync(file, svg);
  const { status } = spawnSync('rsvg-convert', ['-o', file], {
    input: svg,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  if (status === 0) return;
  refuse(`--out ${file}: a PNG needs rsvg-convert (package librsvg2-bin); or ask for .svg`);
}

const options = parse(process.argv.slice(2));
try {
  const session = new Session({
    seed: options.seed,
    controller: /** @type {any} */ (options.controller),
    constants: /** @type {any} */ (options.constants),
    ...(options.image ? { image: options.image } : {}),
    pulsesPerTurn: options.pulses,
    conflicts: options.conflicts,
    record: true,
    ...(options.fall === null ? {} : { fallOffset: options.fall, fallSpread: 0 }),
  });
  const rows = [];
  let drop;
  for (let n = 0; n < options.drops; n++) {
    drop = session.drop();
    if (!options.json) {
      console.log(inWords(drop));
      console.log(
        `  fall ${drop.fallError.toFixed(0)} us off the nominal, air ${drop.airError.toFixed(0)} us of it; ${drop.lateness.edges} edges on STEP, late by ${(drop.lateness.best / 125).toFixed(3)} to ${(drop.lateness.worst / 125).toFixed(3)} us`,
      );
    }
    rows.push({
      passes: drop.passes,
      outcome: drop.stalled ? 'stalled' : drop.verdict.outcome,
      errorMicros: drop.verdict.errorMicros,
      marginMicros: drop.verdict.marginMicros,
      budgetMicros: drop.verdict.budgetMicros,
      turnsPerSecond: drop.turnsPerSecond,
      fallErrorMicros: drop.fallError,
      airErrorMicros: drop.airError,
      latenessMicros: {
        worst: drop.lateness.worst / 125,
        best: drop.lateness.best / 125,
        mean: drop.lateness.mean / 125,
        edges: drop.lateness.edges,
      },
    });
  }
  const file = options.out ?? (options.json ? null : 'out/ball.svg');
  if (file && drop) {
    write(
      file,
      picture(drop, {
        geometry: session.plant.geometry,
        controller: options.image || options.controller,
        seed: options.seed,
      }),
    );
    if (!options.json) console.log(`  picture: ${file}`);
  }
  const passed = rows.filter((row) => row.passes).length;
  if (options.json)
    console.log(
      JSON.stringify({
        controller: options.image || options.controller,
        seed: options.seed,
        pulsesPerTurn: options.pulses,
        passed,
        drops: rows,
      }),
    );
  else if (options.drops > 1) console.log(`${passed} of ${options.drops} passed`);
  process.exitCode = passed === rows.length ? 0 : 1;
} catch (error) {
  if (!(error instanceof SessionError)) throw error;
  console.error(`ball: ${error.message}`);
  process.exitCode = 1;
}
