// Bundles the page into python/src/weft/_commands/page, which is committed, so that the Python
// package builds without node. `--check` compares, and writes nothing.

import { build } from 'esbuild';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const to = join(here, '../python/src/weft/_commands/page');
const bundle = await build({
  entryPoints: [join(here, 'src/main.mjs')],
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  write: false,
  metafile: true,
  legalComments: 'none',
});
const css = await build({
  entryPoints: [join(here, 'src/page.css')],
  minify: true,
  target: ['chrome111', 'firefox113', 'safari16.4'],
  write: false,
});

// The licences of the packages in the bundle.
const packages = new Set();
for (const input of Object.keys(bundle.metafile.inputs)) {
  const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
// The bundle of dagre itself contains graphlib.
if (packages.has('@dagrejs/dagre')) packages.add('@dagrejs/graphlib');
const licences = [...packages].sort().map((name) => {
  const folder = join(here, 'node_modules', name);
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt']
    .map((one) => join(folder, one))
    .find(existsSync);
  const text = file ? readFileSync(file, 'utf8').trim() : `Licence: ${license}`;
  return `${name} ${version}\n\n${text}\n`;
});
const files = {
  'page.js': bundle.outputFiles[0].text,
  'page.css': css.outputFiles[0].text,
  'index.html': readFileSync(join(here, 'src/index.html'), 'utf8'),
  'licenses.txt': `page.js has these packages in it, as npm has them.\n\n${licences.join('\n----\n\n')}`,
};

const differ = Object.entries(files).filter(([name, text]) => {
  const file = join(to, name);
  return !existsSync(file) || readFileSync(file, 'utf8') !== text;
});
if (process.argv.includes('--check')) {
  if (differ.length) {
    console.error(
      `${differ.map(([name]) => name).join(', ')}: not what view/src makes: node view/build.mjs`,
    );
    process.exit(1);
  }
} else {
  mkdirSync(to, { recursive: true });
  for (const [name, text] of differ) writeFileSync(join(to, name), text);
}
