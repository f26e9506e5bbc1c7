// @ts-check
/** Line and bar charts as SVG. */
const W = 760;
const H = 380;
const BOX = { left: 70, right: 200, top: 46, bottom: 66 };
const COLOURS = ['#1f6feb', '#d1495b', '#2a9d5c', '#8957a8', '#b07d2b', '#5b6b7a', '#111111'];

/** @param {number} x */
const r = (x) => Math.round(x * 100) / 100;
const escape = (/** @type {string} */ s) => s.replace(/&/g, '&amp;').replace(/</g, '&lt;');
/** @param {number} x @param {number} y @param {string} words @param {string} [more] */
const text = (x, y, words, more = '') =>
  `<text x="${r(x)}" y="${r(y)}" font-size="12" fill="#22303c" ${more}>${escape(words)}</text>`;

/** Round steps over a range. @param {number} top */
function ticks(top) {
  const rough = top / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10) * power;
  const all = [];
  for (let v = 0; v <= top * 1.0001; v += step) all.push(Number(v.toPrecision(6)));
  return all;
}

/**
 * @param {string} title
 * @param {string} yName
 * @param {number} top
 * @param {(v: number) => number} y
 */
function frame(title, yName, top, y) {
  const parts = [
    `<rect width="${W}" height="${H}" fill="white"/>`,
    text(BOX.left, 26, title, 'font-weight="bold"'),
  ];
  for (const v of ticks(top))
    parts.push(
      `<line x1="${BOX.left}" x2="${W - BOX.right}" y1="${r(y(v))}" y2="${r(y(v))}" stroke="#dde3e8"/>`,
      text(BOX.left - 8, y(v) + 4, String(v), 'text-anchor="end"'),
    );
  parts.push(
    text(
      16,
      (BOX.top + H - BOX.bottom) / 2,
      yName,
      `text-anchor="middle" transform="rotate(-90 16 ${(BOX.top + H - BOX.bottom) / 2})"`,
    ),
  );
  return parts;
}
const wrap = (/** @type {string[]} */ parts) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${W}" height="${H}" viewBox="0 0 ${W} ${H}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">\n${parts.join('\n')}\n</svg>\n`;

/**
 * @param {{ title: string, x: string, y: string, top?: number, series: { name: string, points:
 *   [number, number][], dashed?: boolean }[] }} chart
 *   top: of the y axis; higher values are cut off there
 */
export function lines({ title, x: xName, y: yName, top, series }) {
  const all = series.flatMap((s) => s.points);
  const xs = all.map((p) => p[0]);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const most = top ?? Math.max(...all.map((p) => p[1])) * 1.08;
  const x = (/** @type {number} */ v) =>
    BOX.left + ((v - low) / (high - low)) * (W - BOX.left - BOX.right);
  const y = (/** @type {number} */ v) =>
    H - BOX.bottom - (Math.min(v, most) / most) * (H - BOX.top - BOX.bottom);
  const parts = frame(title, yName, most, y);
  for (const v of ticks(high).filter((v) => v >= low))
    parts.push(text(x(v), H - BOX.bottom + 18, String(v), 'text-anchor="middle"'));
  parts.push(text((BOX.left + W - BOX.right) / 2, H - 14, xName, 'text-anchor="middle"'));
  series.forEach((s, i) => {
    const colour = COLOURS[i % COLOURS.length];
    parts.push(
      `<polyline fill="none" stroke="${colour}" stroke-width="2" ${s.dashed ? 'stroke-dasharray="6 4" ' : ''}points="${s.points.map((p) => `${r(x(p[0]))},${r(y(p[1]))}`).join(' ')}"/>`,
    );
    const at = BOX.top + 12 + 20 * i;
    parts.push(
      `<line x1="${W - BOX.right + 14}" x2="${W - BOX.right + 38}" y1="${at}" y2="${at}" stroke="${colour}" stroke-width="2" ${s.dashed ? 'stroke-dasharray="6 4"' : ''}/>`,
      text(W - BOX.right + 44, at + 4, s.name),
    );
  });
  return wrap(parts);
}

/**
 * @param {{ title: string, y: string, bars: { name: string, value: number, note?: string, group?:
 *   number }[] }} chart group: picks the colour
 */
export function bars({ title, y: yName, bars: all }) {
  const most = Math.max(...all.map((b) => b.value)) * 1.12;
  const right = BOX.right - 170;
  const each = (W - BOX.left - right) / all.length;
  const y = (/** @type {number} */ v) => H - BOX.bottom - (v / most) * (H - BOX.top - BOX.bottom);
  const parts = frame(title, yName, most, y).map((p) =>
    p.replace(`x2="${W - BOX.right}"`, `x2="${W - right}"`),
  );
  all.forEach((b, i) => {
    const left = BOX.left + each * i + each * 0.15;
    parts.push(
      `<rect x="${r(left)}" y="${r(y(b.value))}" width="${r(each * 0.7)}" height="${r(H - BOX.bottom - y(b.value))}" fill="${COLOURS[(b.group ?? 0) % COLOURS.length]}"/>`,
    );
    parts.push(
      text(left + each * 0.35, y(b.value) - 5, b.note ?? String(b.value), 'text-anchor="middle"'),
    );
    b.name
      .split('\n')
      .forEach((row, k) =>
        parts.push(
          text(left + each * 0.35, H - BOX.bottom + 16 + 14 * k, row, 'text-anchor="middle"'),
        ),
      );
  });
  return wrap(parts);
}
