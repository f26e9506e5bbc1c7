// Tests the page in headless Chromium, over programs that run (rules 14.9 to 14.12): opens it,
// clicks, and keeps pictures in out/view-*.png.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const python = join(root, '.venv/bin/python');
const out = join(root, 'out');
const home = mkdtempSync(join(tmpdir(), 'weft'));
const env = {
  ...process.env,
  XDG_RUNTIME_DIR: home,
  BROWSER: '',
  DISPLAY: '',
  WAYLAND_DISPLAY: '',
};
/** @type {import('puppeteer-core').Browser} */
let browser;

before(async () => {
  mkdirSync(out, { recursive: true });
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    pipe: true,
    protocolTimeout: 280_000,
    args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
  });
});
after(async () => {
  await browser?.close();
  rmSync(home, { recursive: true });
});

/** Waits for the first line of a program's output that matches. @param
 * {import('node:child_process').ChildProcess} child @param {RegExp} wanted @returns
 * {Promise<RegExpExecArray>} */
function line(child, wanted) {
  return new Promise((found, failed) => {
    let said = '';
    child.stdout?.on('data', (piece) => {
      said += piece;
      const match = wanted.exec(said);
      if (match) found(match);
    });
    child.on('exit', (status, signal) =>
      failed(new Error(`it ended (${status ?? signal}), and said: ${said}`)),
    );
  });
}

/**
 * Runs a program, opens its page, and ends both.
 * @param {string} name
 * @param {{ dark?: boolean, arguments?: string[] }} how
 * @param {(page: import('puppeteer-core').Page, at: { program: import('node:child_process').ChildProcess, view: import('node:child_process').ChildProcess, errors: string[] }) => Promise<void>} does
 */
