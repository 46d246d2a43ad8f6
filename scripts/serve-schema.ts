/**
 * Writes `webhooks.schema.json` from the definition that checks the file of `serve` (serve.md §1.1). `npm run serve:schema`; a test
 * says when it is due.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configSchema } from '../src/serve/for-tests.ts';

const file = join(import.meta.dirname, '../webhooks.schema.json');
writeFileSync(file, `${JSON.stringify(configSchema(), undefined, 2)}\n`);
