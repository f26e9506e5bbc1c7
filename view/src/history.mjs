// The last minute: the looks, and for every name the shares of its processes at each look.
//
// Invariants
//  - The history is bounded: by SECONDS, and by ROWS for the looks that are kept whole, so that an
//    older moment can be drawn again. Of looks beyond ROWS only the shares are kept.
//  - A look is kept once; looks are in the order of their arrival.

import { mean, names } from './model.mjs';

/** @import { Look, Name, Process, Shares } from './types.d.ts' */
/** @typedef {{ at: number, seconds: number, kind: string, verdict: string, look: Look | null, shares: Map<string, Shares>, rates: Map<string, number | null> }} Moment */

export const SECONDS = 60;
const ROWS = 120_000;
const NAMES = 2_000; // the number of names whose shares are kept

export class History {
  constructor() {
    /** @type {Moment[]} */
    this.moments = [];
  }

  /** @param {Look} look */
  add(look) {
    const { verdict } = look;
    this.moments.push({
      at: look.at,
      seconds: look.seconds,
      kind: look.stuck.length ? 'stuck' : verdict.kind,
      verdict: verdict.text,
      look,
      shares: shares(look),
      rates: new Map(look.channels.slice(0, NAMES).map((one) => [one.id, one.rate])),
    });
    while (look.at - this.moments[0].at > SECONDS) this.moments.shift();
    let rows = 0;
    for (let i = this.moments.length - 1; i >= 0; i--) {
      rows += this.moments[i].look?.processes.length ?? 0;
      if (rows > ROWS && i < this.moments.length - 1) this.moments[i].look = null;
    }
  }

  /** Returns the shares of the names over the whole time, the heaviest first. @param {string[]} ids
   * */
  heaviest(ids) {
    const weight = new Map(ids.map((id) => [id, 0]));
    for (const moment of this.moments)
      for (const id of ids) {
        const { runs = 0, time = 0, io = 0 } = moment.shares.get(id) ?? {};
        weight.set(id, (weight.get(id) ?? 0) + runs + time + io);
      }
    const names = new Intl.Collator('en', { numeric: true }); // worker[2] comes before worker[10]
    // Names within a twentieth are equally heavy, so that they do not change places all the time.
    /** @param {string} id */
    const rough = (id) => Math.round((20 * (weight.get(id) ?? 0)) / this.moments.length || 0);
    return [...ids].sort((a, b) => rough(b) - rough(a) || names.compare(a, b));
  }
}

/**
 * Returns the mean shares of the names: of the first NAMES names, from the root on.
 * @param {Look} look
 */
export function shares(look) {
  /** @type {Map<string, Shares>} */
  const found = new Map();
  let next = [names(look.processes)];
  while (next.length && found.size < NAMES) {
    for (const one of next.slice(0, NAMES - found.size)) {
      found.set(one.id, mean(all(one)));
      if (one.rows.length && one.below.length) found.set(`${one.id}.`, mean(one.rows));
    }
    next = next.flatMap((one) => one.below);
  }
  return found;
}

/** @param {Name} of @returns {Process[]} */
const all = (of) => (of.below.length ? [...of.rows, ...of.below.flatMap(all)] : of.rows);
