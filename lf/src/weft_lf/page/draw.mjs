// Draws the program of the page (weft_lf/drawing.py describes the data), and shows details of a
// clicked part.
//
//   data ──► layout()  places the boxes of a reactor in columns, so that edges go to the right; the
//              │       inner reactors first; size() makes a folded reactor one box
//            draw()    makes the SVG
//              │
//            select()  fills the panel: the source line, levels, which reaction waits for which
//
// Invariants
//  - A place depends only on the data and on which reactors are folded.
//  - An edge is drawn if both of its ends are shown; an end in a folded reactor is not shown.
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const FONT = 6.9; // the width of a character, in pixels
const GAP = { x: 56, y: 14, edge: 16, title: 26, lane: 9 };
const MANY = 80; // in a program with more parts the inner reactors are folded at first
const nodes = new Map(); // identifier → reactor, part or port
const parents = new Map(); // identifier → the reactor in which it is
const folded = new Set();
let places = new Map(); // identifier → { x, y, w, h }
let selected = '';
const reversed = {};
for (const [first, all] of Object.entries(data.causes))
  for (const one of all) (reversed[one] ??= []).push(first);

function walk(reactor, parent, depth) {
  nodes.set(reactor.id, reactor);
  if (parent) parents.set(reactor.id, parent);
  reactor.depth = depth;
  for (const port of reactor.ports) nodes.set(port.id, { ...port, kind: 'port', of: reactor.id });
  for (const part of reactor.parts) (nodes.set(part.id, part), parents.set(part.id, reactor));
  for (const child of reactor.children) walk(child, reactor, depth + 1);
}
walk(data.root, null, 0);
const reactors = [...nodes.values()].filter((n) => n.kind === 'reactor');
const foldAll = () => reactors.forEach((r) => r.depth && folded.add(r.id));
if ([...nodes.values()].filter((n) => n.kind !== 'port').length > MANY)
  reactors.forEach((r) => r.depth > 1 && folded.add(r.id));
const loops = new Set(data.loop?.reactions);
const loopEdges = new Set((data.loop?.edges ?? []).map((e) => e.join(' → ')));
const inLoop = (reactor) =>
  reactor.parts.some((p) => loops.has(p.id)) || reactor.children.some(inLoop);

// --- layout -------------------------------------------------------------------------------------

const wide = (text) => text.length * FONT;
const label = (node) =>
  node.kind === 'reactor'
    ? node.name + (node.width === null ? '' : ` [${node.width}]`) + (node.of ? ` : ${node.of}` : '')
    : node.name + (node.kind === 'port' && node.width !== null ? ` [${node.width}]` : '');
const sub = (part) =>
  [
    part.mode,
    part.levels?.length
      ? `level ${part.levels[0]}` + (part.levels[1] > part.levels[0] ? `–${part.levels[1]}` : '')
      : '',
    part.text,
  ]
    .filter(Boolean)
    .join(', ');

/** Returns the box of `reactor` that has an end of an edge: the end itself if it is a part. */
function itemOf(end, reactor) {
  const node = nodes.get(end);
  if (!node) return null;
  if (node.kind !== 'port') return end;
  return node.of === reactor.id ? null : node.of;
}

function size(item) {
  if (item.kind === 'reactor') return folded.has(item.id) ? closed(item) : layout(item);
  const w = Math.max(wide(label(item)), wide(sub(item)) * 0.84, 22) + 26;
  return { w, h: sub(item) ? 40 : 30, inside: [] };
}

/** Puts the ports of a reactor at its left and right edge, each near the height that `want` gives. */
function sides(reactor, w, h, want) {
  const inside = [];
  for (const input of [true, false]) {
    const own = reactor.ports.filter((p) => p.input === input);
    const wishes = own.map((p, i) => [want(p) ?? GAP.title + 14 + i * 20, p]);
    wishes.sort((a, b) => a[0] - b[0]);
    let y = GAP.title + 10;
    for (const [wish, port] of wishes) {
      y = Math.max(y, Math.min(wish, h - 10));
      inside.push({ id: port.id, x: input ? 0 : w, y, w: 0, h: 0 });
      y += 20;
    }
    h = Math.max(h, y - 6);
  }
  return { h, inside };
}

