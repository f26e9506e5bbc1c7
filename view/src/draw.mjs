// The network as SVG.
//
// Invariants
//  - An element exists as long as its box, line or frame; only changed attributes are set again.
//  - The colours and their meaning are in page.css; an element has a class for its state.

import { select } from 'd3-selection';
import { curveBasis, line as curve } from 'd3-shape';
import { zoom, zoomIdentity } from 'd3-zoom';
import { place } from './layout.mjs';
import { perSecond, STATES, thousands } from './model.mjs';

/** @import { Box, Drawing, Frame, Line, Shares } from './types.d.ts' */
/** @typedef {{ kind: 'box' | 'bundle', id: string }} Chosen */

const path = curve(
  /** @param {{x: number, y: number}} p */ (p) => p.x,
  (p) => p.y,
).curve(curveBasis);

/** @param {string} text @param {number} most */
export const short = (text, most) =>
  text.length <= most
    ? text
    : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(text.length - (most >> 1))}`;

/**
 * Returns whether a channel flows, or is full or empty because one side waits. @param {{reading:
 * number, writing: number}} of
 */
export const pressure = ({ reading, writing }) =>
  Math.max(reading, writing) < 0.15 ? 'flows' : writing > reading ? 'full' : 'empty';

/** The speed of a line, from 0 to 6. @param {number | null} rate */
const speed = (rate) => Math.min(Math.log10(1 + (rate ?? 0)), 6);
/** @param {number | null} rate */
const thick = (rate) => 1.4 + speed(rate) * 1.25;

/** The parts of a bar: [state, from, to] from 0 to 1. @param {Shares} shares */
export function parts(shares) {
  let from = 0;
  return STATES.filter((state) => shares[state]).map((state) => {
    const to = Math.min(from + (shares[state] ?? 0), 1);
    const part = { state, from, to };
    from = to;
    return part;
  });
}

export class Picture {
  /**
   * @param {SVGSVGElement} svg
   * @param {(chosen: Chosen | null) => void} choose
   * @param {(id: string, open: boolean) => void} open
   */
  constructor(svg, choose, open) {
    this.choose = choose;
    this.open = open;
    this.svg = select(svg);
    this.all = this.svg.append('g');
    this.frames = this.all.append('g').attr('class', 'frames');
    this.lines = this.all.append('g').attr('class', 'lines');
    this.labels = this.all.append('g').attr('class', 'labels');
    this.boxes = this.all.append('g').attr('class', 'boxes');
    /** @type {import('d3-zoom').ZoomBehavior<SVGSVGElement, unknown>} */
    this.zoom = zoom();
    this.zoom.scaleExtent([0.05, 3]).on('zoom', (event) => {
      this.all.attr('transform', event.transform);
      if (event.sourceEvent) this.moved = true;
    });
    this.svg.call(this.zoom).on('dblclick.zoom', null);
    this.svg.on('click', (event) => event.target === svg && choose(null));
    this.moved = false; // true if the user has moved the picture, which is then no longer fitted
    this.shape = '';
    /** @type {ReturnType<typeof place> | null} */
    this.places = null;
  }

  /** @param {Drawing} drawing @param {Chosen | null} chosen @param {string} only */
  show(drawing, chosen, only) {
    const fresh = drawing.shape !== this.shape || !this.places;
    if (fresh) {
      this.places = place(drawing);
      this.shape = drawing.shape;
    }
    this.drawFrames([...drawing.frames.values()]);
    this.drawLines([...drawing.lines.values()], chosen);
    this.drawBoxes(
      [...drawing.boxes.values()].filter((b) => b.kind !== 'grid'),
      chosen,
      only.toLowerCase(),
    );
    if (fresh && !this.moved) this.fit();
  }

  /** Shows the whole network, as large as it fits. */
  fit() {
    const node = this.svg.node();
    if (!this.places || !node) return;
    const { clientWidth: w, clientHeight: h } = node;
    const { width, height } = this.places;
    if (!w || !h || !width || !height) return;
    const k = Math.min(w / width, (h - 10) / height, 1.35);
    const to = zoomIdentity.translate((w - width * k) / 2, (h - height * k) / 2).scale(k);
    this.svg.call(this.zoom.transform, to);
    this.moved = false;
  }

  /** @param {Frame[]} frames */
  drawFrames(frames) {
    const places = /** @type {NonNullable<typeof this.places>} */ (this.places).frames;
    const all = this.frames
      .selectAll('g.frame')
      .data(frames, (f) => /** @type {Frame} */ (f).id)
      .join((enter) => {
        const g = enter
          .append('g')
          .attr('class', (f) => `frame ${f.opens === null ? 'os' : 'group'}`);
        g.append('rect').attr('rx', 14);
        g.append('text').attr('class', 'title');
        const fold = g
          .filter((f) => f.opens !== null)
          .append('g')
          .attr('class', 'fold');
        fold.append('rect').attr('width', 18).attr('height', 18).attr('rx', 5);
        fold.append('text').attr('x', 9).attr('y', 13).text('–');
        fold.append('title').text('fold');
        fold.attr('role', 'button').on('click', (_, f) => this.open(f.opens ?? '', false));
        return g;
      });
    all.order().each((f, i, nodes) => {
      const at = places.get(f.id);
      if (!at) return;
      const g = select(nodes[i]).attr('data-id', f.id);
      const [x, y] = [at.x - at.width / 2, at.y - at.height / 2];
      g.select('rect').attr('x', x).attr('y', y).attr('width', at.width).attr('height', at.height);
      const title = g
        .select('text.title')
        .attr('x', x + 14)
        .attr('y', y + 19);
      title.text(short(f.label, Math.max(at.width / 8 - 6, 8)));
      if (f.text && at.width > 260)
        title.append('tspan').attr('class', 'more').attr('dx', 10).text(f.text);
      g.select('g.fold').attr('transform', `translate(${x + at.width - 26},${y + 7})`);
    });
  }

  /** @param {Line[]} lines @param {Chosen | null} chosen */
  drawLines(lines, chosen) {
    const routes = /** @type {NonNullable<typeof this.places>} */ (this.places).routes;
    this.lines
      .selectAll('g.line')
      .data(lines, (l) => /** @type {Line} */ (l).id)
      .join((enter) => {
        const g = enter.append('g');
        for (const name of ['touch', 'base', 'flow']) g.append('path').attr('class', name);
        g.append('path').attr('class', 'head').attr('d', 'M-9,-5.5L1,0L-9,5.5Z');
        return g.on('click', (_, l) => this.choose({ kind: 'bundle', id: l.bundle.id }));
      })
      .each((l, i, nodes) => {
        const route = routes.get(l.id);
        if (!route) return;
        const d = path(route.points) ?? '';
        const width = thick(l.bundle.rate);
        const on = chosen?.kind === 'bundle' && chosen.id === l.bundle.id;
        const g = select(nodes[i])
          .attr('data-id', l.id)
          .attr('class', `line ${pressure(l.bundle)}${l.stuck ? ' stuck' : ''}${on ? ' on' : ''}`);
        g.selectAll('path:not(.head)').attr('d', d);
        g.select('.base').style('stroke-width', `${width}px`);
        const still = (l.bundle.rate ?? 0) < 0.05;
        g.select('.flow')
          .style('display', still ? 'none' : 'inline')
          .style('stroke-width', `${Math.max(width * 0.8, 2.6)}px`)
          .style('animation-duration', `${(2.6 / (1 + speed(l.bundle.rate))).toFixed(2)}s`);
        const [b, a] = [
          route.points[route.points.length - 1],
          route.points[route.points.length - 2],
        ];
        const turn = (Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI;
        g.select('.head').attr(
          'transform',
          `translate(${b.x},${b.y}) rotate(${turn}) scale(${0.8 + width / 12})`,
        );
      });
    this.labels
      .selectAll('g.label')
      .data(
        lines.filter((l) => l.label),
        (l) => /** @type {Line} */ (l).id,
      )
      .join((enter) => {
        const g = enter.append('g').attr('tabindex', 0).attr('role', 'button');
        g.append('rect').attr('class', 'back').attr('rx', 7);
        g.append('text').attr('class', 'name').attr('y', -3);
        g.append('text').attr('class', 'rate').attr('y', 11);
        g.append('rect').attr('class', 'room').attr('height', 3).attr('rx', 1.5).attr('y', 16);
        g.append('rect').attr('class', 'filled').attr('height', 3).attr('rx', 1.5).attr('y', 16);
        g.append('title');
        return g
          .on('click', (_, l) => this.choose({ kind: 'bundle', id: l.bundle.id }))
          .on(
            'keydown',
            (e, l) => e.key === 'Enter' && this.choose({ kind: 'bundle', id: l.bundle.id }),
          );
      })
      .each((l, i, nodes) => {
        const { bundle } = l;
        const route = routes.get(l.id);
        const on = chosen?.kind === 'bundle' && chosen.id === bundle.id;
        const g = select(nodes[i])
          .attr('data-id', bundle.id)
          .attr('class', `label ${pressure(bundle)}${l.stuck ? ' stuck' : ''}${on ? ' on' : ''}`)
          .attr('transform', `translate(${route?.x ?? 0},${route?.y ?? 0})`);
        const name = short(bundle.label, 16);
        const rate = perSecond(bundle.rate);
        const w = Math.max(name.length * 6.9, rate.length * 6.3, 34) + 14;
        g.select('.back')
          .attr('x', -w / 2)
          .attr('y', -17)
          .attr('width', w)
          .attr('height', bundle.capacity ? 40 : 33);
        g.select('.name').text(name);
        g.select('.rate').text(rate);
        const room = bundle.capacity ? w - 18 : 0;
        const filled = room * Math.min(bundle.depth / (bundle.capacity || 1), 1);
        g.select('.room')
          .attr('x', -room / 2)
          .attr('width', room);
        g.select('.filled')
          .attr('x', -room / 2)
          .attr('width', filled);
        g.select('title').text(
          bundle.capacity
            ? `${bundle.label}: ${bundle.depth} of ${bundle.capacity} in its buffer`
            : bundle.label,
        );
      });
  }

  /** @param {Box[]} boxes @param {Chosen | null} chosen @param {string} only */
  drawBoxes(boxes, chosen, only) {
    const places = /** @type {NonNullable<typeof this.places>} */ (this.places).boxes;
    this.boxes
      .selectAll('g.box')
      .data(boxes, (b) => /** @type {Box} */ (b).id)
      .join((enter) => this.enter(enter))
      .each((b, i, nodes) => {
        const at = places.get(b.id);
        if (!at) return;
        const node = nodes[i];
        const bundle = b.bundle;
        const on = bundle
          ? chosen?.kind === 'bundle' && chosen.id === bundle.id
          : chosen?.kind === 'box' && chosen.id === b.id;
        const found =
          !only ||
          [b.label, ...b.rows.map((row) => `${row.path} ${row.where}`)].some((text) =>
            text.toLowerCase().includes(only),
          );
        const state = bundle ? pressure(bundle) : b.main;
        const g = select(node)
          .attr('data-id', b.id)
          .attr(
            'class',
            `box ${b.kind} ${state}${b.slow ? ' slow' : ''}${b.stuck ? ' stuck' : ''}${on ? ' on' : ''}${found ? '' : ' dim'}`,
          )
          .style('transform', `translate(${at.x - at.width / 2}px,${at.y - at.height / 2}px)`)
          .attr('aria-label', `${b.label}, ${bundle ? 'channel' : b.text}`);
        if (bundle) {
          g.select('.name').text(short(b.label, 17));
          g.select('.sub').text(
            perSecond(bundle.rate) +
              (bundle.capacity ? ` · ${bundle.depth} of ${bundle.capacity}` : ''),
          );
          return;
        }
        const many = b.kind !== 'process' && b.kind !== 'host';
        g.select('.name').text(short(b.label, many ? 19 : 23));
        g.select('.sub').text(
          b.stuck ? 'can never go on' : b.text + (b.rate ? ` · ${perSecond(b.rate)}` : ''),
        );
        g.select('.count').style('display', many ? 'inline' : 'none');
        const text = `${thousands(b.count)}`;
        g.select('.count rect')
          .attr('width', text.length * 7 + 12)
          .attr('x', 182 - text.length * 7 - 12);
        g.select('.count text')
          .text(text)
          .attr('x', 182 - (text.length * 7 + 12) / 2);
        g.selectAll('.back').style('display', many ? 'inline' : 'none');
        g.select('.bars')
          .selectAll('rect')
          .data(parts(b.shares), (p) => /** @type {{state: string}} */ (p).state)
          .join('rect')
          .attr('class', (p) => p.state)
          .attr('height', 5)
          .attr('x', (p) => 12 + p.from * 168)
          .attr('width', (p) => Math.max((p.to - p.from) * 168 - 0.5, 0));
        g.select('.tag').style('display', b.slow && !b.stuck ? 'inline' : 'none');
        g.select('.tag text').text(b.tag);
      });
  }

  /** @param {any} enter */
  enter(enter) {
    const g = enter.append('g').attr('tabindex', 0).attr('role', 'button');
    const hub = g.filter((/** @type {Box} */ b) => b.kind === 'hub');
    hub.append('rect').attr('class', 'card').attr('width', 128).attr('height', 36).attr('rx', 18);
    hub.append('text').attr('class', 'name').attr('x', 64).attr('y', 15);
    hub.append('text').attr('class', 'sub').attr('x', 64).attr('y', 28);
    const box = g.filter((/** @type {Box} */ b) => b.kind !== 'hub');
    for (const n of [2, 1])
      box
        .append('rect')
        .attr('class', 'back')
        .attr('rx', 11)
        .attr('width', 192 - n * 10)
        .attr('height', 64)
        .attr('x', n * 5)
        .attr('y', n * 4.5);
    box.append('rect').attr('class', 'card').attr('rx', 11).attr('width', 192).attr('height', 64);
    box.append('text').attr('class', 'name').attr('x', 12).attr('y', 22);
    box.append('text').attr('class', 'sub').attr('x', 12).attr('y', 39);
    box
      .append('rect')
      .attr('class', 'track')
      .attr('x', 12)
      .attr('y', 49)
      .attr('width', 168)
      .attr('height', 5)
      .attr('rx', 2.5);
    box.append('g').attr('class', 'bars').attr('transform', 'translate(0,49)');
    const count = box.append('g').attr('class', 'count');
    count.append('rect').attr('y', 9).attr('height', 17).attr('rx', 8.5);
    count.append('text').attr('y', 21.5);
    const tag = box.append('g').attr('class', 'tag').attr('transform', 'translate(106,-9)');
    tag.append('rect').attr('width', 74).attr('height', 17).attr('rx', 8.5);
    tag.append('text').attr('x', 37).attr('y', 12.5);
    /** @param {Box} b */
    const chosen = (b) =>
      this.choose(b.bundle ? { kind: 'bundle', id: b.bundle.id } : { kind: 'box', id: b.id });
    g.on('click', (/** @type {Event} */ _, /** @type {Box} */ b) => chosen(b))
      .on(
        'dblclick',
        (/** @type {Event} */ _, /** @type {Box} */ b) =>
          b.kind === 'folded' && this.open(b.id, true),
      )
      .on(
        'keydown',
        (/** @type {KeyboardEvent} */ e, /** @type {Box} */ b) => e.key === 'Enter' && chosen(b),
      );
    return g;
  }
}
