/**
 * Tests of processes and channels on the boards that QEMU has: the behaviour that run.mjs checks on
 * the RP2040. QEMU counts no cycles, so costs are not tested.
 *
 * boards.mjs IMAGES writes one line per test and, last, `N passed, N failed`. IMAGES is the folder
 * that tests/boards/build fills.
 */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { checkBehaviour, RETIRED } from './behaviour.mjs';

const images = resolve(process.argv[2]);
let passed = 0,
  failed = 0;

function run(machine, image) {
  const options = [
    '-nographic',
    '-monitor',
    'none',
    '-semihosting-config',
    'enable=on,target=native',
  ];
  // A cycle of 8 ns for each instruction gives about the speed of the RP2040.
  options.push('-icount', 'shift=3,sleep=off', '-serial', 'stdio', '-kernel', `${images}/${image}`);
  const ran = spawnSync('qemu-system-arm', ['-M', machine, ...options], { encoding: 'utf8' });
  return { text: ran.stdout + (ran.error ?? '') + ran.stderr, status: ran.status };
}
for (const [board, machine] of [
  ['stm32f4', 'netduinoplus2'],
  ['nrf51', 'microbit'],
  ['an521', 'mps2-an521'],
]) {
  const check = (what, value, wanted, ok = String(value) === String(wanted)) => {
    if (ok) passed++;
    else failed++;
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${board}: ${what}: ${value} (${wanted})`);
  };
  const { text, status } = run(machine, `${board}/checks.elf`);
  check('checks: ends', `${status} ${text.trim().split('\n').at(-1)}`, '0 done');
  checkBehaviour(text, check);
  if (board === 'an521')
    check(
      'two_cores: values, wrong, dropped, end (M20)',
      run(machine, 'an521/csp_two_cores.elf').text.trim(),
      `200 0 0 ${RETIRED}`,
    );
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
