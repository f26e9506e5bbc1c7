// @ts-check
/**
 * Measures the overhead of an event of any runtime, from an image that contains it: the times from
 * one action's end to the next one's beginning, on pins 2 and 3, while there is more work than
 * time.
 *
 *   node experiments/src/gaps.mjs IMAGE…     one line per image, with and without bus conflicts
 */
import { readFileSync } from 'node:fs';
import { Machine } from '../../../emulator/src/index.mjs';

/** The number of first edges that belong to the start-up. */
const SETTLED = 20;
const MILLISECONDS = 60;
for (const file of process.argv.slice(2))
  for (const conflicts of [false, true]) {
    const m = new Machine({ conflicts }).load(readFileSync(file), { name: file });
    /** @type {Record<number, { level: number, cycle: number }[]>} */
    const edges = { 2: [], 3: [] };
    m.watch(null, (pin, level, cycle) => void edges[pin]?.push({ level, cycle }));
    m.run(MILLISECONDS * 125000);
    for (const [pin, all] of Object.entries(edges)) {
      const list = all.slice(SETTLED),
        gaps = [];
      for (let i = 1; i < list.length; i++)
        if (list[i].level) gaps.push(list[i].cycle - list[i - 1].cycle);
      const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
      console.log(
        `${file}${conflicts ? ', conflicts' : ''}, pin ${pin}: ${gaps.length} gaps, mean ${mean.toFixed(0)}, ${Math.min(...gaps)} to ${Math.max(...gaps)} cycles`,
      );
    }
  }