async function opened(name, how, does) {
  const program = spawn(python, [join(here, 'programs.py'), name], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const [, server, keys] = await line(program, /ready(?: (\S+) (\S+))?\n/);
    const what = server ? [server, '--keys', keys] : [`${program.pid}`];
    const view = spawn(
      python,
      ['-m', 'weft.cli', 'view', ...what, '--no-browser', ...(how.arguments ?? [])],
      {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    try {
      const [, address] = await line(view, /weft view: (http:\S+)/);
      const page = await browser.newPage();
      /** @type {string[]} */
      const errors = [];
      page.on('pageerror', (error) => errors.push(String(error)));
      page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
      /** @type {string[]} */
      const outside = [];
      page.on('request', (request) => {
        if (!request.url().startsWith(address) && !request.url().startsWith('data:'))
          outside.push(request.url());
      });
      await page.setViewport({ width: 1440, height: 860 });
      await page.emulateMediaFeatures([
        { name: 'prefers-color-scheme', value: how.dark ? 'dark' : 'light' },
      ]);
      await page.goto(address);
      await does(page, { program, view, errors });
      assert.deepEqual(outside, []);
      assert.deepEqual(errors, []);
      await page.close();
    } finally {
      view.kill('SIGKILL');
    }
  } finally {
    program.stdin?.end();
    if (name === 'hosts' && program.exitCode === null) await once(program, 'exit');
    program.kill('SIGKILL');
  }
}

/** @param {import('puppeteer-core').Page} page @param {string} selector */
const text = (page, selector) => page.$eval(selector, (e) => e.textContent ?? '');
/** @param {import('puppeteer-core').Page} page */
const ids = (page) => page.$$eval('.box', (all) => all.map((e) => e.getAttribute('data-id')));
/** @param {import('puppeteer-core').Page} page @param {string} name */
const picture = (page, name) => page.screenshot({ path: join(out, `view-${name}.png`) });
/** Waits until the expression `what` is true in the page. @param {import('puppeteer-core').Page}
 * page @param {string} what */
const until = (page, what) => page.waitForFunction(what, { timeout: 200_000 });
/** @param {string} sentence */
const verdict = (sentence) =>
  `document.getElementById('verdict').textContent.includes(${JSON.stringify(sentence)})`;

test('a pipeline: its bottleneck, a process, a channel, the time line, pause, dark and light', async () => {
  await opened('pipeline', { dark: true }, async (page) => {
    await until(page, verdict('main/enrich is the bottleneck'));
    assert.deepEqual((await ids(page)).sort(), [
      'main/check',
      'main/enrich',
      'main/keeps',
      'main/source',
    ]);
    assert.equal((await page.$$('.line')).length, 3);
    assert.ok(await page.$('.box.slow[data-id="main/enrich"]'));
    await until(
      page,
      "document.querySelector('[data-id=\"main/check\"]').classList.contains('writes')",
    );
    // The channels before the slow stage are full.
    await until(page, 'document.querySelectorAll(".label.full").length >= 2');

    await page.click('[data-id="main/enrich"]');
    assert.equal(await text(page, '#panel h2'), 'enrich');
    assert.match(await text(page, '#panel .where'), /programs\.py:\d+/);
    assert.match(await text(page, '#panel .bar + .shares'), /busy/);
    await picture(page, 'pipeline-dark');
    await page.click('#panel .list button'); // the channel to which the process writes
    assert.equal(await text(page, '#panel h2'), 'priced');
    await page.click('.label.full[data-id="main/check → main/enrich"]');
    assert.match(await text(page, '#panel'), /its writers wait/);
    await page.keyboard.press('Escape');
    assert.equal(await page.$eval('#panel', (e) => /** @type {HTMLElement} */ (e).hidden), true);

    await page.keyboard.press(' ');
    assert.equal(await text(page, '#live'), 'paused');
    const facts = await text(page, '#facts');
    await new Promise((done) => setTimeout(done, 2500));
    assert.equal(await text(page, '#facts'), facts);
    await page.keyboard.press(' ');
    assert.equal(await text(page, '#live'), 'live');
    // Shows a moment of the past by the time line, and then the present.
    const at = await page.$eval('#timeline', (e) => e.getBoundingClientRect().toJSON());
    await page.mouse.click(at.right - 40, at.top + 30);
    assert.match(await text(page, '#live'), /ago — back to now/);
    await page.click('#live');
    assert.equal(await text(page, '#live'), 'live');
    await page.type('#only', 'check');
    assert.ok(await page.$('.box.dim[data-id="main/source"]'));
    await page.click('#theme');
    await picture(page, 'pipeline-light');
  });
});

test('a farm over OS processes: folded, opened and folded again; frames', async () => {
  await opened('farm', {}, async (page) => {
    await until(
      page,
      'document.querySelector(".frame.os") && document.querySelector(".box.folded")',
    );
    await until(page, verdict('are the bottleneck'));
    await picture(page, 'farm');
    await page.click('[data-id="main/worker[*]"]');
    assert.match(await text(page, '#panel'), /16 processes in 3 OS processes/);
    await page.click('#panel .open');
    assert.equal((await ids(page)).filter((id) => id?.startsWith('main/worker[')).length, 16);
    await new Promise((done) => setTimeout(done, 800));
    await picture(page, 'farm-opened');
    await page.click('.frame.group .fold');
    await until(page, "document.querySelector('.box.folded')");
  });
});

test('a knot is red, and named first', async () => {
  await opened('knot', { dark: true }, async (page) => {
    await until(page, verdict('wait only for one another, and can never go on'));
    assert.deepEqual(
      (await page.$$eval('.box.stuck', (all) => all.map((e) => e.getAttribute('data-id')))).sort(),
      ['main/relay[0]', 'main/relay[1]'],
    );
    assert.equal((await page.$$('.line.stuck')).length, 2);
    await page.click('[data-id="main/relay[0]"]');
    assert.match(
      await text(page, '#panel .alarm'),
      /It can never go on: it waits for main\/relay\[1\]/,
    );
    await picture(page, 'knot');
  });
});

test('ten thousand processes, folded; it says what it leaves out, and answers a click', async () => {
  await opened('many', { arguments: ['--most', '20000'] }, async (page) => {
    await until(
      page,
      'document.querySelector(\'[data-id="main/worker[*]"] .count text\')?.textContent === "10,000"',
    );
    assert.ok((await ids(page)).length < 10);
    await page.click('[data-id="main/worker[*]"]');
    await page.click('#panel .open');
    await until(page, 'document.querySelectorAll(".box").length > 40');
    assert.match(await text(page, '.box.more .name'), /9,952 more/);
    await picture(page, 'many');
  });
  await opened('many', {}, async (page) => {
    await until(
      page,
      "document.getElementById('left').textContent.includes('more processes are not in this look')",
    );
  });
});

test('hosts of a network: frames, a click, one that leaves (rule 14.18)', async () => {
  await opened('hosts', { dark: true }, async (page, { program }) => {
    await until(page, verdict('gpu2:main/enrich'));
    await until(page, 'document.querySelectorAll(".frame.group").length >= 2');
    const frames = await page.$$eval('.frame .title', (all) => all.map((e) => e.textContent ?? ''));
    assert.ok(frames.some((one) => one.startsWith('host gpu1')));
    assert.ok(frames.some((one) => one.startsWith('host gpu2')));
    assert.equal(await text(page, '.box.host[data-id="idle:"] .sub'), 'runs nothing now');
    await until(page, "document.getElementById('facts').textContent.startsWith('3 hosts')");
    await page.click('[data-id="gpu2:main/enrich"]');
    assert.match(await text(page, '#panel .where'), /programs\.py:\d+/);
    assert.match(await text(page, '#panel dl'), /hostgpu2OS process\d+/);
    await new Promise((done) => setTimeout(done, 800));
    await picture(page, 'hosts');
    program.stdin?.write('leave\n');
    await until(
      page,
      'document.querySelector(\'.box.host[data-id="gpu2:"] .sub\')?.textContent === "gone"',
    );
    await page.click('[data-id="gpu2:"]');
    assert.match(await text(page, '#panel .where'), /host gpu2 has left the network/);
    assert.equal(await page.$eval('body', (e) => e.dataset.state), 'looks');
    await picture(page, 'hosts-gone');
  });
});

test('the program ends, and then weft view is ended: the page says so', async () => {
  await opened('pipeline', {}, async (page, { program, view }) => {
    await until(page, verdict('enrich'));
    program.kill('SIGSTOP');
    await until(page, "document.body.dataset.state === 'silent'");
    assert.match(await text(page, '#alarm'), /is stopped .*kill -CONT/);
    program.kill('SIGCONT');
    await until(page, "document.body.dataset.state === 'looks'");
    program.kill('SIGKILL');
    await until(page, "document.body.dataset.state === 'ended'");
    assert.match(await text(page, '#alarm'), /has ended\. The last look is shown/);
    assert.equal((await ids(page)).length, 4);
    const [status] = await once(view, 'exit');
    assert.equal(status, 0);
  });
});
