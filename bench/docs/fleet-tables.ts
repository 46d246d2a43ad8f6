import {
  ceilingOf,
  DEFAULT_CAPS,
  defaultsAllow,
  fleetFor,
  type Cap,
  type Constants,
  type Fleet,
  type Load,
} from '../lib/fleet.ts';
import type { Results } from '../lib/results.ts';
import { LOADS, ORDINARY } from './assumptions.ts';
import { constantsOf, EVENTS, STORE_NAMES, storeConstants, type StoreName } from './constants.ts';
import { measuredOn } from './measured.ts';
import { bits, bytes, number, table, whole } from './numbers.ts';

const STORES = Object.keys(STORE_NAMES) as StoreName[];

const columns = Object.entries(LOADS);

const percent = (share: number): string => `${number(share * 100)} %`;

/** What comes in is the same whatever the store. */
function loadRows(): readonly (readonly string[])[] {
  const row = (name: string, cell: (load: Load, fleet: Fleet) => string): readonly string[] => [
    name,
    ...columns.map(([, load]) => cell(load, fleetFor(load, WITHOUT))),
  ];
  return [
    row('events/s, average', (_, { averagePerSecond }) => whole(averagePerSecond)),
    row('events/s, busiest second', (_, { peakPerSecond }) => whole(peakPerSecond)),
    row('of these from the busiest seller', ({ busiestShare }, { busiestPeakPerSecond }) => {
      return `${whole(busiestPeakPerSecond)} (${percent(busiestShare)})`;
    }),
    row('round trips to the stores/s', (_, { roundTripsPerSecond }) => whole(roundTripsPerSecond)),
    row('network into the receivers', (_, { inboundBitsPerSecond }) => bits(inboundBitsPerSecond)),
  ];
}

/** For what does not depend on a store. */
const WITHOUT: Constants = {
  deliveryMicros: 0,
  primaryBytes: 1,
  store: { eventsPerSecond: 1, micros: 0, doneBytes: 0, taskBytes: 0, nonceBytes: 0, waitingBytes: 0 },
};

type Row = readonly [string, (fleet: Fleet) => string];

const storeRows = (primaryBytes: number): readonly Row[] => [
  ['processors for receivers', ({ cores }) => whole(cores)],
  ['busiest seller fits one primary', ({ busiestFits }) => (busiestFits ? 'yes' : '**no**')],
  ['events done', ({ bytes: { done } }) => bytes(done)],
  ['tasks, 30 days', ({ bytes: { tasks } }) => bytes(tasks)],
  ['nonces', ({ bytes: { nonces } }) => bytes(nonces)],
  ['events that wait, 1 h', ({ bytes: { waiting } }) => bytes(waiting)],
  ['room together', ({ bytesTogether }) => `**${bytes(bytesTogether)}**`],
  ['primaries by rate', ({ primariesByRate }) => whole(primariesByRate)],
  [`primaries by room, ${bytes(primaryBytes)} each`, ({ primariesByRoom }) => whole(primariesByRoom)],
  ['**primaries**', ({ primaries }) => `**${whole(primaries)}**`],
];

function storeTable(results: Results, store: StoreName): string {
  const constants = constantsOf(results, store);
  const fleets = columns.map(([, load]) => fleetFor(load, constants));
  const rows = storeRows(constants.primaryBytes).map(([name, cell]) => [name, ...fleets.map(cell)]);
  return table([STORE_NAMES[store], ...columns.map(([name]) => name)], rows);
}

export function loadBlock(): string {
  return table(['', ...columns.map(([name]) => name)], loadRows());
}

export function fleetBlock(results: Results): string {
  return [...STORES.map((store) => storeTable(results, store)), measuredOn(results, ['http', EVENTS])].join(
    '\n\n',
  );
}

/** Who is counted, by cap. */
const COUNTED: Readonly<Record<Cap, string>> = {
  maxNoncesPerKey: '`maxNoncesPerKey`, also of one sender: nonces of the busiest seller’s key',
  maxNoncesPerSender: '`maxNoncesPerSender`: nonces of the busiest seller, over all its keys',
  maxNonces: '`maxNonces`: nonces of all (of one store, where there are several)',
  maxRecordsPerSender: '`maxRecordsPerSender`: records of the busiest seller',
  maxPendingBytesPerSender: '`maxPendingBytesPerSender`: its bodies that wait, 1 h in mode `inbox`',
};

export function capsBlock(): string {
  const rows = (Object.keys(COUNTED) as Cap[]).map((cap) => {
    const show = cap === 'maxPendingBytesPerSender' ? bytes : number;
    const needed = columns.map(([, load]) => fleetFor(load, WITHOUT).caps[cap]);
    const cells = needed.map((one) => (one > DEFAULT_CAPS[cap] ? `**${show(one)}**` : show(one)));
    return [COUNTED[cap], show(DEFAULT_CAPS[cap]), ...cells];
  });
  const { keyPerSecond, senderPerDay } = defaultsAllow(ORDINARY);
  return [
    table(['Cap', 'default', ...columns.map(([name]) => name)], rows),
    `Bold: over the default. With the defaults one key can sign ${whole(keyPerSecond)} events/s for long (${number(DEFAULT_CAPS.maxNoncesPerKey)} nonces of 360 s), and one sender can send ${whole(senderPerDay)} events a day without end (${number(DEFAULT_CAPS.maxRecordsPerSender)} records: events for a day, and a task for every fourth of them for 30).`,
  ].join('\n\n');
}

export function ceilingBlock(results: Results): string {
  const rows = STORES.map((store) => {
    const constants = storeConstants(results, store);
    const { eventsPerSecond, eventsPerDay } = ceilingOf(ORDINARY, constants);
    return [
      STORE_NAMES[store],
      number(constants.eventsPerSecond),
      number(eventsPerSecond),
      number(eventsPerDay),
    ];
  });
  const { peakFactor, utilisation } = ORDINARY;
  return [
    table(
      [
        'One seller, one primary',
        'events/s, measured',
        `at ${percent(utilisation)}`,
        `events a day, busiest second ${peakFactor} × the average`,
      ],
      rows,
    ),
    measuredOn(results, [EVENTS]),
  ].join('\n\n');
}
