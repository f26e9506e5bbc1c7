// @ts-check
/**
 * What the codes of Weft's firmware mean: the statuses that Weft's functions return, and the
 * numbers of the `bkpt` instructions at which the firmware stops. A release build gives only such a
 * code.
 *
 * Invariants
 * - The numbers and names are those of mcu/include and mcu/ports; mcu/tests/codes.mjs compares
 *   them. The texts of mistakes.json are copies of the texts in the sources: `node
 *   mcu/tests/codes.mjs --write` writes that file.
 * - Each status whose name begins with WEFT_ has a number of its own. The functions of lta.h return
 *   1 for every failure (M16), and a breakpoint may have the number of a status: then each meaning
 *   of the number is an entry.
 */
import { readFileSync } from 'node:fs';

/**
 * @typedef {{ kind: 'status' | 'bkpt', code: number, name: string, sentence: string,
 *   remedy: string }} Code
 *   sentence: what has happened; remedy: what to do
 */

/** @type {Code[]} */
const STATUSES = [
  {
    kind: 'status',
    code: 0,
    name: 'WEFT_OK',
    sentence: 'The call did what it was asked to do.',
    remedy: 'Nothing is to be done.',
  },
  {
    kind: 'status',
    code: 1,
    name: 'WEFT_LATE',
    sentence:
      'weft_cancel, or a post that moves an event, came too late: a core runs the action or is about to, or the event was in no queue. Nothing was withdrawn.',
    remedy:
      'This is an outcome, not a mistake. The action may run once more: expect this, or let the action look at a flag of yours first.',
  },
  {
    kind: 'status',
    code: 1,
    name: 'schedule_event',
    sentence:
      'A function of lta.h did not do its work: the queue is full, there is no such actor, or there was no room for the queue.',
    remedy:
      'Give event_queue_init a larger max_size, or the number of actors that the program uses.',
  },
  {
    kind: 'status',
    code: 2,
    name: 'WEFT_IGNORED',
    sentence: 'A post with WEFT_KEEP found the event in the queue; the event stays as it was.',
    remedy: 'This is an outcome, not a mistake. If the new time is to count, post with WEFT_MOVE.',
  },
  {
    kind: 'status',
    code: 3,
    name: 'WEFT_FULL',
    sentence: 'weft_ring_put found no room; the message was counted as lost and dropped.',
    remedy: 'Give the ring more messages, or take them out more often.',
  },
  {
    kind: 'status',
    code: -1,
    name: 'WEFT_E_QUEUED',
    sentence: 'An event was posted that is in a queue already. The call changed nothing.',
    remedy:
      'Use weft_post_as with WEFT_MOVE (the new time counts) or WEFT_KEEP (the old time counts), or give the second post an event of its own.',
  },
  {
    kind: 'status',
    code: -2,
    name: 'WEFT_E_HORIZON',
    sentence:
      'A time is too far ahead: the release is WEFT_HORIZON us (35 minutes) or more from now, or a period is not 1 us to 2^30 us. The call changed nothing.',
    remedy:
      'Use weft_far_post for a release that is further away. For reactors define a longer WEFT_TICK_NS, or WEFT_RX_TIME64=1.',
  },
  {
    kind: 'status',
    code: -3,
    name: 'WEFT_E_ARENA',
    sentence:
      'There was no room: the arena of a scheduler has none for the frame of a process; or the event of a heap lies outside the memory that the heap can number, or the heap is full.',
    remedy:
      'Give the scheduler a larger Arena<bytes>; give weft_heap_init more entries, or the memory in which the events are.',
  },
  {
    kind: 'status',
    code: -4,
    name: 'WEFT_E_CORE',
    sentence:
      'Something is on the wrong core: core 1 is started twice, from core 1, or on a chip that has none; or a process is started by a scheduler that did not make it.',
    remedy:
      'Call weft_start_core once, from core 0. Start a process with the scheduler that its function was given.',
  },
  {
    kind: 'status',
    code: -5,
    name: 'WEFT_E_DRIVER',
    sentence:
      'A driver could not start: it is started twice, or connected before it is started, or its pins, its speed or its other settings are not possible; or the flash of a FlashStore is damaged.',
    remedy:
      'Call start() once, before connect(), with settings that the table of the driver in mcu/DRIVERS.md allows.',
  },
  {
    kind: 'status',
    code: -6,
    name: 'WEFT_E_FULL',
    sentence: 'A pool of the reactors is empty, or a value is larger than the blocks of the pool.',
    remedy: 'Define a larger WEFT_RX_EVENTS, WEFT_RX_BLOCKS or WEFT_RX_BLOCK_BYTES.',
  },
];

