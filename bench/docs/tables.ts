import { basename } from 'node:path';
import { inMicros, partsOf, WHOLE, type Part } from '../lib/breakdown.ts';
import type { Results } from '../lib/results.ts';
import { chartAlt, chartOf, microsText } from './chart.ts';
import { EVENTS, STORE_NAMES, storeConstants, type StoreName } from './constants.ts';
import { measuredOn, medianOf, NotMeasured, sectionOf } from './measured.ts';
import { number, table } from './numbers.ts';

const BREAKDOWN = 'breakdown';

/** From the root of the repository. */
export const CHART_FILE = 'bench/breakdown.svg';

interface Breakdown {
  readonly parts: readonly Part[];
  readonly whole: number;
}

function breakdownOf(results: Results): Breakdown {
  const parts = partsOf(sectionOf(results, BREAKDOWN).figures);
  if (!parts) throw new NotMeasured(BREAKDOWN);
  return { parts, whole: medianOf(results, BREAKDOWN, inMicros(WHOLE)) };
}

/** Undefined while nothing was measured: then there is no file either. */
export function chart(results: Results): string | undefined {
  try {
    const { parts, whole } = breakdownOf(results);
    return chartOf(parts, whole);
  } catch (error) {
    if (error instanceof NotMeasured) return undefined;
    throw error;
  }
}

/** The table of the parts stands in the figures of the section. */
export function breakdownBlock(results: Results): string {
  const { parts, whole } = breakdownOf(results);
  return `![${chartAlt(parts, whole)}](${basename(CHART_FILE)})\n\n${measuredOn(results, [BREAKDOWN])}`;
}

const DOORS = ['node', 'fastify', 'hono', 'express'] as const;

export function doorsBlock(results: Results): string {
  const alone = medianOf(results, 'pipeline', 'ed25519: whole pipeline, µs');
  const doors = DOORS.map((door) => {
    const rate = medianOf(results, 'http', `${door}: whole pipeline, deliveries/s`);
    const bare = medianOf(results, 'http', `${door}: bare server with one crypto.verify, requests/s`);
    return [`over HTTP, ${door}`, microsText(1_000_000 / rate), number(rate), number(bare)] as const;
  });
  return [
    table(
      ['One process, 1 KB, Ed25519, memory store', 'µs', 'deliveries/s', 'bare server, requests/s'],
      [['`verifyAndDispatch` alone', microsText(alone), number(1_000_000 / alone), ''], ...doors],
    ),
    measuredOn(results, ['pipeline', 'http']),
  ].join('\n\n');
}

const WIDTHS = [1, 64];

function storeRow(results: Results, store: StoreName): readonly string[] {
  const accepts = WIDTHS.map((width) =>
    medianOf(results, 'stores', `${store}, ${width} concurrent: accepts/s`),
  );
  const delivered = medianOf(results, 'http', `${store}: whole pipeline, deliveries/s`);
  const { eventsPerSecond, micros } = storeConstants(results, store);
  return [
    STORE_NAMES[store],
    ...[...accepts, eventsPerSecond].map(number),
    microsText(micros),
    number(delivered),
  ];
}

export function storesBlock(results: Results): string {
  const accepts = WIDTHS.map((width) => `accepts/s, ${width} at once`);
  return [
    table(
      ['Store, one seller', ...accepts, 'events/s', 'µs an event', 'deliveries/s over HTTP'],
      (Object.keys(STORE_NAMES) as StoreName[]).map((store) => storeRow(results, store)),
    ),
    measuredOn(results, ['stores', EVENTS, 'http']),
  ].join('\n\n');
}
