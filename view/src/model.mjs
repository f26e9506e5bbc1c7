// Makes a drawing from a look: decides which boxes, lines and frames there are. Nothing here needs
// a browser.
//
//   Look ──names()──► the tree of paths ──opened()──► what is open ──drawing()──► Drawing
//
// Invariants
//  - Every process of the look is in exactly one box, and every channel with a known holder is in
//    exactly one line, bundle or box's inside. What is not drawn is counted in `left_out`.
//  - Processes of one name that are opened are a grid of boxes; lines lead to the grid, not to each.
//  - Every host of a network has a frame or a box, even a host that does not answer or has left.
//  - A drawing has at most MAX_BOXES boxes of processes. A name shows at most EACH of the names
//    below that name.
//  - The same look and the same choices give the same drawing, in the same order.

/** @import { Look, Process, Channel, Host, Name, Box, Bundle, Line, Frame, Drawing, State, Shares } from './types.d.ts' */

export const ROOM = 24; // groups open automatically up to this number of boxes
export const KEPT = 60; // open groups stay open up to this number of boxes
export const ARRAY = 4; // this many processes of one name, or more, are folded
export const EACH = 48;
export const MAX_BOXES = 400;

/** @type {State[]} */
export const STATES = [
  'runs',
  'time',
  'io',
  'due',
  'reads',
  'writes',
  'either',
  'barrier',
  'waits',
];
/** @type {Record<State, string>} */
export const WORDS = {
  runs: 'busy',
  due: 'due',
  reads: 'waits to read',
  writes: 'waits to write',
  either: 'waits in a choice',
  time: 'waits for time',
  barrier: 'waits at a barrier',
  waits: 'waits for its processes',
  io: 'waits for io',
};

/** @param {number} share */
export const percent = (share) => `${Math.round(Math.min(Math.max(share, 0), 1) * 100)} %`;
/** @param {number | null} rate */
export function perSecond(rate) {
  if (rate === null) return '';
  if (rate >= 9.95e6) return `${Math.round(rate / 1e6)} M/s`;
  if (rate >= 9950) return `${Math.round(rate / 1000)} k/s`;
  if (rate >= 995) return `${(rate / 1000).toFixed(1)} k/s`;
  return rate >= 9.95 || rate === 0 ? `${Math.round(rate)}/s` : `${rate.toFixed(1)}/s`;
}
/** @param {number} n */
export const thousands = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ',');

// --- the tree of paths ---------------------------------------------------------------------------

/**
 * @param {string} id
 * @param {string} label
 * @param {Name | null} up
 * @param {boolean} [array]
 * @returns {Name}
 */
const name = (id, label, up, array = false) => ({
  id,
  label,
  array,
  host: false,
  up,
  below: [],
  rows: [],
  count: 0,
});

/** The id of a host, with which the paths of its processes begin. @param {string} host */
const hostId = (host) => `${host}:`;

/**
 * Returns the tree of the paths, below the root or below the hosts. The root has no label. @param
 * {Process[]} processes
 */
export function names(processes) {
  const root = name('', '', null);
  /** @type {Map<string, Name>} */
  const known = new Map([['', root]]);
  /** @param {string} host */
  const above = (host) => {
    if (!host) return root;
    const id = hostId(host);
    let found = known.get(id);
    if (!found) {
      found = { ...name(id, host, root), host: true };
      root.below.push(found);
      known.set(id, found);
    }
    return found;
  };
  /** @param {string} path @param {string} host @returns {Name} */
  const at = (path, host) => {
    const found = known.get(path);
    if (found) return found;
    const begin = host ? hostId(host).length : 0; // a host's name can contain a slash
    const cut = path.lastIndexOf('/');
    const label = path.slice(Math.max(cut + 1, begin));
    let up = cut < begin ? above(host) : at(path.slice(0, cut), host);
    const base = /^(.*)\[\d+\]$/.exec(label)?.[1];
    if (base) {
      const id = `${path.slice(0, path.length - label.length)}${base}[*]`;
      let array = known.get(id);
      if (!array) {
        array = name(id, `${base}[*]`, up, true);
        up.below.push(array);
        known.set(id, array);
      }
      up = array;
    }
    const made = name(path, label, up);
    up.below.push(made);
    known.set(path, made);
    return made;
  };
  for (const row of processes) at(row.path, row.host).rows.push(row);
  lift(root);
  return root;
}

/**
 * Counts and sorts the names below, and dissolves arrays of few members.
 * @param {Name} of
 */
