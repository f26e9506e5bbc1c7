// @ts-check
/**
 * A drop as an SVG: the device from the side, the passage seen from the disc, and the edges over
 * time.
 */
import { PINS } from './plant.mjs';

const W = 1180;
const H = 830;
const INK = '#22303c';
const SOFT = '#8a97a3';
const GOOD = '#1b7f4d';
const BAD = '#c0392b';
const BALL = '#5b7fa6';
const WOOD = '#d9b382';

/** @param {number} x */
const r = (x) => Math.round(x * 100) / 100;
/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {string} [body]
 */
const el = (tag, attributes, body = '') =>
  `<${tag} ${Object.entries(attributes)
    .map(([k, v]) => `${k}="${typeof v === 'number' ? r(v) : v}"`)
    .join(' ')}${body ? `>${body}</${tag}>` : '/>'}`;
/**
 * @param {number} x
 * @param {number} y
 * @param {string} words
 * @param {Record<string, string | number>} [more]
 */
const text = (x, y, words, more = {}) =>
  el(
    'text',
    { x, y, fill: INK, 'font-size': 13, ...more },
    words.replace(/&/g, '&amp;').replace(/</g, '&lt;'),
  );
/**
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 * @param {Record<string, string | number>} [more]
 */
const line = (x1, y1, x2, y2, more = {}) =>
  el('line', { x1, y1, x2, y2, stroke: INK, 'stroke-width': 1, ...more });

/** Returns the verdict in words. @param {import('./plant.mjs').Drop} drop */
export function inWords(drop) {
  const { verdict } = drop;
  if (drop.stalled)
    return 'The motor stalled: it was stepped faster than it can follow, and the disc is anywhere.';
  const late = `the hole was ${Math.abs(verdict.errorMicros).toFixed(0)} µs ${verdict.errorMicros < 0 ? 'late' : 'early'}`;
  const turns = `${drop.turnsPerSecond.toFixed(2)} turns a second`;
  if (verdict.outcome === 'passes')
    return `The ball passes through the disc at ${turns}: ${late} of the ${verdict.budgetMicros.toFixed(0)} µs allowed, ${verdict.marginMicros.toFixed(0)} µs to spare.`;
  if (verdict.outcome === 'grazes')
    return `The ball may touch the disc at ${turns}: ${late}; it clears the hole only if tube and disc are aligned better than by eye.`;
  return `The ball hits the disc at ${turns}: ${late}, ${(Math.abs(verdict.lateral) * 1000).toFixed(1)} mm off, and the hole leaves ${(verdict.room * 1000).toFixed(2)} mm.`;
}

