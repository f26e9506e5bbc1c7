// The panel with the facts about a box or a channel that was clicked.

import { parts, pressure } from './draw.mjs';
import { largest, percent, perSecond, STATES, thousands, WORDS } from './model.mjs';

/** @import { Box, Bundle, Channel, Drawing, Look, Process, Shares } from './types.d.ts' */
/** @import { History } from './history.mjs' */

const LISTED = 200;

/**
 * Returns an element with attributes, listeners (`onclick`) and children.
 * @param {string} tag
 * @param {Record<string, unknown>} [with_]
 * @param {...(Node | string | null | false)} children
 */
export function h(tag, with_ = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(with_)) {
    if (name.startsWith('on'))
      made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null && child !== false) made.append(child);
  return made;
}

/** @param {number} seconds */
export function span(seconds) {
  if (seconds < 0.0005) return 'just now';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** @param {Shares} shares */
function bar(shares) {
  const of = h('div', { class: 'bar' });
  for (const { state, from, to } of parts(shares))
    of.append(
      h('i', { class: `fill-${state}`, style: `width:${((to - from) * 100).toFixed(2)}%` }),
    );
  const said = STATES.filter((state) => (shares[state] ?? 0) >= 0.005);
  const list = h('ul', { class: 'shares' });
  for (const state of said)
    list.append(
      h(
        'li',
        {},
        h('i', { class: `dot fill-${state}` }),
        h('span', {}, WORDS[state]),
        h('b', {}, percent(shares[state] ?? 0)),
      ),
    );
  return h('div', {}, of, list);
}

/** @param {[string, string | Node | null][]} rows */
function facts(rows) {
  const list = h('dl');
  for (const [name, value] of rows) if (value) list.append(h('dt', {}, name), h('dd', {}, value));
  return list;
}

/** Draws the last minute as a line. @param {(number | null)[]} values @param {string} what */
function sparkline(values, what) {
  const known = values.filter((v) => v !== null);
  if (known.length < 2) return null;
  const most = Math.max(...known, 1e-9);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'spark');
  svg.setAttribute('viewBox', '0 0 260 44');
  svg.setAttribute('preserveAspectRatio', 'none');
  const step = 260 / Math.max(values.length - 1, 1);
  const points = values.map(
    (v, i) => `${(i * step).toFixed(1)},${(42 - (40 * (v ?? 0)) / most).toFixed(1)}`,
  );
  for (const [tag, all] of [
    ['polygon', [`0,44`, ...points, `260,44`]],
    ['polyline', points],
  ]) {
    const line = document.createElementNS(
      'http://www.w3.org/2000/svg',
      /** @type {string} */ (tag),
    );
    line.setAttribute('points', /** @type {string[]} */ (all).join(' '));
    svg.append(line);
  }
  return h('figure', {}, svg, h('figcaption', {}, `${what}, at most ${perSecond(most)}`));
}

export class Panel {
  /**
   * @param {HTMLElement} element
   * @param {{ choose: (kind: 'box' | 'bundle', id: string) => void, open: (id: string, open: boolean) => void, close: () => void }} does
   */
  constructor(element, does) {
    this.element = element;
    this.does = does;
    this.pressed = false; // true while the pointer is down; show() then keeps the elements
    element.addEventListener('pointerdown', () => (this.pressed = true));
    addEventListener('pointerup', () => (this.pressed = false));
  }

  /** @param {Drawing} drawing @param {Look} look @param {History} history @param {{kind: 'box' | 'bundle', id: string} | null} chosen */
  show(drawing, look, history, chosen) {
    const { element } = this;
    if (this.pressed) return;
    const box = chosen?.kind === 'box' ? drawing.boxes.get(chosen.id) : undefined;
    const bundle = chosen?.kind === 'bundle' ? bundleOf(drawing, chosen.id) : undefined;
    element.hidden = !chosen;
    if (!chosen) return;
    const scrolled = element.scrollTop;
    const close = h(
      'button',
      { class: 'close', title: 'close (Escape)', 'aria-label': 'close', onclick: this.does.close },
      '×',
    );
    element.replaceChildren(close);
    if (box)
      element.append(
        ...(box.kind === 'host'
          ? this.host(box, look)
          : box.count === 1
            ? this.process(box, look, drawing)
            : this.many(box, look)),
      );
    else if (bundle) element.append(...this.bundle(bundle, drawing, history));
    else element.append(h('p', { class: 'gone' }, 'This is not there any more.'));
    element.scrollTop = scrolled;
  }

