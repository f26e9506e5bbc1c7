// Draws the last minute: a row for each box, a column for each look, in the colours of the states.
//
// Invariant: the newest look is at the right edge, and a second has the same width everywhere.

import { SECONDS } from './history.mjs';
import { parts, short } from './draw.mjs';

/** @import { Drawing } from './types.d.ts' */
/** @import { History, Moment } from './history.mjs' */

const ROW = 17;
const NAME = 168; // the width of the names at the left
const ROWS = 14;

export class Timeline {
  /** @param {HTMLCanvasElement} canvas @param {(moment: Moment | null) => void} choose @param {(id: string) => void} box */
  constructor(canvas, choose, box) {
    this.canvas = canvas;
    /** @type {{ from: number, to: number, moment: Moment }[]} */
    this.columns = [];
    /** @type {string[]} */
    this.rows = [];
    canvas.addEventListener('click', (event) => {
      const { left, top } = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - left, event.clientY - top];
      if (x < NAME) {
        const id = this.rows[Math.floor((y - ROW) / ROW)];
        if (id !== undefined) box(id);
        return;
      }
      const column = this.columns.find(({ from, to }) => x >= from && x < to);
      choose(column?.moment ?? null);
    });
  }

  /** @param {History} history @param {Drawing} drawing @param {Moment | null} shown */
  draw(history, drawing, shown) {
    const boxes = [...drawing.boxes.values()].filter((box) => !box.bundle && box.kind !== 'grid');
    const labels = new Map(boxes.map((box) => [box.id, box]));
    const ids = history.heaviest(boxes.map((box) => box.id).filter((id) => !id.endsWith('+')));
    this.rows = ids.slice(0, ROWS);
    const { canvas } = this;
    const style = getComputedStyle(canvas);
    /** @param {string} name */
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = ROW * (this.rows.length + 1) + 16;
    canvas.style.height = `${height}px`;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext('2d');
    if (!pen || !width) return;
    pen.scale(scale, scale);
    pen.font = '11.5px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const last = history.moments[history.moments.length - 1];
    const end = last ? last.at : 0;
    const second = (width - NAME - 12) / SECONDS;
    /** @param {number} at */
    const x = (at) => width - 12 - (end - at) * second;
    this.columns = history.moments.map((moment, i) => {
      const before = history.moments[i - 1];
      const gap = before && moment.at - before.at < moment.seconds * 2 + 0.5;
      return {
        from: Math.max(gap ? x(before.at) : x(moment.at - moment.seconds), NAME),
        to: x(moment.at),
        moment,
      };
    });
    // The verdict, above all rows: red for a knot, the accent if a process is slow.
    const kinds = {
      stuck: 'stuck',
      bottleneck: 'runs',
      equal: 'runs',
      outside: 'time',
      scheduler: 'due',
    };
    for (const { from, to, moment } of this.columns) {
      pen.fillStyle = colour(kinds[/** @type {keyof typeof kinds} */ (moment.kind)] ?? 'track');
      pen.fillRect(from, 5, Math.max(to - from - 0.75, 0.75), 6);
    }
    pen.fillStyle = colour('muted');
    pen.fillText('verdict', 0, 8);
    this.rows.forEach((id, i) => {
      const y = ROW * (i + 1);
      const box = labels.get(id);
      pen.fillStyle = colour(box?.stuck ? 'stuck' : 'text');
      const host = box?.rows[0]?.host;
      const on = host && id !== `${host}:` ? `${host}:` : '';
      const text = `${on}${box?.label ?? id}${box && box.count > 1 ? ` ×${box.count}` : ''}`;
      pen.fillText(short(text, 25), 0, y + ROW / 2);
      pen.fillStyle = colour('track');
      pen.fillRect(NAME, y + 2, width - 12 - NAME, ROW - 4);
      for (const { from, to, moment } of this.columns)
        for (const part of parts(moment.shares.get(id) ?? {})) {
          pen.fillStyle = colour(part.state);
          const [a, b] = [part.from, part.to].map((share) => (ROW - 4) * share);
          pen.fillRect(from, y + ROW - 2 - b, Math.max(to - from - 0.75, 0.75), b - a);
        }
    });
    pen.fillStyle = colour('muted');
    const bottom = ROW * (this.rows.length + 1) + 8;
    for (let s = 0; s <= SECONDS; s += 10) {
      pen.textAlign = s === 0 ? 'right' : s === SECONDS ? 'left' : 'center';
      pen.fillText(s ? `−${s} s` : 'now', x(end - s), bottom);
    }
    pen.textAlign = 'left';
    const marked = this.columns.find(({ moment }) => moment === shown);
    if (marked) {
      pen.strokeStyle = colour('accent');
      pen.lineWidth = 2;
      pen.strokeRect(marked.from - 1, 1, Math.max(marked.to - marked.from, 2) + 1, height - 18);
    }
    const hidden = ids.length - this.rows.length;
    canvas.setAttribute(
      'aria-label',
      `the last minute of ${this.rows.length} boxes${hidden > 0 ? `; ${hidden} lighter ones are not shown` : ''}`,
    );
    return hidden;
  }
}