/** @param {import('./plant.mjs').Drop} drop @param {import('./geometry.mjs').Geometry} g */
function device(drop, g) {
  const parts = [];
  const x0 = 150;
  const top = 110;
  const mm = 0.85; // pixels per millimetre, vertically
  const wide = 2.2; // horizontally: otherwise the ball would be a dot
  const y = (/** @type {number} */ metres) => top + metres * 1000 * mm;
  const tube = (g.tube * 1000 * wide) / 2;
  parts.push(text(40, 88, 'The fall', { 'font-weight': 'bold' }));
  parts.push(
    el('rect', { x: x0 - 26, y: top - 24, width: 52, height: 13, fill: '#777', rx: 2 }),
    text(x0 + 34, top - 13, 'magnet', { fill: SOFT }),
  );
  parts.push(
    el('rect', {
      x: x0 - tube,
      y: y(0.005),
      width: 2 * tube,
      height: y(g.fall) - y(0.005),
      fill: '#eef4fa',
      stroke: '#b9c9d8',
    }),
  );
  g.gates.forEach((height, i) => {
    const at = y(g.fall - height);
    parts.push(line(x0 - 38, at, x0 + 38, at, { stroke: BAD, 'stroke-dasharray': '3 3' }));
    parts.push(
      text(x0 + 42, at + (i ? 0 : 4), `gate ${i + 1}: ${height * 1000} mm`, {
        fill: SOFT,
        'font-size': 12,
      }),
    );
  });
  for (let ms = 0; ms <= 290; ms += 20) {
    const fallen = drop.fall.fallen(ms / 1000);
    parts.push(
      el('ellipse', {
        cx: x0,
        cy: y(fallen) - (g.ball * 1000 * mm) / 2,
        rx: (g.ball * 1000 * wide) / 2,
        ry: (g.ball * 1000 * mm) / 2,
        fill: BALL,
        opacity: 0.25 + ms / 450,
      }),
    );
    if (ms % 100 === 0 && ms)
      parts.push(
        text(x0 - 34, y(fallen), `${ms} ms`, { 'text-anchor': 'end', fill: SOFT, 'font-size': 12 }),
      );
  }
  const disc = y(g.fall);
  parts.push(
    el('rect', {
      x: 40,
      y: disc,
      width: 220,
      height: Math.max(4, g.thickness * 1000 * mm),
      fill: WOOD,
    }),
  );
  const hole = (g.hole * 1000 * wide) / 2;
  const off = -drop.verdict.lateral * 1000 * wide;
  if (Math.abs(off) < 130)
    parts.push(
      el('rect', {
        x: x0 + off - hole,
        y: disc - 0.5,
        width: 2 * hole,
        height: Math.max(5, g.thickness * 1000 * mm + 1),
        fill: 'white',
      }),
    );
  parts.push(
    text(40, disc + 22, 'disc, its hole as it is on arrival', { fill: SOFT, 'font-size': 12 }),
  );
  parts.push(
    text(40, disc + 40, 'a ball every 20 ms; widths 2.6 times', { fill: SOFT, 'font-size': 12 }),
  );
  return parts;
}

/**
 * Draws the passage in the frame of the disc, where the ball comes at an angle: the thesis's figure
 * 8.5. @param {import('./plant.mjs').Drop} drop
 * @param {import('./geometry.mjs').Geometry} g
 */
