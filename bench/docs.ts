// npm run docs:performance: writes what bench/results.json says into docs/performance.md, and its chart beside it.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { CHART_FILE, chart } from './docs/tables.ts';
import { performanceText } from './docs/write.ts';
import { readResults } from './lib/results.ts';

const results = readResults();
const docs = new URL('../docs/', import.meta.url);
const page = new URL('performance.md', docs);
const svg = new URL(CHART_FILE, docs);

writeFileSync(page, await performanceText(readFileSync(page, 'utf8'), results));
const drawn = chart(results);
if (drawn === undefined) rmSync(svg, { force: true });
else writeFileSync(svg, drawn);
