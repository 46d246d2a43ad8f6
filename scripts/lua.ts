/**
 * Writes `src/stores/redis/lua.ts` from the Lua files beside it: a module is what the build, the tests and plain Node load
 * alike. `npm run lua`; a test says when it is due.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const redis = join(import.meta.dirname, '../src/stores/redis');
const files = readdirSync(join(redis, 'lua')).toSorted();
const lines = files.map(
  (name) =>
    `  ${basename(name, '.lua')}: ${JSON.stringify(readFileSync(join(redis, 'lua', name), 'utf8'))},\n`,
);
writeFileSync(
  join(redis, 'lua.ts'),
  `// The Lua scripts of \`lua/*.lua\`, written by \`npm run lua\`. Called by scripts.ts.
// Change the Lua files instead of this one. A comment in them is sent to Redis too, and changes the script's hash.
export const LUA = {
${lines.join('')}} as const;
`,
);
