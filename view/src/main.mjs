// The page of `weft view`: listens to the looks, and draws the one that is shown.
//
//   EventSource ──look──► History ──► (live: the newest, else the chosen moment) ──► draw()
//
// Invariants
//  - Everything that is drawn belongs to one look.
//  - A look that arrives while another moment is shown, or while the page is paused, changes only
//    the time line.

import { Picture } from './draw.mjs';
import { History } from './history.mjs';
import { drawing, knotSentence, size, thousands } from './model.mjs';
import { h, Panel, span } from './panel.mjs';
import { Timeline } from './timeline.mjs';

/** @import { Drawing, Look } from './types.d.ts' */
/** @import { Moment } from './history.mjs' */
/** @typedef {{ kind: 'box' | 'bundle', id: string }} Chosen */

/** @template {Element} T @param {string} id @returns {T} */
const at = (id) => /** @type {T} */ (/** @type {unknown} */ (document.getElementById(id)));

const history = new History();
/** @type {Map<string, boolean>} */
const folds = new Map();
/** @type {Chosen | null} */
let chosen = null;
/** @type {Moment | null} the moment that is shown; null: the newest */
let shown = null;
let paused = false;
let only = '';
/** @type {Drawing | null} */
let drawn = null;

const picture = new Picture(at('network'), choose, open);
const panel = new Panel(at('panel'), {
  choose: (kind, id) => choose({ kind, id }),
  open,
  close: () => choose(null),
});
const timeline = new Timeline(
  at('timeline'),
  (moment) => {
    const last = history.moments[history.moments.length - 1];
    shown = moment && moment.look && moment !== last ? moment : null;
    paused = false;
    draw();
  },
  (id) => choose({ kind: 'box', id }),
);

/** @param {Chosen | null} what */
function choose(what) {
  chosen = what;
  draw();
}

/** @param {string} id @param {boolean} wide */
function open(id, wide) {
  folds.set(id, wide);
  if (chosen?.kind === 'box' && chosen.id === id) chosen = null;
  picture.moved = false;
  draw();
}

/** The look that is shown. @returns {Look | null} */
const current = () => (shown ?? history.moments[history.moments.length - 1])?.look ?? null;

/** Writes a sentence, unless it is already shown. @param {string} id @param {string} text */
function say(id, text) {
  if (said.get(id) !== text) at(id).replaceChildren(...sentence(text));
  said.set(id, text);
}
/** @type {Map<string, string>} */
const said = new Map();