function closed(reactor) {
  const names = (input) =>
    Math.max(0, ...reactor.ports.filter((p) => p.input === input).map((p) => wide(label(p))));
  const w = Math.max(wide(label(reactor)) + 44, names(true) + names(false) + 40);
  const { h, inside } = sides(reactor, w, GAP.title + 12, () => undefined);
  return { w, h, inside };
}

/** Places what an open reactor shows. Returns its size, and the places of all that is inside. */
function layout(reactor) {
  const items = [...reactor.parts, ...reactor.children].map((item) => ({ item, ...size(item) }));
  const at = new Map(items.map((one) => [one.item.id, one]));
  const after = new Map(items.map((one) => [one, []]));
  const before = new Map(items.map((one) => [one, []]));
  const links = reactor.edges.map((e) => [
    at.get(itemOf(e.from, reactor)),
    at.get(itemOf(e.to, reactor)),
  ]);
  for (const [from, to] of links) if (from && to && from !== to) after.get(from).push(to);
  const state = new Map(); // 1: being visited, 2: done; edges that close a circle are left out
  const order = [];
  const visit = (one) => {
    state.set(one, 1);
    after.set(
      one,
      after.get(one).filter((next) => state.get(next) !== 1),
    );
    for (const next of after.get(one)) if (!state.has(next)) visit(next);
    state.set(one, 2);
    order.unshift(one);
  };
  for (const one of [...items].reverse()) if (!state.has(one)) visit(one);
  for (const one of order) {
    one.column ??= 0;
    for (const next of after.get(one)) {
      next.column = Math.max(next.column ?? 0, one.column + 1);
      before.get(next).push(one);
    }
  }
  // A box to which no edge leads is placed directly before the boxes to which its edges lead.
  for (const one of [...order].reverse())
    if (!before.get(one).length && after.get(one).length)
      one.column = Math.min(...after.get(one).map((next) => next.column)) - 1;
  const columns = [];
  for (const one of order) (columns[one.column] ??= []).push(one);
  const mean = (all, otherwise) =>
    all.length ? all.reduce((sum, one) => sum + one.y + one.h / 2, 0) / all.length : otherwise;
  const stack = (column) => {
    let y = GAP.title + 10;
    for (const one of column) ((one.y = y), (y += one.h + GAP.y));
  };
  columns.forEach(stack);
  for (let round = 0; round < 4; round++) {
    const all = round % 2 ? [...columns].reverse() : columns;
    for (const column of all) {
      const near = round % 2 ? after : before;
      const key = new Map(column.map((one) => [one, mean(near.get(one), one.y + one.h / 2)]));
      column.sort((a, b) => key.get(a) - key.get(b));
      stack(column);
    }
  }
  const bottom = Math.max(GAP.title + 14, ...items.map((one) => one.y + one.h));
  // An edge that goes back has a lane of its own below the boxes.
  const back = reactor.edges.filter((_, i) => {
    const [from, to] = links[i];
    return from && to && from.column >= to.column;
  });
  reactor.lanes = new Map(back.map((edge, i) => [edge, bottom + GAP.lane * (i + 1.5)]));
  const height = bottom + GAP.edge + GAP.lane * back.length;
  for (const column of columns) {
    const last = column[column.length - 1];
    const down = (bottom - last.y - last.h) / 2;
    for (const one of column) one.y += down;
  }
  const names = (input) =>
    Math.max(0, ...reactor.ports.filter((p) => p.input === input).map((p) => wide(label(p)) + 12));
  let x = GAP.edge + names(true) + (reactor.ports.some((p) => p.input) ? 24 : 0);
  for (const column of columns) {
    const w = Math.max(...column.map((one) => one.w));
    for (const one of column) one.x = x + (w - one.w) / 2;
    x += w + GAP.x;
  }
  if (columns.length) x -= GAP.x;
  x += GAP.edge + names(false) + (reactor.ports.some((p) => !p.input) ? 24 : 0);
  const w = Math.max(x, wide(label(reactor)) + 60);
  const inside = [];
  for (const one of items) {
    inside.push({ id: one.item.id, x: one.x, y: one.y, w: one.w, h: one.h });
    for (const i of one.inside) inside.push({ ...i, x: i.x + one.x, y: i.y + one.y });
  }
  const heights = (port) => {
    const ends = reactor.edges.flatMap((e) =>
      e.from === port.id ? [e.to] : e.to === port.id ? [e.from] : [],
    );
    const found = ends.map((end) => inside.find((i) => i.id === end)).filter(Boolean);
    return found.length
      ? found.reduce((sum, i) => sum + i.y + i.h / 2, 0) / found.length
      : undefined;
  };
  const ports = sides(reactor, w, height, heights);
  return { w, h: ports.h, inside: [...inside, ...ports.inside] };
}

