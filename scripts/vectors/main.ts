/* `npm run vectors`: writes `vectors/` anew. A test fails where the files on disk are others. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { vectorFiles } from './files.ts';

const folder = fileURLToPath(new URL('../../vectors/', import.meta.url));
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
console.log(`${files.size} files in ${folder}`);
