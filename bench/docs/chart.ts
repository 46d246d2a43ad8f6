import { GROUPS, type Group, type Part } from '../lib/breakdown.ts';

/*
 * Where the time of a delivery goes, as SVG: one bar of all groups, then every part but the verification on a scale of
 * its own. Text is text, fonts are the reader's, and the background is drawn, so that it can be read on any page.
 */

const WIDTH = 780;
const LEFT = 300;
const RIGHT = 70;
const ROW = 22;
const BAR = 14;

const STYLE = `
  .page { fill: #ffffff }
  text { fill: #1f2328; font: 13px system-ui, -apple-system, "Segoe UI", sans-serif }
  .title { font-size: 15px; font-weight: 600 }
  .number { font-variant-numeric: tabular-nums }
  .floor { fill: #2f6fab }
  .checks { fill: #c2650c }
  .store { fill: #2c8a5b }
  .handler { fill: #8a56b8 }
  .rest { fill: #7d8590 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 }
    text { fill: #e6edf3 }
    .floor { fill: #58a6ff }
    .checks { fill: #f0883e }
    .store { fill: #3fb950 }
    .handler { fill: #bc8cff }
    .rest { fill: #8b949e }
  }`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Noise can take a part below nothing. */
const length = (micros: number, scale: number): number => Number((Math.max(0, micros) * scale).toFixed(1));

export const microsText = (micros: number): string =>
  Math.abs(micros) >= 100 ? micros.toFixed(0) : micros.toFixed(1);

interface Text {
  readonly x: number;
  readonly y: number;
  readonly className?: string;
  readonly end?: boolean;
}

const text = (content: string, { x, y, className, end }: Text): string =>
  `<text x="${x}" y="${y}"${className ? ` class="${className}"` : ''}${end ? ' text-anchor="end"' : ''}>${escaped(content)}</text>`;

const bar = (group: Group, x: number, y: number, width: number, height: number): string =>
  `<rect class="${group}" x="${x}" y="${y}" width="${width}" height="${height}"/>`;

/** What adds up to the whole. */
export function groupTotals(parts: readonly Part[]): readonly (readonly [Group, number])[] {
  const groups = Object.keys(GROUPS) as Group[];
  const of = (group: Group): number =>
    parts.filter((part) => part.group === group).reduce((sum, { micros }) => sum + micros, 0);
  return groups.map((group) => [group, of(group)]);
}

/** The stacked bar with its legend, from `top`. */
function stack(parts: readonly Part[], whole: number, top: number): string[] {
  const totals = groupTotals(parts);
  const shown = totals.reduce((sum, [, micros]) => sum + Math.max(0, micros), 0);
  const scale = (WIDTH - 40) / shown;
  const lines: string[] = [];
  let x = 20;
  for (const [at, [group, micros]] of totals.entries()) {
    const width = length(micros, scale);
    lines.push(bar(group, Number(x.toFixed(1)), top, width, 28));
    x += width;
    const y = top + 48 + at * ROW;
    const share = `${Math.round((micros / whole) * 100)} %`;
    lines.push(
      bar(group, 20, y - 11, BAR, BAR),
      text(GROUPS[group], { x: 42, y }),
      text(`${microsText(micros)} µs`, { x: LEFT + 60, y, className: 'number', end: true }),
      text(share, { x: LEFT + 120, y, className: 'number', end: true }),
    );
  }
  return lines;
}

/** A bar for each of `parts`, from `top`. */
function bars(parts: readonly Part[], top: number): string[] {
  const most = Math.max(...parts.map(({ micros }) => micros), Number.EPSILON);
  const scale = (WIDTH - LEFT - RIGHT - 20) / most;
  return parts.flatMap(({ name, group, micros }, at) => {
    const y = top + at * ROW;
    const width = length(micros, scale);
    return [
      text(name, { x: LEFT - 10, y: y + 11, end: true }),
      bar(group, LEFT, y, width, BAR),
      text(`${microsText(micros)} µs`, {
        x: Number((LEFT + width + 8).toFixed(1)),
        y: y + 11,
        className: 'number',
      }),
    ];
  });
}

/** What the chart says, for those who do not see it. One line. */
export function chartAlt(parts: readonly Part[], whole: number): string {
  const said = groupTotals(parts).map(([group, micros]) => `${GROUPS[group]} ${microsText(micros)} µs`);
  return `Where the ${microsText(whole)} µs of a delivery go: ${said.join('; ')}`;
}

/** @param whole µs of the whole delivery. */
export function chartOf(parts: readonly Part[], whole: number): string {
  const others = parts.filter(({ name }) => name !== 'verification');
  const legendTop = 48;
  const barsTop = legendTop + 48 + Object.keys(GROUPS).length * ROW + 30;
  const height = barsTop + others.length * ROW + 14;
  const title = `One delivery: ${microsText(whole)} µs (1 KB, Ed25519, memory store, one thread)`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(chartAlt(parts, whole))}</desc>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="page" width="${WIDTH}" height="${height}" rx="6"/>`,
    text(title, { x: 20, y: 30, className: 'title' }),
    ...stack(parts, whole, legendTop),
    text('All parts but the verification itself, in the order of the way', {
      x: 20,
      y: barsTop - 14,
      className: 'title',
    }),
    ...bars(others, barsTop),
    '</svg>',
    '',
  ].join('\n');
}
