// Tests the drawing that is made of a look (rules 14.10, 14.12), without a browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History, SECONDS } from '../src/history.mjs';
import { place } from '../src/layout.mjs';
import { drawing, EACH, knots, knotSentence, MAX_BOXES, perSecond } from '../src/model.mjs';
import { channel, farm, look, row } from './looks.mjs';

/** @import { Look } from '../src/types.d.ts' */

/** @param {Look} of @param {Record<string, boolean>} [chosen] */
const draw = (of, chosen = {}) => drawing(of, new Map(Object.entries(chosen)));
/** @param {Look} of @param {Record<string, boolean>} [chosen] */
const boxes = (of, chosen = {}) => [...draw(of, chosen).boxes.keys()];

test('a pipeline is a box for each process and a line for each channel', () => {
  const pipe = look(
    [
      row('main', { kind: 'main', share: { waits: 1 } }),
      row('main/a', { holds: [['c', true]], share: { writes: 0.8, runs: 0.2 } }),
      row('main/b', { holds: [['c', false]], share: { runs: 1 }, rate: 12 }),
    ],
    [channel('c', { writing: 0.8, capacity: 4, depth: 3 })],
    { verdict: { kind: 'bottleneck', names: ['main/b'], text: '' } },
  );
  const drawn = draw(pipe);
  assert.deepEqual([...drawn.boxes.keys()], ['main/a', 'main/b']);
  const [line] = drawn.lines.values();
  assert.deepEqual([line.from, line.to, line.bundle.label], ['main/a', 'main/b', 'c']);
  assert.deepEqual([line.bundle.depth, line.bundle.capacity, line.bundle.writing], [3, 4, 0.8]);
  const [a, b] = drawn.boxes.values();
  assert.deepEqual([a.main, a.slow, a.text], ['writes', false, 'waits to write 80 %']);
  assert.deepEqual([b.main, b.slow, b.rate], ['runs', true, 12]);
});

test('many of one name are folded, and their channels are one line', () => {
  const drawn = draw(
    farm(64, { verdict: { kind: 'bottleneck', names: ['main/worker[0..63]'], text: '' } }),
  );
  assert.deepEqual([...drawn.boxes.keys()], ['main/sink', 'main/source', 'main/worker[*]']);
  const folded = drawn.boxes.get('main/worker[*]');
  assert.ok(folded);
  assert.deepEqual(
    [folded.label, folded.count, folded.kind, folded.slow],
    ['worker[0..63]', 64, 'folded', true],
  );
  const [first, second] = [...drawn.lines.values()].sort((x, y) => (x.from < y.from ? -1 : 1));
  assert.deepEqual(
    [first.from, first.to, first.bundle.label, first.bundle.rate],
    ['main/source', 'main/worker[*]', 'in ×64', 640],
  );
  assert.deepEqual(
    [second.from, second.to, second.bundle.label],
    ['main/worker[*]', 'main/sink', 'out'],
  );
});

test('three of one name are not folded; what is opened has its members, and a frame', () => {
  assert.ok(boxes(farm(3)).includes('main/worker[2]'));
  const drawn = draw(farm(5), { 'main/worker[*]': true });
  assert.deepEqual(
    [...drawn.boxes.values()].filter((b) => b.kind === 'process' && b.frame).map((b) => b.label),
    [0, 1, 2, 3, 4].map((i) => `worker[${i}]`),
  );
  assert.deepEqual(
    [...drawn.frames.values()].map((f) => [f.label, f.opens]),
    [['worker[0..4]', 'main/worker[*]']],
  );
  const line = [...drawn.lines.values()].find((l) => l.to === 'main/sink');
  // One line leads from the grid, and none from its boxes.
  assert.deepEqual([line?.from, line?.bundle.label], ['main/worker[*]', 'out']);
  const hub = [...draw(farm(3)).boxes.values()].find((b) => b.kind === 'hub');
  assert.deepEqual(
    [hub?.label, hub?.bundle?.writers.length, hub?.bundle?.readers],
    ['out', 3, ['main/sink']],
  );
});

test('every process is in one box, also of ten thousand', () => {
  const of = farm(10_000);
  for (const open of [false, true]) {
    const drawn = draw(of, { 'main/worker[*]': open });
    const rows = [...drawn.boxes.values()].filter((b) => b.kind !== 'grid').flatMap((b) => b.rows);
    assert.equal(rows.length, 10_002); // all but main, which only waits for the others
    assert.equal(new Set(rows).size, rows.length);
    assert.ok(drawn.boxes.size <= EACH + 60, `${drawn.boxes.size}`);
  }
  const drawn = draw(of, { 'main/worker[*]': true });
  const more = drawn.boxes.get('main/worker[*]+');
  assert.deepEqual([more?.kind, more?.label], ['more', '9,952 more']);
});

