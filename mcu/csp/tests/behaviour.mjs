/** What checks.cpp must print, on whatever board it runs. */

export const [OK, RETIRED, POISONED, TIMED_OUT] = [0, 2, 3, 6]; // weft::Status
const E_ARENA = 3;

/** Calls check(what, value, wanted, ok?) for each result in the text that checks.cpp printed. */
export function checkBehaviour(text, check) {
  const said = new Map();
  for (const line of text.trim().split('\n')) {
    const [name, ...rest] = line.split(' ');
    said.set(name, [...(said.get(name) ?? []), rest.join(' ')]);
  }
  const is = (rule, name, ...wanted) =>
    check(`${name} (${rule})`, JSON.stringify(said.get(name)), JSON.stringify(wanted));
  is('M19: an event ends a read, nothing is transferred', 'timeout', 'transfers 0');
  is('M19: a value in time; the event ends nothing later', 'in_time', `${OK} 11 ${OK} 12`);
  is('M19: what is there is read, however late', 'late_but_there', `${OK} 13`);
  is('M19: a deadline that is past ends at once', 'past_and_empty', `${TIMED_OUT} 13 1`);
  check(
    'write_until (M19: in its microsecond)',
    said.get('write_until'),
    `${TIMED_OUT} 200 to 202`,
    /^6 20[0-2]$/.test(said.get('write_until')?.[0]),
  );
  is('M19: an output that was ended has delivered nothing', 'read_after', `${OK} 2`);
  is('rule 1.2', 'write_after', `${OK}`);
  is(
    'M19: tie of value and deadline, decided by order of posting (M5); nothing is lost',
    'tie',
    '0 1 0 0',
    '1 1 1 1',
  );
  is(
    'rules 4.2 poison, 3.1 retire',
    'reader_end',
    `1 ${POISONED} ${POISONED}`,
    `2 ${RETIRED} ${RETIRED}`,
  );
  is('rule 3.3', 'writer_end', `${RETIRED}`);
  is('rule 3.1: a buffer is drained first', 'buffer_end', `6 ${RETIRED}`);
  is('rule 2.5: no end of a side that has ended', 'empty_end', '0 0');
  is('rule 5.4: fair choice takes turns', 'fair', '85 132');
  is('rule 5.6: a merge is over when its last source is', 'over', `${RETIRED}`);
  is('rule 5.6: ends() makes an end an outcome', 'end_is_ready', `0 ${RETIRED}`);
  check(
    'select_until (M19)',
    said.get('select_until'),
    '0 0 to 4',
    /^0 [0-4]$/.test(said.get('select_until')?.[0]),
  );
  is('rule 5.8: an output guard', 'output_guard', `2 ${OK}`);
  is('rule 5.8', 'taken', '900');
  is('M19', 'select_past', '0');
  is('M21: frames of ended processes are used again', 'frames_reused', '0 0');
  is('M21: no room: an empty process', 'no_room', '0 1');
  is('M21: the ends among its arguments are dropped', 'argument_gone', '0 1');
  is('M21: and a code', 'no_room_code', `${E_ARENA} 0`);
  is('M21: made, never started', 'never_started', '0 0');
  is('M20: other actors of the queue have their turn', 'beside', '40 1 1');
  for (const how of ['writes', 'selects', 'sleeps', 'looks', 'ends'])
    is('M20: who never waits lets others run, after 32', `never_waits_${how}`, '31 1 1');
  is('M20: values from an interrupt, in order', 'interrupt_values', '10 45 0 0');
  is('M20: a full port drops the newest and counts', 'ring', '8 4 8');
  is('M20: accepted while the ring has room', 'after_end', '1');
  check('checks: nothing failed to start', said.get('start'), undefined);
}