/** The breakpoint numbers of weft_panic, and of handlers that the program does not define. */
export const PANIC = 77;
export const NO_HANDLER = 78;

/** @type {Code[]} */
const STOPS = [
  {
    kind: 'bkpt',
    code: 0,
    name: 'bkpt 0',
    sentence: 'main has returned, or the program has ended the run itself.',
    remedy:
      'A program that is to go on calls weft_work or Scheduler::run at the end of main, and these calls return only if they are stopped or if no process is left.',
  },
  {
    kind: 'bkpt',
    code: PANIC,
    name: `bkpt ${PANIC}`,
    sentence:
      'weft_panic has stopped this core, because the program cannot go on after what has happened. Register r0 has the address of the text that says what, and the text went to the UART if the program has set the UART up.',
    remedy:
      "Read the text (in gdb: x/s $r0). The value of lr is in weft_panic's caller: 'weft-rp2040 explain bkpt77 ELF --at LR' gives its function and line.",
  },
  {
    kind: 'bkpt',
    code: NO_HANDLER,
    name: `bkpt ${NO_HANDLER}`,
    sentence: 'An interrupt or a fault came for which the program has no handler.',
    remedy:
      "The low 9 bits of xPSR say which: 3 is HardFault, 16 + n is interrupt n. Define weft_isr_NAME for the interrupt (the names are in the port's vectors.S), or do not turn it on. After a HardFault the word at sp + 24 is the address at which it happened: 'weft-rp2040 explain bkpt78 ELF --at ADDRESS' gives its function and line.",
  },
  {
    kind: 'bkpt',
    code: 0xab,
    name: 'bkpt 171',
    sentence:
      'The program asks a debugger for semihosting (bkpt 0xab), as the port an521 does to print and to end, and nobody answers.',
    remedy:
      'Run the program where semihosting is (qemu-system-arm -semihosting), or build it for the port of your board.',
  },
];

/** @type {Code[]} */
export const CODES = [...STATUSES, ...STOPS];

/**
 * Returns the texts with which a debug build reports the mistakes of a code.
 * @param {Code} code @returns {string[]}
 */
export function mistakesOf(code) {
  const file = new URL('mistakes.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8'))[code.name] ?? [];
}

/**
 * Returns the meanings of a code as a user types it: the number or the name of a status, also a
 * negative number as its 32 bits; or `bkpt N`, also without the space. A number alone finds every
 * status and breakpoint with this number. Returns an empty list for an unknown code.
 * @param {string} text
 * @returns {Code[]}
 */
export function lookUp(text) {
  const named = CODES.filter((c) => c.name.toLowerCase() === text.toLowerCase());
  if (named.length) return named;
  const [, stop, digits] = /^(bkpt)?[\s:#]*(-?\d+|0x[0-9a-f]+)$/i.exec(text) ?? [];
  if (digits === undefined) return [];
  const number = Number(digits);
  return CODES.filter((c) =>
    c.kind === 'bkpt'
      ? c.code === number
      : !stop && (c.code === number || c.code + 2 ** 32 === number),
  );
}

/** @param {string} text @returns {string} the error for a code that has no meaning */
export function unknown(text) {
  const names = STATUSES.map((c) => `${c.name} (${c.code})`).join(', ');
  const stops = STOPS.map((c) => c.name).join(', ');
  return `no code of Weft's is '${text}': there are ${names}; ${stops}. Any other number is the program's own`;
}
