// Where boxes, lines and frames are drawn: dagre lays the network out in layers, from left to right.
//
// Invariant: the place of everything depends on the shape of the drawing alone, never on figures, so
// nothing moves while the same processes and channels are there.

import { Graph, layout } from '@dagrejs/dagre';

/** @import { Drawing } from './types.d.ts' */
/** @typedef {{ x: number, y: number, width: number, height: number }} Rectangle  centre and size */
/** @typedef {{ points: { x: number, y: number }[], x: number, y: number }} Route  and the label's place */

export const BOX = { width: 192, height: 64 };
export const HUB = { width: 128, height: 36 };
export const LABEL = { width: 116, height: 40 };
const TITLE = 22; // above the boxes of a frame

/**
 * @param {Drawing} drawing
 * @returns {{ boxes: Map<string, Rectangle>, frames: Map<string, Rectangle>, routes: Map<string, Route>, width: number, height: number }}
 */
export function place(drawing) {
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({
    rankdir: 'LR',
    nodesep: drawing.frames.size ? 34 + TITLE : 30,
    ranksep: 36,
    edgesep: 18,
    marginx: 30,
    marginy: 30,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const frame of drawing.frames.values()) graph.setNode(frame.id, {});
  for (const frame of drawing.frames.values()) if (frame.up) graph.setParent(frame.id, frame.up);
  for (const box of drawing.boxes.values()) {
    graph.setNode(box.id, { ...(box.kind === 'hub' ? HUB : BOX) });
    if (box.frame) graph.setParent(box.id, box.frame);
  }
  for (const line of drawing.lines.values())
    graph.setEdge(line.from, line.to, line.label ? { ...LABEL, labelpos: 'c' } : {}, line.id);
  layout(graph);
  /** @type {Map<string, Rectangle>} */
  const boxes = new Map();
  /** @type {Map<string, Rectangle>} */
  const frames = new Map();
  for (const id of drawing.boxes.keys()) boxes.set(id, rectangle(graph.node(id)));
  for (const id of drawing.frames.keys()) {
    const { x, y, width, height } = rectangle(graph.node(id));
    frames.set(id, { x, y: y - TITLE / 2, width, height: height + TITLE });
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

/** @param {any} of @returns {Rectangle} */
const rectangle = ({ x = 0, y = 0, width = 0, height = 0 }) => ({ x, y, width, height });
