/**
 * Writes the module of a store's migrations from the SQL files beside it: a module is what the build, the tests and plain
 * Node load alike. `npm run migrations`; a test says when it is due.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

for (const store of ['postgres', 'mysql']) {
  const place = join(import.meta.dirname, '../src/stores', store);
  const folder = join(place, 'migrations');
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .toSorted();
  const lines = files.map((name) => `  ${JSON.stringify(readFileSync(join(folder, name), 'utf8'))},\n`);
  writeFileSync(
    join(place, `${store}-migrations.ts`),
    `// The migrations of \`migrations/*.sql\`, written by \`npm run migrations\`. The first one creates the schema; each later
// one upgrades it to the next version. Only \`migrate\` loads them.
// Change the SQL files instead of this one (README.md in \`migrations\`).
export const MIGRATIONS: readonly string[] = [
${lines.join('')}];
`,
  );
}
