import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import type { Results } from '../lib/results.ts';
import { withBlocks, written } from './blocks.ts';
import { figuresBlock } from './figures.ts';
import { capsBlock, ceilingBlock, fleetBlock, loadBlock } from './fleet-tables.ts';
import { breakdownBlock, chart, CHART_FILE, doorsBlock, storesBlock } from './tables.ts';

const root = new URL('../../', import.meta.url);

type Block = (results: Results) => string;

/** Pages with figures, by their paths in the repository: their blocks, by the names in their markers. */
export const PAGES: Readonly<Record<string, Readonly<Record<string, Block>>>> = {
  'docs/performance.md': { doors: doorsBlock, stores: storesBlock },
  'bench/results.md': {
    breakdown: breakdownBlock,
    load: loadBlock,
    fleet: fleetBlock,
    caps: capsBlock,
    ceiling: ceilingBlock,
    figures: figuresBlock,
  },
};

/** A page of `PAGES` with everything between its markers as the results have it. */
export function pageText(page: string, markdown: string, results: Results): Promise<string> {
  const blocks = Object.entries(PAGES[page] ?? {}).map(([name, write]) => [
    name,
    written(() => write(results)),
  ]);
  const text = withBlocks(markdown, Object.fromEntries(blocks) as Record<string, string>);
  return format(text, { parser: 'markdown', singleQuote: true, printWidth: 110 });
}

/** Writes the figures into the pages, and the chart beside them. */
export async function writePages(results: Results): Promise<void> {
  for (const page of Object.keys(PAGES)) {
    const file = new URL(page, root);
    writeFileSync(file, await pageText(page, readFileSync(file, 'utf8'), results));
  }
  const file = new URL(CHART_FILE, root);
  const drawn = chart(results);
  if (drawn === undefined) rmSync(file, { force: true });
  else writeFileSync(file, drawn);
}