function passage(drop, g) {
  const { verdict } = drop;
  const parts = [text(330, 88, 'The passage, seen from the disc', { 'font-weight': 'bold' })];
  const cx = 505;
  const cy = 235;
  const mm = 9;
  const t = g.thickness * 1000 * mm;
  const w = g.hole * 1000 * mm;
  const left = 330;
  const right = 680;
  const clip = el(
    'clipPath',
    { id: 'passage' },
    el('rect', { x: left, y: 105, width: right - left, height: 262 }),
  );
  parts.push(clip);
  parts.push(
    el('rect', {
      x: left,
      y: cy - t / 2,
      width: cx - w / 2 - left,
      height: t,
      fill: WOOD,
      stroke: '#a67c45',
    }),
  );
  parts.push(
    el('rect', {
      x: cx + w / 2,
      y: cy - t / 2,
      width: right - cx - w / 2,
      height: t,
      fill: WOOD,
      stroke: '#a67c45',
    }),
  );
  // On arrival the ball's offset from the hole's centre is -lateral. Seen from the disc, the ball
  // moves against the disc's rotation.
  const at = cx - verdict.lateral * 1000 * mm;
  const slope = Math.cos(verdict.theta) / Math.sin(verdict.theta);
  const radius = (g.ball * 1000 * mm) / 2;
  const colour = drop.passes ? BALL : BAD;
  const centre = (/** @type {number} */ dy) => [at - dy * slope, cy + dy];
  const across = [radius * Math.sin(verdict.theta), radius * Math.cos(verdict.theta)];
  const [tx, ty] = centre(-260);
  const [bx, by] = centre(260);
  const inside = [
    el('polygon', {
      points: [
        [tx - across[0], ty - across[1]],
        [tx + across[0], ty + across[1]],
        [bx + across[0], by + across[1]],
        [bx - across[0], by - across[1]],
      ]
        .map((p) => p.map(r).join(','))
        .join(' '),
      fill: colour,
      opacity: 0.18,
    }),
    line(tx, ty, bx, by, { stroke: colour, 'stroke-dasharray': '6 4' }),
    ...[-92, 0, 92].map((dy) =>
      el('circle', {
        cx: centre(dy)[0],
        cy: centre(dy)[1],
        r: radius,
        fill: colour,
        opacity: dy ? 0.35 : 0.8,
      }),
    ),
  ];
  parts.push(el('g', { 'clip-path': 'url(#passage)' }, inside.join('')));
  parts.push(
    line(cx, cy - t / 2 - 14, cx, cy + t / 2 + 14, { stroke: GOOD, 'stroke-dasharray': '2 3' }),
  );
  const swept = verdict.swept * 1000 * mm;
  const y = 384;
  parts.push(
    line(cx - w / 2, y, cx + w / 2, y, { 'stroke-width': 2 }),
    line(cx - w / 2, y - 5, cx - w / 2, y + 5),
    line(cx + w / 2, y - 5, cx + w / 2, y + 5),
  );
  parts.push(
    text(right, y + 4, `hole ${g.hole * 1000} mm`, { 'text-anchor': 'end', 'font-size': 12 }),
  );
  parts.push(
    line(at - swept / 2, y + 16, at + swept / 2, y + 16, { stroke: colour, 'stroke-width': 4 }),
  );
  parts.push(
    text(right, y + 20, `swept ${(verdict.swept * 1000).toFixed(2)} mm`, {
      'text-anchor': 'end',
      'font-size': 12,
      fill: colour,
    }),
  );
  parts.push(
    text(
      left,
      y + 42,
      `off ${(verdict.lateral * 1000).toFixed(3)} mm = ${verdict.errorMicros.toFixed(1)} µs; room ±${(verdict.room * 1000).toFixed(2)} mm, of which tube and eye may use 1.5`,
      { 'font-size': 12 },
    ),
  );
  return parts;
}

/**
 * Draws the disc from above on arrival.
 * @param {import('./plant.mjs').Drop} drop
 * @param {import('./geometry.mjs').Geometry} g
 */
function above(drop, g) {
  const cx = 930;
  const cy = 245;
  const mm = 2.6;
  const parts = [text(740, 88, 'The disc from above, on arrival', { 'font-weight': 'bold' })];
  parts.push(
    el('circle', { cx, cy, r: 54 * mm, fill: WOOD, stroke: '#a67c45' }),
    el('circle', { cx, cy, r: 3, fill: INK }),
  );
  for (let n = 0; n < g.holes; n++) {
    const a = drop.angle + (2 * Math.PI * n) / g.holes;
    parts.push(
      el('circle', {
        cx: cx + g.radius * 1000 * mm * Math.cos(a),
        cy: cy + g.radius * 1000 * mm * Math.sin(a),
        r: (g.hole * 1000 * mm) / 2,
        fill: 'white',
        stroke: '#a67c45',
      }),
    );
  }
  parts.push(
    el('circle', {
      cx: cx + g.radius * 1000 * mm,
      cy,
      r: (g.ball * 1000 * mm) / 2,
      fill: drop.passes ? BALL : BAD,
      opacity: 0.85,
    }),
  );
  parts.push(
    text(
      cx,
      cy + 54 * mm + 22,
      `${drop.turnsPerSecond.toFixed(2)} turns a second; the ball at ${drop.fall.speed.toFixed(2)} m/s`,
      { 'text-anchor': 'middle', 'font-size': 12 },
    ),
  );
  return parts;
}

/**
 * Draws the levels of a pin as a line.
 * @param {import('./plant.mjs').Edge[]} edges
 * @param {number} pin
 * @param {(t: number) => number} x
 * @param {number} from
 * @param {number} to
 * @param {number} y
 */
