// Writes the tables of the proofs into the pages, from their result files.
// Called by `npm run proofs`, and by hand with `npm run docs:proofs` after a change of the words.
import { readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { withBlocks } from '../../bench/docs/blocks.ts';
import { codesNow, type ProofRow, rowsOf } from './results.ts';
import { type Proof, PROOF_NAMES, proofNamed } from './table.ts';

const root = new URL('../../', import.meta.url);

/** Behind a row whose code has changed since. */
export const OLD = ', older code';

const NUMBER = new Intl.NumberFormat('en-US');

/** A figure is a number, or a list of which the length counts. */
export function numberOf(value: unknown): number | undefined {
  if (Array.isArray(value)) return value.length;
  return typeof value === 'number' ? value : undefined;
}

/** `25,000 events`; of several rows `138 to 140 tasks`, or their sum. */
function counted(
  rows: readonly ProofRow[],
  figure: string,
  words: string,
  adds: boolean,
): string | undefined {
  const numbers = rows.map(({ figures }) => numberOf(figures[figure])).filter((one) => one !== undefined);
  if (numbers.length === 0) return undefined;
  if (adds) return `${NUMBER.format(numbers.reduce((sum, one) => sum + one, 0))} ${words}`;
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)].map((one) => NUMBER.format(one));
  return `${least === most ? least : `${least} to ${most}`} ${words}`;
}

const counts = (
  rows: readonly ProofRow[],
  names: Readonly<Record<string, string>> = {},
  adds = false,
): readonly string[] =>
  Object.entries(names)
    .map(([figure, words]) => counted(rows, figure, words, adds))
    .filter((text) => text !== undefined);

function driven(rows: readonly ProofRow[], proof: Proof): string {
  const parts = counts(rows, proof.driven, proof.adds);
  return parts.length === 0 ? `${NUMBER.format(rows.length)} tests` : parts.join(', ');
}

function found(rows: readonly ProofRow[], proof: Proof): string {
  const parts = counts(rows, proof.found);
  return parts.length === 0 ? 'all passed' : parts.join(', ');
}

function timeOf(rows: readonly ProofRow[]): string {
  const seconds = rows.reduce((sum, row) => sum + row.seconds, 0);
  return seconds < 120 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

const each = (values: readonly string[]): string => [...new Set(values)].join(', ');

function dated(code: string, rows: readonly ProofRow[]): string {
  const isOld = rows.some((row) => row.code !== code);
  return `${each(rows.map(({ date }) => date))}${isOld ? OLD : ''}`;
}

const when = (code: string, rows: readonly ProofRow[]): string =>
  `${each(rows.map(({ commit }) => commit))}; ${dated(code, rows)}`;

type CodeNow = ReturnType<typeof codesNow>;

/** A proof that was run, its rows, and the fingerprint of its code as it is now. */
interface Proven {
  readonly name: string;
  readonly proof: Proof;
  readonly rows: readonly ProofRow[];
  readonly code: string;
}

/** The proofs that were run: one that was not has no row. */
function proven(codeNow: CodeNow): readonly Proven[] {
  return PROOF_NAMES.map((name) => ({ name, rows: rowsOf(name) }))
    .filter(({ rows }) => rows.length > 0)
    .map((one) => ({ ...one, proof: proofNamed(one.name), code: codeNow(one.name) }));
}

/** One line a proof. */
function summary(codeNow: CodeNow): string {
  const lines = proven(codeNow).map(({ proof, rows, code }) =>
    [proof.title, rows.length, driven(rows, proof), found(rows, proof), timeOf(rows), when(code, rows)].join(
      ' | ',
    ),
  );
  const head = ['Proof | Rows | Driven in each | Found | Time | Commit and date', '- | - | - | - | - | -'];
  return [...head, ...lines].map((line) => `| ${line} |`).join('\n');
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

/** Each row of the proofs that count something. */
function details(codeNow: CodeNow): string {
  return proven(codeNow)
    .filter(({ proof }) => proof.driven)
    .map(({ name, proof, rows, code }) => {
      const lines = rows.map((row) => {
        const { seed } = row.figures;
        const cells = [driven([row], proof), found([row], proof), timeOf([row]), when(code, [row])];
        return `| ${[cell(row.test), ...cells, typeof seed === 'number' ? String(seed) : ''].join(' | ')} |`;
      });
      const head = '| Test | Driven | Found | Time | Commit and date | Seed |\n| - | - | - | - | - | - |';
      return `### ${proof.title}\n\n\`npm run proofs -- ${name}\`\n\n${head}\n${lines.join('\n')}`;
    })
    .join('\n\n');
}

/** One item a proof of the packed page. */
function items(codeNow: CodeNow): string {
  return proven(codeNow)
    .filter(({ proof }) => proof.isPacked)
    .map(({ proof, rows, code }) => {
      const [main = ''] = Object.keys(proof.driven ?? {});
      const measured = rows.filter(({ figures }) => numberOf(figures[main]) !== undefined);
      const many = measured.length > 1 && !proof.adds ? `${measured.length} rows, each ` : '';
      return `- **${proof.title}**: ${many}${driven(rows, proof)}; ${found(rows, proof)} (${dated(code, rows)}).`;
    })
    .join('\n');
}

/** Pages with tables of proofs, by their paths in the repository: their blocks, by the names in their markers. */
export const PROOF_PAGES: Readonly<Record<string, Readonly<Record<string, (codeNow: CodeNow) => string>>>> = {
  'test/proofs/README.md': { summary, details },
  'docs/promises.md': { proofs: items },
};

/** A page of `PROOF_PAGES` with everything between its markers as the results have it. */
export function proofPageText(page: string, markdown: string, codeNow: CodeNow): Promise<string> {
  const blocks = Object.entries(PROOF_PAGES[page] ?? {}).map(([name, write]) => [name, write(codeNow)]);
  const text = withBlocks(markdown, Object.fromEntries(blocks) as Record<string, string>);
  return format(text, { parser: 'markdown', singleQuote: true, printWidth: 110 });
}

export async function writeProofPages(): Promise<void> {
  const codeNow = codesNow();
  for (const page of Object.keys(PROOF_PAGES)) {
    const file = new URL(page, root);
    writeFileSync(file, await proofPageText(page, readFileSync(file, 'utf8'), codeNow));
  }
}
