import type { Figure, Targeted } from '../lib/measure.ts';
import type { Results, SectionResult } from '../lib/results.ts';
import { SECTIONS } from '../sections.ts';

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

function sectionText(name: string, { figures, quick, cpu, measured, commit }: SectionResult): string {
  const title = SECTIONS[name]?.title ?? name;
  const said = [
    `\`npm run bench -- ${name}\``,
    `${measured}, commit ${commit}`,
    ...(cpu ? ['with --cpu'] : []),
    ...(quick ? ['**quick: means nothing**'] : []),
  ];
  return [
    `### ${title}`,
    '',
    said.join(', '),
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

/** Every figure of every section that was measured. */
export function figuresBlock(results: Results): string {
  const known = Object.entries(results).filter(([name]) => SECTIONS[name]);
  const order = Object.keys(SECTIONS);
  const sections = known.toSorted(([one], [other]) => order.indexOf(one) - order.indexOf(other));
  return [...machines(results), '', ...sections.map(([name, section]) => sectionText(name, section))].join(
    '\n',
  );
}
