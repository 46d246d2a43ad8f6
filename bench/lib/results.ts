import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import type { Machine } from './machine.ts';
import type { Figures } from './measure.ts';

/** What one run says of one section. */
export interface SectionResult {
  /** ISO 8601, the day. */
  readonly measured: string;
  /** The commit that was checked out, abbreviated. */
  readonly commit: string;
  readonly machine: Machine;
  /** Too short to mean anything. */
  readonly quick: boolean;
  /** Sections on one thread: processor time instead of the clock's. */
  readonly cpu: boolean;
  readonly figures: Figures;
}

export type Results = Readonly<Record<string, SectionResult>>;

const JSON_FILE = new URL('../results.json', import.meta.url);

/** What other runs measured is kept: a section can be measured alone. */
export function readResults(): Results {
  return existsSync(JSON_FILE) ? (JSON.parse(readFileSync(JSON_FILE, 'utf8')) as Results) : {};
}

export async function writeResults(results: Results): Promise<void> {
  const json = JSON.stringify(results, (_, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(5)) : value,
  );
  writeFileSync(JSON_FILE, await format(json, { parser: 'json', printWidth: 110 }));
}
