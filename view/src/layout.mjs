// Determines where boxes, lines and frames are drawn: dagre lays the network out in layers, from
// left to right.
//
// Invariant: the place of everything depends only on the shape of the drawing and not on figures,
// so nothing moves while the processes and channels stay the same.

import { Graph, layout } from '@dagrejs/dagre';

/** @import { Drawing } from './types.d.ts' */
/** @typedef {{ x: number, y: number, width: number, height: number }} Rectangle  centre and size */
/** @typedef {{ points: { x: number, y: number }[], x: number, y: number }} Route  and the label's place */

export const BOX = { width: 192, height: 64 };
export const HUB = { width: 128, height: 36 };
export const LABEL = { width: 116, height: 40 };
const TITLE = 34; // the height of a grid's title, above its boxes
const FRAME = 26; // the height of a frame's title
const GAP = 14; // the space between the boxes of a grid, and around them

/**
 * @param {Drawing} drawing
 * @returns {{ boxes: Map<string, Rectangle>, frames: Map<string, Rectangle>, routes: Map<string, Route>, width: number, height: number }}
 */
export function place(drawing) {
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({
    rankdir: 'LR',
    nodesep: drawing.frames.size ? 50 : 30,
    ranksep: 36,
    edgesep: 18,
    marginx: 30,
    marginy: drawing.frames.size ? 60 : 30,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  const frames_ = [...drawing.frames.values()].filter((frame) => !frame.id.startsWith('grid '));
  for (const frame of frames_) graph.setNode(frame.id, {});
  for (const frame of frames_) if (frame.up) graph.setParent(frame.id, frame.up);
  for (const box of drawing.boxes.values()) {
    if (box.frame.startsWith('grid ')) continue; // the box has its place within the grid
    graph.setNode(
      box.id,
      box.kind === 'grid' ? gridSize(box) : { ...(box.kind === 'hub' ? HUB : BOX) },
    );
    if (box.frame) graph.setParent(box.id, box.frame);
  }
  for (const line of drawing.lines.values())
    graph.setEdge(line.from, line.to, line.label ? { ...LABEL, labelpos: 'c' } : {}, line.id);
  layout(graph);
  /** @type {Map<string, Rectangle>} */
  const boxes = new Map();
  /** @type {Map<string, Rectangle>} */
  const frames = new Map();
  for (const box of drawing.boxes.values()) {
    if (box.frame.startsWith('grid ')) continue;
    const at = rectangle(graph.node(box.id));
    boxes.set(box.id, at);
    if (box.kind !== 'grid') continue;
    frames.set(`grid ${box.id}`, at);
    const across = columns(box.cells.length);
    box.cells.forEach((id, i) => {
      const x = at.x - at.width / 2 + GAP + BOX.width / 2 + (i % across) * (BOX.width + GAP);
      const y =
        at.y - at.height / 2 + TITLE + BOX.height / 2 + Math.floor(i / across) * (BOX.height + GAP);
      boxes.set(id, { x, y, ...BOX });
    });
  }
  for (const { id } of frames_) frames.set(id, rectangle(graph.node(id)));
  // frames_ has an outer frame before its inner ones, so the loop goes backwards. An outer frame
  // gets room for its own title.
  for (const { id, up } of frames_.reverse()) {
    const [inner, outer] = [frames.get(id), frames.get(up)];
    if (inner && outer) enclose(outer, inner);
  }
  /** @type {Map<string, Route>} */
  const routes = new Map();
  for (const line of drawing.lines.values()) {
    const edge = graph.edge(line.from, line.to, line.id);
    const points = edge.points ?? [];
    const middle = points[points.length >> 1] ?? { x: 0, y: 0 };
    routes.set(line.id, { points, x: edge.x ?? middle.x, y: edge.y ?? middle.y });
  }
  const { width = 0, height = 0 } = graph.graph();
  return { boxes, frames, routes, width, height };
}

/** Enlarges the outer frame so that its title is above the inner one.
 * @param {Rectangle} outer @param {Rectangle} inner */
function enclose(outer, inner) {
  const above = inner.y - inner.height / 2 - FRAME;
  const more = outer.y - outer.height / 2 - above;
  if (more <= 0) return;
  outer.y -= more / 2;
  outer.height += more;
}

/** Returns the number of columns of a grid, which is a little wider than high. @param {number} n */
const columns = (n) =>
  Math.max(1, Math.round(Math.sqrt((n * 1.4 * (BOX.height + GAP)) / (BOX.width + GAP))));

/** @param {import('./types.d.ts').Box} box */
function gridSize({ cells }) {
  const across = columns(cells.length);
  const down = Math.ceil(cells.length / across);
  return {
    width: across * (BOX.width + GAP) + GAP,
    height: TITLE + down * (BOX.height + GAP),
  };
}

/** @param {any} of @returns {Rectangle} */
const rectangle = ({ x = 0, y = 0, width = 0, height = 0 }) => ({ x, y, width, height });