/** Returns a sentence with its `names` as buttons. @param {string} text */
function sentence(text) {
  return text.split(/`([^`]*)`/).map((part, i) => {
    if (i % 2 === 0) return part;
    const click = () => {
      const boxes = [...(drawn?.boxes.values() ?? [])];
      const box = boxes.find((one) => !one.bundle && one.kind !== 'grid' && named(one.rows, part));
      if (box) choose({ kind: 'box', id: box.id });
    };
    return h('button', { class: 'name', onclick: click }, part);
  });
}

/** @param {{ path: string }[]} rows @param {string} name */
const named = (rows, name) => {
  const [first] = /\[(\d+)\.\.\d+\]/.exec(name)
    ? [name.replace(/\[(\d+)\.\.\d+\]/, '[$1]')]
    : [name];
  return rows.some((row) => row.path === first);
};

function draw() {
  const look = current();
  if (!look) return;
  drawn = drawing(look, folds, drawn?.opened);
  picture.show(drawn, chosen, only);
  panel.show(drawn, look, history, chosen);
  const hidden = timeline.draw(history, drawn, shown) ?? 0;
  const knot = knotSentence(look);
  at('verdict').className = knot ? 'stuck' : look.verdict.kind;
  say('verdict', knot || look.verdict.text);
  say('under', knot ? `Besides: ${look.verdict.text}` : '');
  const n = look.processes.length + look.left_out;
  const os = look.os_processes;
  const root = os.find((one) => one.pid === look.pid);
  const hosts = look.hosts.filter((one) => one.state !== 'gone').length;
  const words = [
    look.network ? `${hosts} host${hosts === 1 ? '' : 's'}` : `OS process ${look.pid}`,
    look.since === null ? '' : `for ${span(look.since)}`,
    `${thousands(n)} process${n === 1 ? '' : 'es'}`,
    `${thousands(look.channels.length)} channel${look.channels.length === 1 ? '' : 's'}`,
    os.length > 1 ? `${os.length} OS processes` : '',
    root?.cpu !== null && os.length
      ? `${Math.round(os.reduce((sum, one) => sum + (one.cpu ?? 0), 0) * 100)} % CPU`
      : '',
    os.length ? size(os.reduce((sum, one) => sum + one.memory, 0)) : '',
  ];
  const program = look.network || (root?.program ?? '');
  at('program').textContent = look.network || program.replace(/^\S*\//, '');
  at('program').setAttribute('title', program);
  document.title = `${program.split('/').pop()} · weft view`;
  at('facts').textContent = words.filter(Boolean).join(' · ');
  at('left').textContent = [
    ...drawn.left_out,
    hidden > 0 ? `the time line leaves out ${thousands(hidden)} lighter boxes` : '',
  ]
    .filter(Boolean)
    .join('; ');
  const ago = shown ? history.moments[history.moments.length - 1].at - shown.at : 0;
  at('live').textContent = paused ? 'paused' : shown ? `${span(ago)} ago — back to now` : 'live';
  at('live').className = shown || paused ? 'past' : 'now';
  at('pause').textContent = paused || shown ? 'go on' : 'pause';
}

/** @param {string} kind @param {string} text */
function tell(kind, text) {
  const alarm = at('alarm');
  alarm.textContent = text;
  alarm.className = kind;
  /** @type {HTMLElement} */ (alarm).hidden = !text;
  document.body.dataset.state = kind;
}

function pause() {
  if (paused || shown) {
    paused = false;
    shown = null;
  } else {
    paused = true;
    shown = history.moments[history.moments.length - 1] ?? null;
  }
  draw();
}

const source = new EventSource('looks');
source.addEventListener('look', (event) => {
  /** @type {Look} */
  const look = JSON.parse(event.data);
  history.add(look);
  tell('looks', '');
  if (!paused && !shown) draw();
  else if (drawn) timeline.draw(history, drawn, shown);
});
source.addEventListener('silent', (event) =>
  tell('silent', `${JSON.parse(event.data).text}. The last look is shown.`),
);
source.addEventListener('ended', (event) => {
  source.close();
  tell('ended', `${JSON.parse(event.data).text}. The last look is shown.`);
});
source.addEventListener('error', () => {
  if (document.body.dataset.state === 'ended') return;
  tell(
    'lost',
    'weft view does not answer: it was ended, or too many pages look. Start it again; the last look is shown.',
  );
});

// --- controls -------------------------------------------------------------------------------------

at('pause').addEventListener('click', pause);
at('live').addEventListener('click', () => (shown || paused) && pause());
at('fit').addEventListener('click', () => picture.fit());
at('only').addEventListener('input', (event) => {
  only = /** @type {HTMLInputElement} */ (event.target).value.trim();
  draw();
});
at('theme').addEventListener('click', () => {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const now = document.documentElement.dataset.theme ?? (dark ? 'dark' : 'light');
  document.documentElement.dataset.theme = now === 'dark' ? 'light' : 'dark';
  draw();
});
addEventListener('keydown', (event) => {
  if (event.target instanceof HTMLInputElement) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (event.key === ' ' && !(event.target instanceof HTMLButtonElement)) {
    event.preventDefault();
    pause();
  } else if (event.key === 'Escape') choose(null);
  else if (event.key === 'f') picture.fit();
  else if (event.key === '/') {
    event.preventDefault();
    /** @type {HTMLInputElement} */ (at('only')).focus();
  }
});
let timer = 0;
new ResizeObserver(() => {
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (!picture.moved) picture.fit();
    if (drawn) timeline.draw(history, drawn, shown);
  }, 60);
}).observe(at('network'));