function trace(edges, pin, x, from, to, y) {
  const own = edges.filter((e) => e.pin === pin);
  let level = 0;
  const before = own.filter((e) => e.at < from);
  if (before.length) level = before[before.length - 1].level;
  else if (own.length) level = 1 - own[0].level;
  let d = `M${r(x(from))},${r(y - 16 * level)}`;
  for (const e of own) {
    if (e.at < from || e.at > to) continue;
    d += `H${r(x(e.at))}V${r(y - 16 * e.level)}`;
  }
  return el('path', { d: `${d}H${r(x(to))}`, fill: 'none', stroke: INK, 'stroke-width': 1.2 });
}

/** @param {import('./plant.mjs').Drop & { edges: import('./plant.mjs').Edge[] }} drop */
function timeline(drop) {
  const parts = [];
  const { edges, released, arrival } = drop;
  const steps = edges.filter((e) => e.pin === PINS.step);
  // Draws the whole fall.
  const from = released - 15000;
  const to = arrival + 15000;
  const x = (/** @type {number} */ t) => 130 + ((t - from) / (to - from)) * 460;
  const rows = /** @type {[string, number, number][]} */ ([
    ['magnet', PINS.magnet, 545],
    ['gate 1', PINS.gates[0], 580],
    ['gate 2', PINS.gates[1], 615],
  ]);
  parts.push(text(40, 500, 'The whole drop', { 'font-weight': 'bold' }));
  for (const [name, pin, y] of rows)
    parts.push(
      text(120, y - 3, name, { 'text-anchor': 'end', 'font-size': 12 }),
      trace(edges, pin, x, from, to, y),
    );
  // Draws the toggle period over time.
  const over = 16; // toggles to average over, because each comes at a whole microsecond
  const periods = steps
    .slice(over)
    .map((e, i) => ({ at: e.at, us: (e.at - steps[i].at) / over }))
    .filter((p) => p.at >= from && p.at <= to);
  const values = periods.map((p) => p.us);
  const mid = values.reduce((a, b) => a + b, 0) / (values.length || 1);
  const low = Math.min(...values, mid * 0.96);
  const high = Math.max(...values, mid * 1.04);
  const py = (/** @type {number} */ us) => 735 - ((us - low) / (high - low)) * 85;
  parts.push(
    el('polyline', {
      points: periods.map((p) => `${r(x(p.at))},${r(py(p.us))}`).join(' '),
      fill: 'none',
      stroke: BALL,
    }),
  );
  parts.push(
    text(120, py(high) + 4, `${high.toFixed(1)} µs`, { 'text-anchor': 'end', 'font-size': 12 }),
    text(120, py(low) + 4, `${low.toFixed(1)} µs`, { 'text-anchor': 'end', 'font-size': 12 }),
  );
  parts.push(
    text(120, (py(high) + py(low)) / 2 + 4, 'step period', {
      'text-anchor': 'end',
      'font-size': 12,
    }),
  );
  for (let ms = 0; ms <= 300; ms += 50)
    parts.push(
      line(x(released + ms * 1000), 740, x(released + ms * 1000), 745),
      text(x(released + ms * 1000), 760, `${ms} ms`, {
        'text-anchor': 'middle',
        'font-size': 12,
        fill: SOFT,
      }),
    );
  parts.push(
    line(x(arrival), 525, x(arrival), 740, {
      stroke: drop.passes ? GOOD : BAD,
      'stroke-dasharray': '4 3',
    }),
  );
  // Draws the end of the fall, enlarged.
  const zfrom = arrival - 6000;
  const zto = arrival + 1500;
  const z = (/** @type {number} */ t) => 720 + ((t - zfrom) / (zto - zfrom)) * 420;
  parts.push(text(640, 500, 'The last milliseconds', { 'font-weight': 'bold' }));
  for (const [name, pin, y] of /** @type {[string, number, number][]} */ ([
    ['step', PINS.step, 575],
    ['gate 2', PINS.gates[1], 615],
  ]))
    parts.push(
      text(710, y - 3, name, { 'text-anchor': 'end', 'font-size': 12 }),
      trace(edges, pin, z, zfrom, zto, y),
    );
  const hole = arrival - drop.verdict.errorMicros;
  const half = drop.verdict.budgetMicros;
  parts.push(text(710, 660, 'hole open', { 'text-anchor': 'end', 'font-size': 12 }));
  const inZoom = (/** @type {number} */ t) => Math.min(zto, Math.max(zfrom, t));
  // Light: the ball clears the hole if tube and disc are aligned exactly; dark: if they are aligned
  // by eye.
  const room = drop.verdict.holeSpeed > 0 ? (drop.verdict.room / drop.verdict.holeSpeed) * 1e6 : 0;
  if (room > 0)
    parts.push(
      el('rect', {
        x: z(inZoom(hole - room)),
        y: 645,
        width: Math.max(0, z(inZoom(hole + room)) - z(inZoom(hole - room))),
        height: 18,
        fill: GOOD,
        opacity: 0.18,
      }),
    );
  if (half > 0)
    parts.push(
      el('rect', {
        x: z(inZoom(hole - half)),
        y: 645,
        width: Math.max(0, z(inZoom(hole + half)) - z(inZoom(hole - half))),
        height: 18,
        fill: GOOD,
        opacity: 0.45,
      }),
    );
  parts.push(
    line(z(arrival), 525, z(arrival), 700, {
      stroke: drop.passes ? GOOD : BAD,
      'stroke-dasharray': '4 3',
    }),
  );
  parts.push(
    text(z(arrival), 718, 'ball in the disc', {
      'text-anchor': 'middle',
      'font-size': 12,
      fill: drop.passes ? GOOD : BAD,
    }),
  );
  for (let ms = -6; ms <= 1; ms++)
    parts.push(
      line(z(arrival + ms * 1000), 740, z(arrival + ms * 1000), 745),
      text(z(arrival + ms * 1000), 760, `${ms} ms`, {
        'text-anchor': 'middle',
        'font-size': 12,
        fill: SOFT,
      }),
    );
  return parts;
}

