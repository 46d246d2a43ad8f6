import type { Figure } from './measure.ts';

/** What a part of a delivery is for, and so its colour in the chart. */
export type Group = 'floor' | 'checks' | 'store' | 'handler' | 'rest';

export const GROUPS: Readonly<Record<Group, string>> = {
  floor: 'FLOOR: what nobody can leave out',
  checks: 'checks and reading',
  store: 'store (memory)',
  handler: 'handler',
  rest: 'rest',
};

/** Parts of a delivery in the order of its way, by the names of their figures. */
export const PARTS = {
  'headers, method, content type': 'checks',
  'signature fields: parse': 'checks',
  'parameters, window, components': 'checks',
  'signature base and host': 'checks',
  'key: find, purpose, revocation': 'checks',
  verification: 'floor',
  'SHA-256 of the body': 'floor',
  'decode and JSON.parse': 'floor',
  'strict count: names twice, depth': 'checks',
  'envelope and event': 'checks',
  'claim, delivery id, request to the store': 'checks',
  'accept (memory store)': 'store',
  'dispatch to the handler': 'handler',
  'completion (memory store)': 'store',
  'outcome and answer': 'rest',
  'verification: more in its place than alone': 'rest',
  'rest: promises, order of the stages': 'rest',
} as const satisfies Readonly<Record<string, Group>>;

export type PartName = keyof typeof PARTS;

export const WHOLE = 'whole delivery';

/** Names of figures carry their unit. */
export const inMicros = (name: string): string => `${name}, µs`;

export interface Part {
  readonly name: PartName;
  readonly group: Group;
  readonly micros: number;
}

/** µs of each part, in their order; undefined where one was not measured. */
export function partsOf(
  figures: Readonly<Record<string, Pick<Figure, 'median'>>>,
): readonly Part[] | undefined {
  const parts: Part[] = [];
  for (const [name, group] of Object.entries(PARTS) as [PartName, Group][]) {
    const micros = figures[inMicros(name)]?.median;
    if (!Number.isFinite(micros)) return undefined;
    parts.push({ name, group, micros: micros as number });
  }
  return parts;
}