  /** @param {Box} box @param {Look} look @param {Drawing} drawing */
  process(box, look, drawing) {
    const [row] = box.rows;
    const stuck = look.stuck.find((one) => one.path === row.path && one.pid === row.pid);
    const os = look.os_processes.find((one) => one.pid === row.pid);
    return [
      h('h2', {}, box.label),
      h('p', { class: 'path' }, row.path),
      stuck
        ? h(
            'p',
            { class: 'alarm' },
            `It can never go on: it waits for ${stuck.waits_for.join(' and ') || 'nobody'}.`,
          )
        : '',
      h('p', { class: `where state-${row.now}` }, row.where || WORDS[row.now]),
      facts([
        ['since', `${row.before ? 'more than ' : ''}${span(row.seconds)}`],
        ['runs as', row.kind === 'board' ? null : row.kind],
        [row.kind === 'board' ? 'board' : 'host', row.host || null],
        [
          'OS process',
          row.kind !== 'board' && (look.os_processes.length > 1 || row.host)
            ? `${os?.number ?? row.pid}`
            : null,
        ],
        ['operations', row.rate === null ? null : perSecond(row.rate)],
        ['CPU', row.cpu === null ? null : percent(row.cpu)],
      ]),
      h('h3', {}, `in the last ${span(look.seconds)}`),
      bar(row.share),
      ...this.ends(row, look, drawing),
    ];
  }

  /** Returns the facts about a host without a process. @param {Box} box @param {Look} look */
  host(box, look) {
    const host = look.hosts.find((one) => one.name === box.label);
    return [
      h('h2', {}, box.label),
      h('p', { class: 'path' }, `host of ${look.network}`),
      h('p', { class: 'where' }, host?.text || 'No process runs on this host now.'),
    ];
  }

  /** @param {Process} row @param {Look} look @param {Drawing} drawing */
  ends(row, look, drawing) {
    const by = new Map(look.channels.map((one) => [one.id, one]));
    const waits = new Set(row.waits.map(([id, writes]) => `${id} ${writes}`));
    return [true, false].map((writing) => {
      const of = row.holds.filter(([, writes]) => writes === writing);
      if (!of.length) return '';
      const list = h('ul', { class: 'list' });
      for (const [id] of of.slice(0, LISTED)) {
        const channel = by.get(id);
        if (channel) list.append(this.channel(channel, drawing, waits.has(`${id} ${writing}`)));
      }
      return h('section', {}, h('h3', {}, writing ? 'writes to' : 'reads from'), list);
    });
  }

  /** @param {Channel} channel @param {Drawing} drawing @param {boolean} [waits] */
  channel(channel, drawing, waits = false) {
    const bundle = drawn(drawing).find((one) => one.channels.includes(channel));
    const text = [
      perSecond(channel.rate),
      channel.capacity ? `${channel.depth} of ${channel.capacity}` : '',
      waits ? 'waits here' : '',
    ];
    const click = () => bundle && this.does.choose('bundle', bundle.id);
    return h(
      'li',
      {},
      h('button', { onclick: click, disabled: bundle ? null : '' }, channel.name),
      h('span', {}, text.filter(Boolean).join(' · ')),
    );
  }

