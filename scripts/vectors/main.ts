/* `npm run vectors`: writes `vectors/` anew, runs it, and writes into the documents how many vectors there are. A test
   fails where the files on disk are others. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runVectors } from '../../src/vectors/index.ts';
import { COUNTED, withCounts } from './counts.ts';
import { vectorFiles } from './files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'vectors');
mkdirSync(folder, { recursive: true });
const files = vectorFiles();
for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
  if (entry.endsWith('.json') && !files.has(entry.replaceAll('\\', '/'))) rmSync(join(folder, entry));
}
for (const [path, text] of files) {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
const results = await runVectors({ dir: folder });
for (const name of COUNTED) {
  const file = join(root, name);
  writeFileSync(file, withCounts(name, readFileSync(file, 'utf8'), results));
}
console.log(`${files.size} files, ${results.length} vectors in ${folder}`);
