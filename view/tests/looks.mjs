// The looks for the tests, in the form in which `weft view` sends a look.

/** @import { Channel, Look, Process } from '../src/types.d.ts' */

/** @param {string} path @param {Partial<Process>} [more] @returns {Process} */
export const row = (path, more = {}) => ({
  ...{ path, pid: 1, kind: 'coroutine', now: 'reads', seconds: 0, before: false, where: '' },
  ...{ share: { reads: 1 }, cpu: null, rate: 1, holds: [], waits: [], host: '' },
  ...more,
});

/** @param {string} name @param {Partial<Channel>} [more] @returns {Channel} */
export const channel = (name, more = {}) => ({
  ...{
    id: name,
    name,
    pid: 1,
    rate: 10,
    depth: 0,
    capacity: 0,
    dropped: 0,
    reading: 0,
    writing: 0,
  },
  ...more,
});

/** @param {Process[]} processes @param {Channel[]} channels @param {Partial<Look>} [more] @returns {Look} */
export const look = (processes, channels, more = {}) => ({
  ...{ at: 100, pid: 1, since: 1, seconds: 1, interval: 1, silent: [], left_out: 0, stuck: [] },
  verdict: { kind: 'idle', names: [], text: '' },
  os_processes: [{ pid: 1, program: 'a.py', cpu: 0.5, memory: 1 << 20, host: '', number: 1 }],
  ...{ network: '', hosts: [] },
  processes,
  channels,
  ...more,
});

/** A farm: source → worker[0..n-1] → sink, with a channel to each worker and one from all.
 * @param {number} n @param {Partial<Look>} [more] */
export function farm(n, more = {}) {
  const of = [...Array(n).keys()];
  return look(
    [
      row('main', { kind: 'main', share: { waits: 1 } }),
      row('main/source', { holds: of.map((i) => [`in[${i}]`, true]), share: { writes: 1 } }),
      ...of.map((i) =>
        row(`main/worker[${i}]`, {
          holds: [
            [`in[${i}]`, false],
            ['out', true],
          ],
          share: { runs: 1 },
        }),
      ),
      row('main/sink', { holds: [['out', false]] }),
    ],
    [...of.map((i) => channel(`in[${i}]`, { writing: 1 })), channel('out', { rate: 10 * n })],
    more,
  );
}
