// node run.mjs PROGRAM.py FOLDER…: runs a program on MicroPython's WebAssembly port. The program
// can import the files of the folders, which are copied to the port's own file system. The heap is
// 4 MB, or WEFT_HEAP bytes.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadMicroPython } from '@micropython/micropython-webassembly-pyscript/micropython.mjs';

const [program, ...folders] = process.argv.slice(2);
if (!program) {
  console.error('usage: node run.mjs PROGRAM.py FOLDER…');
  process.exit(2);
}
const heapsize = Number(process.env.WEFT_HEAP ?? 4 * 1024 * 1024);
const python = await loadMicroPython({
  heapsize,
  stdout: (line) => console.log(line),
  linebuffer: true,
});

function copy(from, to) {
  python.FS.mkdirTree(to);
  for (const name of readdirSync(from)) {
    const path = join(from, name);
    if (statSync(path).isDirectory()) copy(path, `${to}/${name}`);
    else if (name.endsWith('.py')) python.FS.writeFile(`${to}/${name}`, readFileSync(path));
  }
}

python.runPython('import sys');
for (const [i, folder] of folders.entries()) {
  copy(folder, `/weft${i}`);
  python.runPython(`sys.path.append("/weft${i}")`);
}
try {
  python.runPython(readFileSync(program, 'utf8'));
} catch (error) {
  console.error(error.message ?? String(error));
  process.exit(1);
}