  /** @param {Box} box @param {Look} look */
  many(box, look) {
    /** @type {Map<string, number>} */
    const now = new Map();
    for (const row of box.rows) now.set(WORDS[row.now], (now.get(WORDS[row.now]) ?? 0) + 1);
    const does = [...now].sort((a, b) => b[1] - a[1]).map(([word, n]) => `${thousands(n)} ${word}`);
    /** @param {Process} row */
    const weight = (row) => (row.share.runs ?? 0) + (row.share.time ?? 0) + (row.share.io ?? 0);
    const heavy = [...box.rows].sort((a, b) => weight(b) - weight(a) || (a.path < b.path ? -1 : 1));
    const list = h('ul', { class: 'list members' });
    for (const row of heavy.slice(0, LISTED))
      list.append(
        h(
          'li',
          {},
          h('i', { class: `dot fill-${largest(row.share)}` }),
          h('span', { class: 'who', title: row.where }, row.path),
          h('b', {}, percent(weight(row))),
          h('small', {}, row.where),
        ),
      );
    const pids = new Set(box.rows.map((row) => row.pid));
    return [
      h('h2', {}, box.label),
      h(
        'p',
        { class: 'path' },
        `${thousands(box.count)} processes${pids.size > 1 ? ` in ${pids.size} OS processes` : ''}`,
      ),
      box.kind === 'folded'
        ? h('button', { class: 'open', onclick: () => this.does.open(box.id, true) }, 'open')
        : '',
      facts([
        ['now', does.join(', ')],
        ['operations', box.rate === null ? null : perSecond(box.rate)],
        ['channels within', box.inside ? thousands(box.inside) : null],
      ]),
      h('h3', {}, `in the last ${span(look.seconds)}, the mean`),
      bar(box.shares),
      h('h3', {}, 'the heaviest'),
      list,
      heavy.length > LISTED
        ? h('p', { class: 'path' }, `and ${thousands(heavy.length - LISTED)} more`)
        : '',
    ];
  }

  /** @param {Bundle} bundle @param {Drawing} drawing @param {History} history */
  bundle(bundle, drawing, history) {
    /** @param {string} id */
    const end = (id) => {
      const box = drawing.boxes.get(id);
      const label = box ? `${box.label}${box.count > 1 ? ` (${thousands(box.count)})` : ''}` : id;
      return h(
        'li',
        {},
        h('button', { onclick: () => this.does.choose('box', id) }, label),
        h('span', {}, box?.text ?? ''),
      );
    };
    /** @param {string} title @param {string[]} ids */
    const side = (title, ids) =>
      h(
        'section',
        {},
        h('h3', {}, title),
        ids.length
          ? h('ul', { class: 'list' }, ...ids.map(end))
          : h('p', { class: 'path' }, 'nobody that is known'),
      );
    const rates = history.moments.map((m) =>
      bundle.channels.some((c) => (m.rates.get(c.id) ?? null) !== null)
        ? bundle.channels.reduce((sum, c) => sum + (m.rates.get(c.id) ?? 0), 0)
        : null,
    );
    const said = {
      full: 'its writers wait: what reads is slower',
      empty: 'its readers wait: what writes is slower',
      flows: 'it flows: hardly anybody waits',
    }[pressure(bundle)];
    return [
      h('h2', {}, bundle.label),
      h(
        'p',
        { class: 'path' },
        bundle.channels.length > 1 ? `${thousands(bundle.channels.length)} channels` : 'channel',
      ),
      bundle.stuck
        ? h('p', { class: 'alarm' }, 'A process waits here that can never go on.')
        : h('p', { class: `where press-${pressure(bundle)}` }, said),
      facts([
        ['values', perSecond(bundle.rate)],
        [
          'in its buffer',
          bundle.capacity
            ? `${thousands(bundle.depth)} of ${thousands(bundle.capacity)}`
            : 'it has none',
        ],
        ['dropped', bundle.dropped ? thousands(bundle.dropped) : null],
        ['somebody waits to write', percent(bundle.writing)],
        ['somebody waits to read', percent(bundle.reading)],
      ]),
      sparkline(rates, 'values of the last minute') ?? '',
      side('written by', bundle.writers),
      side('read by', bundle.readers),
      bundle.channels.length > 1
        ? h(
            'section',
            {},
            h('h3', {}, 'channels'),
            h(
              'ul',
              { class: 'list' },
              ...[...bundle.channels]
                .sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0))
                .slice(0, LISTED)
                .map((one) =>
                  h(
                    'li',
                    {},
                    h('span', { class: 'who' }, one.name),
                    h(
                      'span',
                      {},
                      `${perSecond(one.rate)}${one.capacity ? ` · ${one.depth} of ${one.capacity}` : ''}`,
                    ),
                  ),
                ),
            ),
          )
        : '',
    ];
  }
}

/** @param {Drawing} drawing */
const drawn = (drawing) => [...drawing.lines.values()].map((line) => line.bundle);

/** @param {Drawing} drawing @param {string} id */
const bundleOf = (drawing, id) => drawn(drawing).find((one) => one.id === id);
