/**
 * A reporter for node --test that writes the beginning and the end of each test to the file that
 * $WEFT_PROGRESS names (progress.py), and writes nothing else:
 *
 *     node --test --test-reporter=tap --test-reporter-destination=stdout
 *         --test-reporter=…/tools/progress.mjs --test-reporter-destination=stderr
 */
import { appendFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';

const place = process.env.WEFT_PROGRESS;
const under = new Set(); // tests that have begun and not ended

/** @param {string} line */
function say(line) {
  try {
    if (place) appendFileSync(place, `${line.replaceAll('\n', ' ')}\n`);
  } catch {
    /* no program listens any more */
  }
}

/** @param {AsyncIterable<{type: string, data: any}>} source */
export default async function* tell(source) {
  for await (const { type, data } of source) {
    if (!['test:dequeue', 'test:start', 'test:pass', 'test:fail'].includes(type)) continue;
    // The event concerns the file as a whole: not all versions report when it ends.
    if (data.file && resolve(data.name) === data.file) continue;
    const name = data.file ? `${basename(data.file)}: ${data.name}` : data.name;
    if (type === 'test:dequeue' || (type === 'test:start' && !under.has(name))) {
      under.add(name);
      // A test that contains a running subtest still runs.
      for (const each of under) if (data.nesting > 0 || each === name) say(`begin ${each}`);
    } else if (type !== 'test:start') {
      under.delete(name);
      const counts =
        data.details?.type === 'suite' || data.skip !== undefined || data.todo !== undefined;
      say(`end ${counts ? '0 0' : type === 'test:pass' ? '1 0' : '0 1'} ${name}`);
    }
  }
  yield ''; // this statement makes the function a generator; it prints nothing
}
