import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { withBlocks } from '../../bench/docs/blocks.ts';
import { groupTotals } from '../../bench/docs/chart.ts';
import { CHART_FILE, chart } from '../../bench/docs/tables.ts';
import { PAGES, pageText } from '../../bench/docs/write.ts';
import { partsOf, PARTS } from '../../bench/lib/breakdown.ts';
import { readResults, type Results } from '../../bench/lib/results.ts';
import { RESULTS } from './results.ts';

const root = new URL('../../', import.meta.url);
const read = (page: string): string => readFileSync(new URL(page, root), 'utf8');
const pages = Object.keys(PAGES);
const NOT_MEASURED = 'Not measured yet';

/** All pages, one after the other, as these results have them. */
async function written(results: Results): Promise<string> {
  const texts = await Promise.all(pages.map((page) => pageText(page, read(page), results)));
  return texts.join('\n');
}

describe('pages agree with bench/results.json (if not: npm run docs:performance)', () => {
  const results = readResults();

  it.each(pages)('%s in its tables', async (page) => {
    expect(await pageText(page, read(page), results)).toBe(read(page));
  });

  it('docs/performance.md is one screen', () => {
    expect(read('docs/performance.md').split('\n').length).toBeLessThanOrEqual(65);
  });

  it('in the chart, which exists if the parts were measured', () => {
    const file = new URL(CHART_FILE, root);
    expect(existsSync(file) ? readFileSync(file, 'utf8') : undefined).toBe(chart(results));
  });

  it('without invalid runs, and with every figure under its name', () => {
    const quick = Object.entries(results).filter(([, section]) => section.quick);
    expect(quick.map(([name]) => name)).toEqual([]);
    const whole = Object.keys(RESULTS).every((name) => results[name]);
    expect(pages.some((page) => read(page).includes(NOT_MEASURED))).toBe(!whole);
  });
});

describe('tables of the pages', () => {
  it('are written from the figures', async () => {
    const text = await written(RESULTS);
    expect(text).not.toContain(NOT_MEASURED);
    const rows = text
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.replaceAll(/ +/g, ' '));
    expect(rows).toContain('| verification, µs | 85 | 76.5 to 93.5 | | |');
    expect(rows).toContain('| `verifyAndDispatch` alone | 125 | 8,000 | |');
    expect(rows).toContain('| over HTTP, node | 200 | 5,000 | 8,000 |');
    expect(rows).toContain('| Postgres | 1,000 | 20,000 | 10,000 | 100 | 2,000 |');
    // 347,222/s × (200 + 100 µs) ÷ 0.6; 347,222/s ÷ 6,000/s.
    expect(rows).toContain('| processors for receivers | 1 | 18 | 174 |');
    expect(rows).toContain('| primaries by rate | 1 | 6 | 58 |');
    expect(rows).toContain('| Redis | 10,000 | 6,000 | 173,000,000 |');
    expect(text).toContain(
      '_Measured 2026-01-02 with commit 0123abcd on 2 × processor & co, Node 24.0.0 (`breakdown`)._',
    );
  });

  it.each(pages)('%s: other figures can be written, and nothing around them changes', async (page) => {
    const once = await pageText(page, read(page), RESULTS);
    expect(await pageText(page, once, RESULTS)).toBe(once);
    expect(await pageText(page, once, readResults())).toBe(read(page));
  });

  it('say what has to be run where something was not measured', async () => {
    const { http: _http, ...rest } = RESULTS;
    const text = await written(rest);
    expect(text).toContain(`_${NOT_MEASURED}: \`npm run bench -- http\``);
    expect(text).toContain('| verification');
  });

  it('say when a run is invalid', async () => {
    const quick = Object.entries(RESULTS).map(([name, section]) => [name, { ...section, quick: true }]);
    const text = await written(Object.fromEntries(quick) as Results);
    expect(text).toContain('**quick: means nothing**');
  });

  it('need a block each, and each block a table', () => {
    const block = '<!-- results:begin a -->\nold\n<!-- results:end -->\n';
    expect(withBlocks(block, { a: 'new' })).toBe('<!-- results:begin a -->\n\nnew\n\n<!-- results:end -->\n');
    expect(() => withBlocks(block, {})).toThrow('nobody writes the block a');
    expect(() => withBlocks(block, { a: '', b: '' })).toThrow('no block for b');
  });
});

describe('the chart', () => {
  const svg = chart(RESULTS) ?? expect.fail();
  const parts = partsOf(RESULTS['breakdown']?.figures ?? {}) ?? expect.fail();
  const widths = (y: number): number[] =>
    [...svg.matchAll(/<rect class="[a-z]+" x="[\d.]+" y="(\d+)" width="([\d.]+)"/g)]
      .filter(([, at]) => Number(at) === y)
      .map(([, , width]) => Number(width));

  it('has every part as text, a title and a description, and nothing from elsewhere', () => {
    for (const name of Object.keys(PARTS)) {
      if (name !== 'verification') expect(svg).toContain(`>${name}</text>`);
    }
    expect(svg).toContain('<title id="title">One delivery: 101 µs');
    expect(svg).toMatch(/<desc id="desc">Where the 101 µs of a delivery go: FLOOR[^<]+<\/desc>/);
    expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|url\(|@import|<script|<image/);
    expect(svg).toContain('prefers-color-scheme: dark');
  });

  it('has a bar as long as the whole, divided as the groups are', () => {
    const bar = widths(48);
    const totals = groupTotals(parts);
    expect(bar.reduce((sum, width) => sum + width, 0)).toBeCloseTo(740, 0);
    expect(totals.reduce((sum, [, micros]) => sum + micros, 0)).toBe(101);
    expect(bar).toEqual(totals.map(([, micros]) => expect.closeTo((micros / 101) * 740, 1)));
  });

  it('draws a negative part as zero', () => {
    const figures = RESULTS['breakdown']?.figures ?? {};
    const [rest = ''] = Object.keys(figures).filter((name) => name.startsWith('rest'));
    const noisy = { ...figures, [rest]: { median: -3, min: -4, max: 1 } };
    const drawn = chart({ breakdown: { ...RESULTS['breakdown'], figures: noisy } } as Results);
    expect(drawn).toContain('>-3.0 µs</text>');
    expect(drawn).not.toMatch(/width="-/);
  });

  it('is not drawn where a part is missing', () => {
    expect(chart({})).toBeUndefined();
    expect(partsOf({ verification: { median: 1 } })).toBeUndefined();
  });
});