test('never more boxes than can be drawn; what is left out is said', () => {
  const processes = [];
  for (let i = 0; i < 40; i++) for (let j = 0; j < 40; j++) processes.push(row(`main/g${i}/w${j}`));
  const chosen = Object.fromEntries([...Array(40).keys()].map((i) => [`main/g${i}`, true]));
  const drawn = draw(
    look(processes, [channel('nobody')], { left_out: 1234, silent: ['OS process 9 is stopped'] }),
    chosen,
  );
  assert.ok(drawn.boxes.size <= MAX_BOXES + 1, `${drawn.boxes.size}`);
  assert.deepEqual(drawn.left_out, [
    '1,234 more processes are not in this look (--most shows more)',
    'OS process 9 is stopped',
    '1 channels whose ends no process is known to hold are not drawn',
    '1,200 processes are in the box "and more": fold something',
  ]);
});

test('groups open while there is room, and stay as the user wants them', () => {
  /** @param {number} n */
  const groups = (n) =>
    look(
      [...Array(n).keys()].flatMap((i) =>
        ['a', 'b', 'c'].map((name) => row(`main/g${i}x/${name}`)),
      ),
      [],
    );
  assert.equal(boxes(groups(4)).length, 12);
  assert.deepEqual(boxes(groups(30)).length, 30); // each group is folded
  assert.ok(boxes(groups(4), { 'main/g0x': false }).includes('main/g0x'));
  assert.ok(boxes(groups(30), { 'main/g0x': true }).includes('main/g0x/b'));
  const before = draw(groups(8)).opened;
  assert.ok(before.size > 2);
  assert.deepEqual(drawing(groups(9), new Map(), before).opened, before); // no group folds
});

test('a group that only waits, and has given its ends away, has no box of its own', () => {
  const of = (/** @type {[string, boolean][]} */ holds) =>
    look(
      [
        row('main/a', { holds: [['c', true]] }),
        row('main/stage', { share: { waits: 1 }, holds: [['c', false]] }),
        row('main/stage/inner', { holds }),
      ],
      [channel('c')],
    );
  assert.deepEqual(boxes(of([['c', false]])), ['main/a', 'main/stage/inner']);
  assert.deepEqual(boxes(of([])), ['main/a', 'main/stage.', 'main/stage/inner']);
});

/** @param {number} pid @param {string} [host] */
const os = (pid, host = '') => ({
  ...{ pid, program: '', cpu: 0.25, memory: 3 << 20 },
  ...{ host, number: pid % 100 },
});

test('a board is a frame around its processes, with lines to it (rule 14.20)', () => {
  const seen = look(
    [
      row('main/source', { holds: [['c', true]] }),
      row('ttyACM0:main/smooth', { kind: 'board', host: 'ttyACM0', holds: [['c', false]] }),
    ],
    [channel('c')],
    { verdict: { kind: 'outside', names: ['main/source'], text: '' } },
  );
  const drawn = drawing(seen, new Map());
  assert.deepEqual([...drawn.frames.values()].map((one) => one.label).sort(), [
    'board ttyACM0',
    'main',
  ]);
  assert.deepEqual(
    [...drawn.lines.values()].map((one) => [one.from, one.to]),
    [['main/source', 'ttyACM0:main/smooth']],
  );
  assert.equal(drawn.boxes.get('main/source')?.tag, 'waited for'); // and it is no bottleneck
  assert.equal(drawn.boxes.get('ttyACM0:main/smooth')?.tag, '');
});

test('hosts are groups, with their OS processes in them; each host is there, also one that has gone (rule 14.18)', () => {
  const of = look(
    [
      row('lab/gpu1:main/a', { pid: 101, host: 'lab/gpu1', holds: [['c', true]] }),
      row('lab/gpu1:main/b', { pid: 102, host: 'lab/gpu1' }),
      row('gpu2:main/a', { pid: 201, host: 'gpu2', holds: [['c', false]] }),
      row('gpu2:main/stage/x', { pid: 201, host: 'gpu2' }),
    ],
    [channel('c')],
    {
      network: 'nats://lab:4222',
      os_processes: [os(101, 'lab/gpu1'), os(102, 'lab/gpu1'), os(201, 'gpu2')],
      hosts: [
        { name: 'gpu2', state: 'answers', text: '' },
        { name: 'idle', state: 'answers', text: '' },
        { name: 'lab/gpu1', state: 'answers', text: '' },
        { name: 'left', state: 'gone', text: 'host left has left the network' },
        { name: 'slow', state: 'silent', text: 'host slow has not answered yet' },
      ],
    },
  );
  const drawn = draw(of);
  assert.deepEqual(
    [...drawn.frames.values()].map((f) => [f.id, f.up, f.label, f.opens]),
    [
      ['gpu2:', '', 'host gpu2', 'gpu2:'],
      ['gpu2:|gpu2:main/stage', 'gpu2:', 'stage', 'gpu2:main/stage'],
      ['lab/gpu1:', '', 'host lab/gpu1', 'lab/gpu1:'],
      ['pid 101', 'lab/gpu1:', 'OS process 1', null],
      ['pid 102', 'lab/gpu1:', 'OS process 2', null],
    ],
  );
  assert.deepEqual(
    [...drawn.boxes.values()].filter((b) => b.kind === 'host').map((b) => [b.label, b.text]),
    [
      ['idle', 'runs nothing now'],
      ['left', 'gone'],
      ['slow', 'no answer'],
    ],
  );
  assert.deepEqual(
    [...drawn.lines.values()].map((l) => [l.from, l.to]),
    [['lab/gpu1:main/a', 'gpu2:main/a']],
  );
  const places = place(drawn);
  for (const id of drawn.boxes.keys()) assert.ok((places.boxes.get(id)?.width ?? 0) > 0, id);
  const folded = draw(of, { 'lab/gpu1:': false }).boxes.get('lab/gpu1:');
  assert.deepEqual([folded?.kind, folded?.label, folded?.count], ['folded', 'lab/gpu1', 2]);
});

