/*
 * `node scripts/dev-page.ts`, after tsup: builds the page of `proto-webhooks dev` into `dist/dev`. It is a build of its own, so that no
 * chunk of the library is cut otherwise because of it.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const from = join(root, 'src/dev/page');
const to = join(root, 'dist/dev');

await build({
  entryPoints: [join(from, 'page.tsx'), join(from, 'page.css')],
  outdir: to,
  bundle: true,
  minify: true,
  format: 'esm',
  // Browsers of the last two years.
  target: ['chrome120', 'firefox120', 'safari17'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
});
copyFileSync(join(from, 'index.html'), join(to, 'index.html'));
