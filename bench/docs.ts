// npm run docs:performance: writes what bench/results.json says into docs/performance.md and bench/results.md, and the chart.
import { writePages } from './docs/write.ts';
import { readResults } from './lib/results.ts';

await writePages(readResults());