test('OS processes are frames, with the groups in them', () => {
  const drawn = draw(
    look([row('main/a'), row('main/g/b', { pid: 2 }), row('main/g/c')], [], {
      os_processes: [1, 2].map((pid) => os(pid)),
    }),
  );
  assert.deepEqual(
    [...drawn.frames.values()].map((f) => [f.id, f.up, f.label, f.text]),
    [
      ['pid 1', '', 'OS process 1', '25 % CPU · 3 MB'],
      ['pid 2', '', 'OS process 2', '25 % CPU · 3 MB'],
      ['pid 2|main/g', 'pid 2', 'g', ''],
      ['pid 1|main/g', 'pid 1', 'g', ''],
    ],
  );
  assert.equal(drawn.boxes.get('main/g/c')?.frame, 'pid 1|main/g');
});

test('the knot is red: who waits only for one another, and not who waits behind', () => {
  const stuck = [
    { path: 'main/a', pid: 1, waits_for: ['main/b'] },
    { path: 'main/b', pid: 1, waits_for: ['main/a'] },
    { path: 'main/behind', pid: 1, waits_for: ['main/a'] },
  ];
  const of = look(
    [
      row('main/a', {
        holds: [
          ['x', false],
          ['y', true],
        ],
        waits: [['x', false]],
      }),
      row('main/b', {
        holds: [
          ['y', false],
          ['x', true],
        ],
        waits: [['y', false]],
      }),
      row('main/behind', { holds: [['z', false]], waits: [['z', false]] }),
      row('main/c', { holds: [['z', true]] }),
    ],
    [channel('x'), channel('y'), channel('z')],
    { stuck },
  );
  assert.deepEqual(knots(of), new Set(['1 main/a', '1 main/b']));
  const drawn = draw(of);
  assert.deepEqual(
    [...drawn.boxes.values()].filter((b) => b.stuck).map((b) => b.id),
    ['main/a', 'main/b'],
  );
  assert.deepEqual(
    [...drawn.lines.values()]
      .filter((l) => l.stuck)
      .map((l) => l.bundle.label)
      .sort(),
    ['x', 'y'],
  );
  assert.equal(
    knotSentence(of),
    '`main/a` and `main/b` wait only for one another, and can never go on; 1 more waits behind them',
  );
  assert.equal(knotSentence(look([], [])), '');
});

test('nothing moves while figures change, and everything has a place', () => {
  const one = draw(farm(8), { 'main/worker[*]': true });
  const other = farm(8);
  for (const c of other.channels) c.rate = 1000 * (c.rate ?? 0);
  for (const p of other.processes.slice(1)) p.share = { time: 1 };
  const two = draw(other, { 'main/worker[*]': true });
  assert.equal(one.shape, two.shape);
  const places = place(one);
  for (const id of one.boxes.keys()) assert.ok((places.boxes.get(id)?.width ?? 0) > 0, id);
  for (const id of one.lines.keys()) assert.ok((places.routes.get(id)?.points.length ?? 0) > 1, id);
  const [frame] = places.frames.values();
  for (const [id, at] of places.boxes)
    if (id.startsWith('main/worker[') && !id.includes('*')) {
      assert.ok(
        at.y - at.height / 2 >= frame.y - frame.height / 2 &&
          at.y + at.height / 2 <= frame.y + frame.height / 2,
        id,
      );
    }
});

test('a minute is kept, and of many processes fewer whole looks', () => {
  const history = new History();
  for (let at = 0; at < 100; at++) history.add({ ...farm(4), at });
  assert.equal(history.moments.length, SECONDS + 1);
  assert.ok(history.moments.every((m) => m.look));
  assert.deepEqual(history.moments[3].shares.get('main/worker[*]'), { runs: 1 });
  assert.equal(history.heaviest(['main/sink', 'main/worker[*]'])[0], 'main/worker[*]');
  const large = new History();
  const many = farm(10_000);
  for (let at = 0; at < 20; at++) large.add({ ...many, at });
  const whole = large.moments.filter((m) => m.look).length;
  assert.ok(whole >= 10 && whole < 13, `${whole}`);
  assert.ok(large.moments[large.moments.length - 1].look);
});

test('rates are short', () => {
  assert.deepEqual([0, 0.25, 9.96, 87, 994.6, 1500, 12_345, 2_500_000, 12e6, null].map(perSecond), [
    '0/s',
    '0.3/s',
    '10/s',
    '87/s',
    '995/s',
    '1.5 k/s',
    '12 k/s',
    '2500 k/s',
    '12 M/s',
    '',
  ]);
});