/**
 * @param {import('./plant.mjs').Drop & { edges: import('./plant.mjs').Edge[], lateness: { worst:
 *   number, best: number } }} drop
 * @param {{ geometry: import('./geometry.mjs').Geometry, controller: string, seed: number }} about
 * @returns {string}
 */
export function picture(drop, { geometry, controller, seed }) {
  const { worst, best } = drop.lateness;
  const steps = `Steps ${(best / 125).toFixed(3)} to ${(worst / 125).toFixed(3)} µs after they were due, through the whole drop with printing.`;
  const parts = [
    el('rect', { x: 0, y: 0, width: W, height: H, fill: 'white' }),
    text(40, 34, inWords(drop), {
      'font-size': 16,
      'font-weight': 'bold',
      fill: drop.passes ? GOOD : BAD,
    }),
    text(
      40,
      58,
      `Controller: ${controller}, seed ${seed}. The fall was ${(Math.abs(drop.fallError) / 1000).toFixed(2)} ms ${drop.fallError < 0 ? 'shorter' : 'longer'} than the nominal one. ${steps}`,
      { fill: SOFT },
    ),
    ...device(drop, geometry),
    ...passage(drop, geometry),
    ...above(drop, geometry),
    ...timeline(drop),
    text(
      40,
      H - 22,
      'Edges from the pads of the emulated RP2040, in exact cycles; disc, ball and photogates from the device’s measures.',
      { fill: SOFT, 'font-size': 12 },
    ),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${W}" height="${H}" viewBox="0 0 ${W} ${H}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">${parts.join('\n')}</svg>\n`;
}