function lift(of) {
  of.below = of.below.flatMap((one) => {
    if (!one.array || one.below.length >= ARRAY) return [one];
    for (const member of one.below) member.up = of;
    return one.below;
  });
  of.count = of.rows.length;
  for (const one of of.below) {
    lift(one);
    of.count += one.count;
  }
  if (of.array) {
    const index = new Map(of.below.map((one) => [one, Number(/\[(\d+)\]$/.exec(one.id)?.[1])]));
    of.below.sort((a, b) => (index.get(a) ?? 0) - (index.get(b) ?? 0));
    const [first, last] = [of.below[0], of.below[of.below.length - 1]].map((one) => index.get(one));
    of.label = `${of.label.slice(0, -3)}[${first}..${last}]`;
  } else of.below.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Returns the names that show the names below them: those that the user has opened, and otherwise
 * groups, the outermost first, as long as there is room. Names in `before` stay open, within KEPT.
 * @param {Name} root
 * @param {Map<string, boolean>} chosen
 * @param {Set<string>} before
 */
export function opened(root, chosen, before) {
  /** @type {Set<string>} */
  const open = new Set(['']);
  let boxes = root.below.length;
  const next = [...root.below];
  for (let one = next.shift(); one; one = next.shift()) {
    if (!one.below.length) continue;
    const more = Math.min(one.below.length, EACH + 1) - (own(one, before).length ? 0 : 1);
    const alone = boxes === 1 && !one.array;
    const fits = !one.array && boxes + more <= (before.has(one.id) ? KEPT : ROOM);
    if (!(chosen.get(one.id) ?? (fits || alone))) continue;
    open.add(one.id);
    boxes += more;
    next.push(...one.below);
  }
  return open;
}

/**
 * Returns the rows of an opened name that need a box of their own: not the rows that only wait for
 * processes below to which they have given their ends. A box that was drawn before stays. @param
 * {Name} of
 * @param {Set<string>} before
 */
function own(of, before) {
  if (!of.rows.length || before.has(`${of.id}.`)) return of.rows;
  const given = new Set(of.below.flatMap(all).flatMap((row) => row.holds.map(String)));
  return of.rows.filter(
    (row) => (row.share.waits ?? 0) < 0.5 || row.holds.some((end) => !given.has(String(end))),
  );
}

// --- the drawing ---------------------------------------------------------------------------------

/**
 * Returns the mean shares of some processes. Those that only wait for other processes do not
 * count, unless all of them do.
 * @param {Process[]} rows
 */
export function mean(rows) {
  const few = rows.filter((row) => (row.share.waits ?? 0) < 0.5);
  const of = few.length ? few : rows;
  /** @type {Shares} */
  const shares = {};
  for (const row of of)
    for (const state of STATES) {
      const share = row.share[state];
      if (share) shares[state] = (shares[state] ?? 0) + share / of.length;
    }
  return shares;
}

/** @param {Shares} shares @returns {State} */
export function largest(shares) {
  let most = /** @type {State} */ ('waits');
  for (const state of STATES) if ((shares[state] ?? 0) > (shares[most] ?? 0)) most = state;
  return most;
}

/** Returns the largest share in words; '' if there is none.
 * @param {Shares} shares */
function sentence(shares) {
  const state = largest(shares);
  if (!shares[state]) return '';
  return `${WORDS[state]} ${percent(shares[state] ?? 0)}`;
}

/** A path of the verdict, folded: `main/worker[*]` for `main/worker[3]` and `main/worker[0..7]`.
 * @param {string} path */
const folded = (path) => path.replace(/\[(\d+(\.\.\d+)?|\*)\]/g, '[*]');

/**
 * @param {Look} look
 * @param {Map<string, boolean>} chosen  what the user has opened or folded
 * @param {Set<string>} [before]  what was open in the drawing before
 * @returns {Drawing}
 */
export function drawing(look, chosen, before = new Set()) {
  const root = names(look.processes);
  const open = opened(root, chosen, before);
  /** Returns whether this host has several OS processes; without a host, whether the program has.
   * @param {string} host */
  const many = (host) => look.os_processes.filter((one) => one.host === host).length > 1;
  /** @type {Map<string, Box>} */
  const boxes = new Map();
  /** @type {Map<string, Frame>} */
  const frames = new Map();
  /** @type {Map<Process, string>} */
  const at = new Map();
  let too_many = 0;

  /** @param {string} id @param {Box['kind']} kind @param {string} label @param {Process[]} rows @param {string} around */
  const put = (id, kind, label, rows, around) => {
    if (boxes.size >= MAX_BOXES) {
      too_many += rows.length;
      id = '+rest';
      const rest = boxes.get(id);
      if (rest) rest.rows.push(...rows);
      else boxes.set(id, box(id, 'more', 'and more', [...rows], ''));
    } else boxes.set(id, box(id, kind, label, rows, around));
    for (const row of rows) at.set(row, id);
    return id;
  };
  /** Returns the frame of the innermost group around these rows, and creates it if necessary.
   * @param {Process[]} rows @param {Name[]} around */
  const frame = (rows, around) => {
    const pids = new Set(rows.map((row) => row.pid));
    let up = '';
    const [outermost] = around;
    if (outermost?.host) {
      up = outermost.id;
      const text = outermost.count === 1 ? '1 process' : `${thousands(outermost.count)} processes`;
      const label = `${rows[0].kind === 'board' ? 'board' : 'host'} ${outermost.label}`;
      frames.set(up, { id: up, up: '', label, text, opens: up });
      around = around.slice(1);
    }
    if (pids.size === 1 && many(rows[0].host)) {
      const pid = rows[0].pid;
      const within = up;
      up = `pid ${pid}`;
      if (!frames.has(up)) {
        const os = look.os_processes.find((one) => one.pid === pid);
        frames.set(up, {
          id: up,
          up: within,
          label: `OS process ${os?.number ?? pid}`,
          text: os
            ? [os.cpu === null ? '' : `${percent(os.cpu)} CPU`, size(os.memory)]
                .filter(Boolean)
                .join(' · ')
            : '',
          opens: null,
        });
      }
    }
    for (const one of around) {
      const id = `${up}|${one.id}`;
      if (!frames.has(id)) frames.set(id, { id, up, label: one.label, text: '', opens: one.id });
      up = id;
    }
    return up;
  };
  /** @param {Name} of @param {Name[]} around */
  const grid = (of, around) => {
    const rows = all(of);
    const id = of.id;
    const up = frame(rows, around);
    const made = box(id, 'grid', of.label, rows, up);
    boxes.set(id, made);
    frames.set(`grid ${id}`, { id: `grid ${id}`, up, label: of.label, text: '', opens: id });
    const shown = of.below.slice(0, of.below.length > EACH + 1 ? EACH : EACH + 1);
    for (const one of shown)
      made.cells.push(put(one.id, 'process', one.label, one.rows, `grid ${id}`));
    const rest = of.below.slice(shown.length);
    if (rest.length)
      made.cells.push(
        put(`${id}+`, 'more', `${thousands(rest.length)} more`, rest.flatMap(all), `grid ${id}`),
      );
    for (const row of rows) at.set(row, id);
  };
  /** @param {Name} of @param {Name[]} around */
  const walk = (of, around) => {
    if (!open.has(of.id) || !of.below.length) {
      const rows = all(of);
      if (rows.length)
        put(of.id, of.below.length ? 'folded' : 'process', of.label, rows, frame(rows, around));
      return;
    }
    if (of.array && of.below.every((one) => !one.below.length) && boxes.size < MAX_BOXES) {
      grid(of, around);
      return;
    }
    const alone = of.up && (!of.up.id || of.up.host) && of.up.below.length === 1;
    const outermost = !of.id || (alone && !of.host);
    const within = outermost ? around : [...around, of];
    const mine = own(of, before);
    if (mine.length) {
      open.add(`${of.id}.`);
      put(`${of.id}.`, 'process', of.label, mine, frame(mine, within));
    }
    for (const row of of.rows) if (!mine.includes(row)) at.set(row, '');
    const shown = of.below.slice(0, of.below.length > EACH + 1 ? EACH : EACH + 1);
    for (const one of shown) walk(one, within);
    const rest = of.below.slice(shown.length).flatMap(all);
    if (rest.length)
      put(
        `${of.id}+`,
        'more',
        `${thousands(of.below.length - shown.length)} more`,
        rest,
        frame(rest, within),
      );
  };
  walk(root, []);
  for (const host of look.hosts) {
    if (frames.has(hostId(host.name)) || boxes.has(hostId(host.name))) continue;
    if (root.below.some((one) => one.id === hostId(host.name))) continue; // it is in a "more" box
    const made = box(hostId(host.name), 'host', host.name, [], '');
    made.text = hostSays(host);
    boxes.set(made.id, made);
  }

  const slow = new Set(
    ['bottleneck', 'equal', 'outside'].includes(look.verdict.kind)
      ? look.verdict.names.map(folded)
      : [],
  );
  const knot = knots(look);
  for (const one of boxes.values()) {
    one.slow = one.rows.some((row) => slow.has(folded(row.path)));
    one.tag = !one.slow ? '' : look.verdict.kind === 'outside' ? 'waited for' : 'bottleneck';
    one.stuck = one.rows.some((row) => knot.has(key(row)));
  }
  const { lines, unknown } = join(look, boxes, at, knot);
  const left_out = [...look.silent];
  if (look.left_out)
    left_out.unshift(
      `${thousands(look.left_out)} more processes are not in this look (--most shows more)`,
    );
  if (unknown)
    left_out.push(
      `${thousands(unknown)} channels whose ends no process is known to hold are not drawn`,
    );
  if (too_many)
    left_out.push(`${thousands(too_many)} processes are in the box "and more": fold something`);
  const shape = [
    ...[...boxes.values()].map((one) => `${one.id}\t${one.frame}`),
    ...[...lines.values()].map((one) => `${one.from}\t${one.to}\t${one.id}`),
  ].join('\n');
  return { boxes, lines, frames, left_out, opened: open, shape };
}

/** Describes briefly the state of a host without a process in the look. @param {Host} host */
const hostSays = (host) =>
  ({ answers: 'runs nothing now', silent: 'no answer', gone: 'gone' })[host.state];

/** @param {number} bytes */
export const size = (bytes) => `${Math.round(bytes / (1 << 20))} MB`;

/** @param {Name} of @returns {Process[]} */
const all = (of) => (of.below.length ? [...of.rows, ...of.below.flatMap(all)] : of.rows);

/** @param {string} id @param {Box['kind']} kind @param {string} label @param {Process[]} rows @param {string} frame @returns {Box} */
function box(id, kind, label, rows, frame) {
  const shares = mean(rows);
  const rates = rows.map((row) => row.rate).filter((rate) => rate !== null);
  return {
    id,
    kind,
    label,
    count: rows.length,
    rows,
    shares,
    main: largest(shares),
    text: sentence(shares),
    rate: rates.length ? rates.reduce((a, b) => a + b, 0) : null,
    slow: false,
    tag: '',
    stuck: false,
    inside: 0,
    frame,
    bundle: null,
    cells: [],
  };
}

// --- channels ------------------------------------------------------------------------------------

/**
 * The lines between the boxes. Adds to `boxes` the channels that more than two boxes share.
 * @param {Look} look
 * @param {Map<string, Box>} boxes
 * @param {Map<Process, string>} at
 * @param {Set<string>} knot
 */
function join(look, boxes, at, knot) {
  /** @type {Map<string, [Set<string>, Set<string>]>} */
  const ends = new Map();
  /** @type {Set<string>} */
  const red = new Set();
  /** @type {Set<string>} */
  const redEnds = new Set();
  for (const row of look.processes) {
    const id = at.get(row) ?? '';
    for (const [channel, writes] of [...row.holds, ...row.waits]) {
      let both = ends.get(channel);
      if (!both) ends.set(channel, (both = [new Set(), new Set()]));
      if (id) both[writes ? 0 : 1].add(id);
    }
    if (knot.has(key(row)))
      for (const [channel, writes] of row.waits) {
        red.add(channel);
        redEnds.add(`${channel}\t${writes}\t${id}`);
      }
  }
  /** @type {Map<string, Bundle>} */
  const bundles = new Map();
  let unknown = 0;
  for (const channel of look.channels) {
    const [out, into] = ends.get(channel.id) ?? [new Set(), new Set()];
    const writers = [...out].sort();
    const readers = [...into].sort();
    if (!writers.length && !readers.length) {
      unknown++;
      continue;
    }
    if (writers.length === 1 && readers.length === 1 && writers[0] === readers[0]) {
      const inner = boxes.get(writers[0]);
      if (inner) inner.inside++;
      continue;
    }
    const id = `${writers.join(' ')} → ${readers.join(' ')}`;
    const bundle = bundles.get(id);
    if (bundle) add(bundle, channel, red.has(channel.id));
    else
      bundles.set(id, {
        ...{ id, label: '', writers, readers },
        ...{
          channels: [channel],
          rate: channel.rate,
          depth: channel.depth,
          capacity: channel.capacity,
        },
        ...{
          dropped: channel.dropped,
          reading: channel.reading,
          writing: channel.writing,
          stuck: red.has(channel.id),
        },
      });
  }
  /** @type {Map<string, Line>} */
  const lines = new Map();
  for (const bundle of bundles.values()) {
    bundle.label = bundleName(bundle.channels);
    const { writers, readers } = bundle;
    if (writers.length === 1 && readers.length === 1) {
      lines.set(bundle.id, {
        id: bundle.id,
        from: writers[0],
        to: readers[0],
        bundle,
        label: true,
        stuck: bundle.stuck,
      });
      continue;
    }
    const frames = new Set([...writers, ...readers].map((id) => boxes.get(id)?.frame ?? ''));
    const hub = box(
      `channel ${bundle.id}`,
      'hub',
      bundle.label,
      [],
      frames.size === 1 ? [...frames][0] : '',
    );
    hub.bundle = bundle;
    hub.count = bundle.channels.length;
    hub.stuck = bundle.stuck;
    hub.rate = bundle.rate;
    boxes.set(hub.id, hub);
    /** @param {boolean} writes @param {string} id */
    const isRed = (writes, id) =>
      bundle.channels.some((one) => redEnds.has(`${one.id}\t${writes}\t${id}`));
    for (const from of writers) {
      const id = `${from} ⇒ ${hub.id}`;
      lines.set(id, { id, from, to: hub.id, bundle, label: false, stuck: isRed(true, from) });
    }
    for (const to of readers) {
      const id = `${hub.id} ⇒ ${to}`;
      lines.set(id, { id, from: hub.id, to, bundle, label: false, stuck: isRed(false, to) });
    }
  }
  return { lines, unknown };
}

/** @param {Bundle} to @param {Channel} one @param {boolean} red */
function add(to, one, red) {
  const n = to.channels.push(one);
  if (one.rate !== null) to.rate = (to.rate ?? 0) + one.rate;
  to.depth += one.depth;
  to.capacity += one.capacity;
  to.dropped += one.dropped;
  to.reading += (one.reading - to.reading) / n;
  to.writing += (one.writing - to.writing) / n;
  to.stuck ||= red;
}

/** Returns one name for channels that are drawn as one. @param {Channel[]} channels */
function bundleName(channels) {
  if (channels.length === 1) return channels[0].name;
  const bases = new Set(channels.map((one) => one.name.replace(/\[\d+\]|\d+$/, '')));
  const [base] = bases;
  return bases.size === 1 && base
    ? `${base} ×${thousands(channels.length)}`
    : `${thousands(channels.length)} channels`;
}

// --- knots ---------------------------------------------------------------------------------------

/** @param {{path: string, pid: number}} row */
const key = (row) => `${row.pid} ${row.path}`;

/**
 * Returns the stuck processes that wait only for one another: every process that such a process
 * waits for waits for it in turn.
 * @param {Look} look
 */
export function knots(look) {
  const by = new Map(look.stuck.map((one) => [one.path, one]));
  /** @param {string} path */
  const reached = (path) => {
    /** @type {Set<string>} */
    const found = new Set();
    const next = [path];
    for (let one = next.pop(); one !== undefined; one = next.pop())
      for (const other of by.get(one)?.waits_for ?? [])
        if (!found.has(other)) {
          found.add(other);
          next.push(other);
        }
    return found;
  };
  const reach = new Map(look.stuck.map((one) => [one.path, reached(one.path)]));
  const knot = look.stuck.filter((one) => {
    const to = reach.get(one.path);
    return to && [...to].every((other) => reach.get(other)?.has(one.path));
  });
  return new Set(knot.map(key));
}

/** Returns the sentence about the knot, which is shown above the verdict. @param {Look} look */
export function knotSentence(look) {
  const knot = knots(look);
  if (!look.stuck.length) return '';
  const paths = look.stuck.filter((one) => knot.has(key(one))).map((one) => `\`${one.path}\``);
  const more = look.stuck.length - paths.length;
  const shown =
    paths.length > 4
      ? `${paths.slice(0, 3).join(', ')} and ${paths.length - 3} more`
      : paths.join(' and ');
  const behind = more
    ? `; ${more} more ${more === 1 ? 'waits' : 'wait'} behind ${paths.length === 1 ? 'it' : 'them'}`
    : '';
  return paths.length === 1
    ? `${shown} can never go on: nobody else holds an end where it waits${behind}`
    : `${shown} wait only for one another, and can never go on${behind}`;
}
