import { format } from 'prettier';
import type { Results } from '../lib/results.ts';
import { withBlocks, written } from './blocks.ts';
import { capsBlock, ceilingBlock, fleetBlock, loadBlock } from './fleet-tables.ts';
import { breakdownBlock, storesBlock, throughputBlock } from './tables.ts';

/** Blocks of docs/performance.md, by the names in their markers. */
const BLOCKS: Readonly<Record<string, (results: Results) => string>> = {
  breakdown: breakdownBlock,
  throughput: throughputBlock,
  stores: storesBlock,
  load: loadBlock,
  fleet: fleetBlock,
  caps: capsBlock,
  ceiling: ceilingBlock,
};

/** docs/performance.md with everything between its markers as the results have it. */
export function performanceText(markdown: string, results: Results): Promise<string> {
  const blocks = Object.entries(BLOCKS).map(([name, write]) => [name, written(() => write(results))]);
  const text = withBlocks(markdown, Object.fromEntries(blocks) as Record<string, string>);
  return format(text, { parser: 'markdown', singleQuote: true, printWidth: 110 });
}
