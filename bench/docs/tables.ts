import { inMicros, partsOf, WHOLE, type Part } from '../lib/breakdown.ts';
import { EVENT_FIGURES, ROOM_FIGURES } from '../lib/event-figures.ts';
import type { Results } from '../lib/results.ts';
import { chartAlt, chartOf, microsText } from './chart.ts';
import { EVENTS, STORE_NAMES, storeConstants, type StoreName } from './constants.ts';
import { figureOf, measuredOn, medianOf, NotMeasured, sectionOf } from './measured.ts';
import { bytes, number, table } from './numbers.ts';

const BREAKDOWN = 'breakdown';

export const CHART_FILE = 'performance-breakdown.svg';

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

export function breakdownBlock(results: Results): string {
  const { parts, whole } = breakdownOf(results);
  const rows = parts.map(({ name, micros }) => {
    const { min, max } = figureOf(results, BREAKDOWN, inMicros(name));
    const share = `${((micros / whole) * 100).toFixed(1)} %`;
    return [name, microsText(micros), `${microsText(min)} to ${microsText(max)}`, share];
  });
  const beside = ['bare verification', 'FLOOR'].map(
    (name) => `${name} ${microsText(medianOf(results, BREAKDOWN, inMicros(name)))} µs`,
  );
  return [
    `![${chartAlt(parts, whole)}](${CHART_FILE})`,
    table(
      ['Part', 'µs', 'least to most', 'share'],
      [...rows, ['**whole delivery**', `**${microsText(whole)}**`, '', '']],
    ),
    `In the same run: ${beside.join(', ')}. ${measuredOn(results, [BREAKDOWN])}`,
  ].join('\n\n');
}

const DOORS = ['node', 'fastify', 'hono', 'express'] as const;

export function throughputBlock(results: Results): string {
  const alone = ['ed25519', 'ecdsa-p256-sha256'].map((alg) => {
    const micros = medianOf(results, 'pipeline', `${alg}: whole pipeline, µs`);
    return [
      `\`verifyAndDispatch\` alone, ${alg}`,
      microsText(micros),
      number(1_000_000 / micros),
      '',
    ] as const;
  });
  const doors = DOORS.map((door) => {
    const rate = medianOf(results, 'http', `${door}: whole pipeline, deliveries/s`);
    const bare = medianOf(results, 'http', `${door}: bare server with one crypto.verify, requests/s`);
    return [`over HTTP, ${door}, ed25519`, microsText(1_000_000 / rate), number(rate), number(bare)] as const;
  });
  const stores = (Object.keys(STORE_NAMES) as StoreName[]).map((store) => {
    const rate = medianOf(results, 'http', `${store}: whole pipeline, deliveries/s`);
    const bare = `${store}: bare server with one crypto.verify and one durable write, requests/s`;
    return [STORE_NAMES[store], number(rate), number(medianOf(results, 'http', bare))] as const;
  });
  const pool = medianOf(results, 'http', 'node: verification off the main thread ÷ on it, by deliveries/s');
  return [
    table(
      ['One process, 1 KB, memory store', 'µs', 'deliveries/s', 'bare server, requests/s'],
      [...alone, ...doors],
    ),
    `With \`verification: 'pool'\` the process with the node door answers ${number(pool)} times as many a second, on two processors.`,
    table(
      ['Over HTTP, 32 connections, durable store', 'deliveries/s', 'bare server with one write, requests/s'],
      stores,
    ),
    measuredOn(results, ['pipeline', 'http']),
  ].join('\n\n');
}

const WIDTHS = [1, 16, 64];

function storeRow(results: Results, store: StoreName): readonly string[] {
  const accepts = WIDTHS.map((width) =>
    medianOf(results, 'stores', `${store}, ${width} concurrent: accepts/s`),
  );
  const { eventsPerSecond, micros } = storeConstants(results, store);
  return [STORE_NAMES[store], ...accepts.map(number), number(eventsPerSecond), microsText(micros)];
}

function roomRow(results: Results, store: StoreName): readonly string[] {
  const of = storeConstants(results, store);
  return [
    STORE_NAMES[store],
    ...[of.doneBytes, of.taskBytes, of.nonceBytes, of.waitingBytes].map((one) => bytes(Math.max(0, one))),
  ];
}

export function storesBlock(results: Results): string {
  const stores = Object.keys(STORE_NAMES) as StoreName[];
  const accepts = WIDTHS.map((width) => `accepts/s, ${width} at once`);
  return [
    table(
      ['Store, one seller', ...accepts, EVENT_FIGURES.rate, 'receiver’s processor, µs an event'],
      stores.map((store) => storeRow(results, store)),
    ),
    table(
      ['Room', ...Object.values(ROOM_FIGURES).map((name) => name.replace(/^bytes of /, ''))],
      stores.map((store) => roomRow(results, store)),
    ),
    measuredOn(results, ['stores', EVENTS]),
  ].join('\n\n');
}