// --- drawing ------------------------------------------------------------------------------------

const picture = document.getElementById('picture');
let all; // the group that is moved and scaled
let view = { x: 0, y: 0, k: 1 };

function make(tag, attributes, parent, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

function shape(kind, w, h) {
  if (kind === 'reaction') return `M0,0 H${w - 10} L${w},${h / 2} L${w - 10},${h} H0 L8,${h / 2} Z`;
  if (kind === 'action') return `M${w / 2},-4 L${w},${h} H0 Z`;
  if (kind === 'watchdog')
    return `M10,0 H${w - 10} L${w},${h / 2} L${w - 10},${h} H10 L0,${h / 2} Z`;
  const r = Math.min(h, w) / 2; // timers and events have round ends
  return `M${r},0 H${w - r} A${r},${r} 0 0 1 ${w - r},${h} H${r} A${r},${r} 0 0 1 ${r},0 Z`;
}

function drawPart(part, parent) {
  const { x, y, w, h } = places.get(part.id);
  const g = make(
    'g',
    {
      class: `part ${part.kind}`,
      'data-id': part.id,
      transform: `translate(${x},${y})`,
      tabindex: 0,
    },
    parent,
  );
  make('path', { d: shape(part.kind, w, h) }, g);
  const more = sub(part);
  make('text', { x: w / 2, y: more ? h / 2 - 1 : h / 2 + 4 }, g, label(part));
  if (more) make('text', { class: 'sub', x: w / 2, y: h / 2 + 12 }, g, more);
  if (loops.has(part.id)) g.classList.add('loop');
}

function drawReactor(reactor, parent) {
  const { x, y, w, h } = places.get(reactor.id);
  const shut = folded.has(reactor.id);
  const g = make('g', { class: `reactor${shut ? ' folded' : ''}`, 'data-id': reactor.id }, parent);
  make('rect', { x, y, width: w, height: h, rx: 10 }, g);
  if (shut && inLoop(reactor)) g.classList.add('loop');
  make('text', { class: 'name', x: x + (reactor.depth ? 26 : 12), y: y + 18 }, g, label(reactor));
  if (reactor.depth) {
    const fold = make(
      'g',
      {
        class: 'fold',
        'data-fold': reactor.id,
        tabindex: 0,
        role: 'button',
        'aria-label': `${shut ? 'open' : 'fold'} ${reactor.name}`,
      },
      g,
    );
    make('rect', { x: x + 4, y: y + 4, width: 20, height: 20, fill: 'transparent' }, fold);
    make('text', { x: x + 8, y: y + 18 }, fold, shut ? '▸' : '▾');
  }
  for (const port of reactor.ports) {
    const p = places.get(port.id);
    const side = port.input ? 'input' : 'output';
    const one = make('g', { class: `port ${side}`, 'data-id': port.id }, g);
    make('rect', { x: p.x - 4, y: p.y - 4, width: 8, height: 8 }, one);
    const anchor = port.input ? 'start' : 'end';
    make(
      'text',
      { x: p.x + (port.input ? 8 : -8), y: p.y - 5, 'text-anchor': anchor },
      one,
      label(port),
    );
  }
  if (shut) return;
  for (const edge of reactor.edges) {
    const lane = reactor.lanes.get(edge);
    drawEdge(edge, g, lane === undefined ? undefined : y + lane);
  }
  for (const part of reactor.parts) drawPart(part, g);
  for (const child of reactor.children) drawReactor(child, g);
}

/** Draws an edge; `lane` is the height at which an edge that goes back passes below the boxes. */
function drawEdge(edge, parent, lane) {
  const from = places.get(edge.from);
  const to = places.get(edge.to);
  if (!from || !to) return;
  const [x1, y1] = [from.x + from.w, from.y + from.h / 2];
  const [x2, y2] = [to.x, to.y + to.h / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  const d =
    lane === undefined
      ? `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`
      : `M${x1},${y1} C${x1 + 26},${y1} ${x1 + 26},${lane} ${x1},${lane} ` +
        `H${x2} C${x2 - 22},${lane} ${x2 - 22},${y2} ${x2},${y2}`;
  const g = make(
    'g',
    { class: `link ${edge.kind}`, 'data-from': edge.from, 'data-to': edge.to },
    parent,
  );
  make('path', { class: 'line', d, 'marker-end': 'url(#head)' }, g);
  make('path', { class: 'touch', d }, g);
  if (edge.text) make('text', { x: (x1 + x2) / 2, y: (lane ?? (y1 + y2) / 2) - 4 }, g, edge.text);
  if (loopEdges.has(`${edge.from} → ${edge.to}`)) g.classList.add('loop');
  g.edge = edge;
}

function draw() {
  picture.replaceChildren();
  const defs = make('defs', {}, picture);
  const head = make(
    'marker',
    {
      id: 'head',
      viewBox: '0 0 8 8',
      refX: 7,
      refY: 4,
      markerWidth: 7,
      markerHeight: 7,
      orient: 'auto',
    },
    defs,
  );
  make('path', { d: 'M0,0 L8,4 L0,8 Z', fill: 'context-stroke' }, head);
  all = make('g', {}, picture);
  const made = layout(data.root);
  places = new Map(made.inside.map((i) => [i.id, i]));
  places.set(data.root.id, { x: 0, y: 0, w: made.w, h: made.h });
  drawReactor(data.root, all);
  // The order of two reactions of one reactor is drawn if that order is a part of the loop.
  for (const [from, to] of data.loop?.edges ?? [])
    if (loops.has(from) && loops.has(to))
      drawEdge({ from, to, kind: 'order', text: '', at: nodes.get(to).at }, all);
  move();
  mark();
}

function move() {
  all.setAttribute('transform', `translate(${view.x},${view.y}) scale(${view.k})`);
}

function fit() {
  const { w, h } = places.get(data.root.id);
  const { clientWidth, clientHeight } = picture;
  const k = Math.min((clientWidth - 24) / w, (clientHeight - 24) / h, 1.3);
  view = { k, x: (clientWidth - w * k) / 2, y: Math.max(12, (clientHeight - h * k) / 2) };
  move();
}

// --- what is clicked ----------------------------------------------------------------------------

/** Returns all reactions that can be reached from a reaction by `edges`. */
function reached(from, edges) {
  const found = new Set();
  for (const waiting = [from]; waiting.length;)
    for (const next of edges[waiting.pop()] ?? [])
      if (!found.has(next)) (found.add(next), waiting.push(next));
  return found;
}

function mark() {
  for (const one of picture.querySelectorAll('.on, .before, .after'))
    one.classList.remove('on', 'before', 'after');
  if (!selected) return;
  const mine = (id) => picture.querySelector(`[data-id="${CSS.escape(id)}"]`);
  mine(selected)?.classList.add('on');
  for (const id of reached(selected, reversed)) mine(id)?.classList.add('before');
  for (const id of reached(selected, data.causes)) mine(id)?.classList.add('after');
}

function element(tag, text, parent) {
  const made = document.createElement(tag);
  made.textContent = text;
  parent.append(made);
  return made;
}

/** Shows the source line of a reactor, part, port or edge. */
function select(thing) {
  selected = thing?.id ?? '';
  const panel = document.getElementById('panel');
  panel.replaceChildren();
  panel.hidden = !thing;
  mark();
  if (!thing) return;
  const name = thing.id ?? `${thing.from} → ${thing.to}`;
  element('h2', name, panel);
  element(
    'div',
    [thing.kind, thing.kind === 'reactor' ? thing.of : '', sub(thing)].filter(Boolean).join(', '),
    panel,
  );
  if (thing.at) excerpt(thing.at, panel);
  if (thing.class && String(thing.class) !== String(thing.at)) excerpt(thing.class, panel);
  for (const [title, edges] of [
    ['waits for', reversed],
    ['before', data.causes],
  ]) {
    const others = edges[thing.id] ?? [];
    if (!others.length) continue;
    element('h3', title, panel);
    const list = element('ul', '', panel);
    for (const id of others)
      element('button', id, element('li', '', list)).onclick = () => show(id);
  }
}

function excerpt([file, line], panel) {
  const { name, lines } = data.files[file];
  element('h3', `${name}:${line}`, panel).className = 'place';
  const pre = element('pre', '', panel);
  for (let n = Math.max(1, line - 3); n <= Math.min(lines.length, line + 9); n++)
    element('span', `${String(n).padStart(4)}  ${lines[n - 1]}`, pre).className =
      n === line ? 'here' : '';
}

/** Selects a part, and opens the reactors around it. */
function show(id) {
  for (let at = parents.get(id); at; at = parents.get(at.id)) folded.delete(at.id);
  draw();
  select(nodes.get(id));
}

function turn(id) {
  if (!folded.delete(id)) folded.add(id);
  draw();
}

picture.addEventListener('click', (event) => {
  const fold = event.target.closest('[data-fold]');
  if (fold) return turn(fold.dataset.fold);
  const link = event.target.closest('.link');
  const one = event.target.closest('[data-id]');
  select(link ? link.edge : one && !dragged ? nodes.get(one.dataset.id) : null);
});
picture.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' && event.key !== ' ') return;
  const { fold, id } = document.activeElement?.dataset ?? {};
  if (fold) turn(fold);
  else if (id) select(nodes.get(id));
  event.preventDefault();
});
document.addEventListener('keydown', (event) => event.key === 'Escape' && select(null));
let held = null; // the point at which the picture is held while it is dragged, or null
let dragged = false;
picture.addEventListener('pointerdown', (event) => {
  held = { x: event.clientX - view.x, y: event.clientY - view.y };
  dragged = false;
});
window.addEventListener('pointermove', (event) => {
  if (!held) return;
  const to = { x: event.clientX - held.x, y: event.clientY - held.y };
  dragged ||= Math.abs(to.x - view.x) + Math.abs(to.y - view.y) > 3;
  if (dragged) ((view = { ...view, ...to }), move());
});
window.addEventListener('pointerup', () => (held = null));
picture.addEventListener(
  'wheel',
  (event) => {
    event.preventDefault();
    const k = Math.min(4, Math.max(0.05, view.k * Math.exp(-event.deltaY / 500)));
    const box = picture.getBoundingClientRect();
    const [x, y] = [event.clientX - box.x, event.clientY - box.y];
    view = { k, x: x - ((x - view.x) * k) / view.k, y: y - ((y - view.y) * k) / view.k };
    move();
  },
  { passive: false },
);
document.getElementById('open').onclick = () => (folded.clear(), draw(), fit());
document.getElementById('fold').onclick = () => (foldAll(), draw(), fit());
document.getElementById('fit').onclick = fit;

document.title = `${data.title}: weft lf graph`;
document.getElementById('title').textContent = data.title;
const levels = [...nodes.values()].flatMap((n) => n.levels ?? []);
document.getElementById('facts').textContent = levels.length
  ? `${reactors.length} reactors, ${Math.max(...levels) + 1} levels`
  : `${reactors.length} reactors`;
if (data.loop) {
  const told = document.getElementById('loop');
  told.hidden = false;
  told.textContent = `${data.loop.text}\n${data.loop.hint}`;
  for (const id of loops)
    for (let at = parents.get(id); at; at = parents.get(at.id)) folded.delete(at.id);
}
draw();
fit();
