// Reads the streams (records) of media buys, and the progress of the events that bring their reports, in few
// transactions of the store (owed.md §5.2). `reconciler.account` uses it.
import { type BuyStream, buyStreamIn, isRegistered } from '../registrations/streams.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import type { EventState } from './evaluate.ts';

/**
 * The row of a media buy's stream (its record). If the query names the media buy, only the row's id is known, and its
 * value is not read yet.
 */
export type NamedStream = Pick<RegistrationRow, 'sender' | 'id'> & { readonly value?: string };

/** The stream (record) of a media buy. `stateOf` returns the progress of an event that brings one of its reports. */
export interface ReadStream {
  readonly agentUrl: string;
  readonly stream: BuyStream;
  readonly stateOf: (key: string) => EventState;
}

/**
 * The most records of media buys of one seller that are read in one transaction. The number is limited, because the
 * transaction starts again if one of the rows is written meanwhile.
 */
const MOST_IN_STEP = 100;

/**
 * Reads the streams (records) of registered media buys, in the order of `names`. A claim links a report period to an
 * event that brings its report and is not done. A stream with claims is read again together with these events, in one
 * transaction. A stream without claims is taken from its `value` in `names`.
 */
export async function readStreams(
  store: StoreRegistrations,
  names: readonly NamedStream[],
): Promise<readonly ReadStream[]> {
  const read = names.map(readAlone);
  const steps = groupsOf(names.flatMap(({ sender }, at) => (read[at] ? [] : [{ sender, at }])));
  await Promise.all(
    steps.map(async ({ sender, places }) => {
      const found = await store.run(sender, (rows) => places.map((at) => readIn(rows, names[at])));
      for (const [nth, at] of places.entries()) read[at] = found[nth];
    }),
  );
  return read.flatMap((one) => (one && isRegistered(one.stream) ? one : []));
}

function readAlone({ sender: agentUrl, value }: NamedStream): ReadStream | undefined {
  const stream = value === undefined ? undefined : buyStreamIn({ value });
  return stream?.claims.length === 0 ? { agentUrl, stream, stateOf: () => undefined } : undefined;
}

/**
 * Reads a media buy's stream (its record) and the progress of its events. All events are requested together, so that
 * the store can load them together.
 */
function readIn(rows: RegistrationRows, name: NamedStream | undefined): ReadStream | undefined {
  const row = name && rows.get('stream', name.id);
  if (!row) return undefined;
  const stream = buyStreamIn(row);
  const states = new Map(stream.claims.map(({ key }) => [key, rows.eventState(key)]));
  return { agentUrl: row.sender, stream, stateOf: (key) => states.get(key) };
}

interface Step {
  readonly sender: string;
  readonly places: number[];
}

/** Groups rows of media buys by seller, at most `MOST_IN_STEP` in a group. The list must be ordered by seller. */
function groupsOf(of: readonly { readonly sender: string; readonly at: number }[]): readonly Step[] {
  const steps: Step[] = [];
  for (const { sender, at } of of) {
    const last = steps.at(-1);
    if (last?.sender === sender && last.places.length < MOST_IN_STEP) last.places.push(at);
    else steps.push({ sender, places: [at] });
  }
  return steps;
}
