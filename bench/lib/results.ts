import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { SECTIONS } from '../sections.ts';
import type { Machine } from './machine.ts';
import type { Figure, Figures, Targeted } from './measure.ts';

/** What one run says of one section. */
export interface SectionResult {
  /** ISO 8601, the day. */
  readonly measured: string;
  readonly machine: Machine;
  /** Too short to mean anything. */
  readonly quick: boolean;
  /** Sections on one thread: processor time instead of the clock's. */
  readonly cpu: boolean;
  readonly figures: Figures;
}

export type Results = Readonly<Record<string, SectionResult>>;

const url = (name: string): URL => new URL(`../${name}`, import.meta.url);

const JSON_FILE = url('results.json');
const MARKDOWN_FILE = url('results.md');

/** What other runs measured is kept: a section can be measured alone. */
export function readResults(): Results {
  return existsSync(JSON_FILE) ? (JSON.parse(readFileSync(JSON_FILE, 'utf8')) as Results) : {};
}

const isTargeted = (value: Figure): value is Targeted => 'target' in value;

/** Three or four digits that count. */
function rounded(value: number | null): string {
  if (value === null || Number.isNaN(value)) return 'not measured';
  if (value >= 1000) return Math.round(value).toString();
  return Number(value.toPrecision(3)).toString();
}

function row([name, value]: readonly [string, Figure]): string {
  const [median, min, max] = [value.median, value.min, value.max].map(rounded);
  const spread = min === max ? '' : `${min} to ${max}`;
  const target = isTargeted(value) ? [value.target, value.met ? 'yes' : '**no**'] : ['', ''];
  return `| ${[name, median, spread, ...target].join(' | ')} |`;
}

function sectionText(name: string, { figures, quick, cpu, measured }: SectionResult): string {
  const title = SECTIONS[name]?.title ?? name;
  return [
    `## ${title}`,
    '',
    `\`npm run bench -- ${name}\`, ${measured}${cpu ? ', with --cpu' : ''}${quick ? ', **quick: means nothing**' : ''}`,
    '',
    '| Figure | Median | Least to most | Target | Met |',
    '| --- | --- | --- | --- | --- |',
    ...Object.entries(figures).map(row),
    '',
  ].join('\n');
}

/** One line for each machine that the sections were measured on: one, where all were measured together. */
function machines(results: Results): string[] {
  const found = new Map<string, string[]>();
  for (const [name, { machine }] of Object.entries(results)) {
    const text = Object.entries(machine)
      .map(([what, is]) => `${what} ${is}`)
      .join(', ');
    found.set(text, [...(found.get(text) ?? []), name]);
  }
  const one = found.size === 1;
  return [...found].map(([text, names]) => (one ? text : `- ${names.join(', ')}: ${text}`));
}

function markdown(results: Results): string {
  const known = Object.keys(SECTIONS).filter((name) => results[name]);
  return [
    '# Benchmarks',
    '',
    'Written by `npm run bench`. Figures are medians over repetitions that alternate the contestants in one run; ratios',
    'compare within a repetition. Times differ from machine to machine, ratios much less.',
    '',
    ...machines(results),
    '',
    ...known.map((name) => sectionText(name, results[name] as SectionResult)),
  ].join('\n');
}

export async function writeResults(results: Results): Promise<void> {
  const json = JSON.stringify(results, (_, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(5)) : value,
  );
  writeFileSync(JSON_FILE, await format(json, { parser: 'json', printWidth: 110 }));
  writeFileSync(MARKDOWN_FILE, await format(markdown(results), { parser: 'markdown', printWidth: 110 }));
}
