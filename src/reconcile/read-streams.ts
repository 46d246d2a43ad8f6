// Reads streams together with the states of the events that claim their windows, in few atomic calls of the store
// (owed.md §5.2). The account calls it.
import { type BuyStream, buyStreamIn, isRegistered } from '../registrations/streams.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import type { EventState } from './evaluate.ts';

/** The row of a stream on a page. If the stream was requested by name, its value is not read yet. */
export type NamedStream = Pick<RegistrationRow, 'sender' | 'id'> & { readonly value?: string };

/** A stream, and the progress of the events that claim its windows. */
export interface ReadStream {
  readonly agentUrl: string;
  readonly stream: BuyStream;
  readonly stateOf: (key: string) => EventState;
}

/**
 * The most streams of one seller that are read in one atomic call. The call starts again if one of them is written
 * meanwhile.
 */
const MOST_IN_STEP = 100;

/**
 * Reads the registered streams, in the given order. A stream without claims is used as the page has it. Any other is
 * read again, together with its events, in one atomic call.
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

/** Names all events at once, so that the store loads them together. */
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

/** Groups streams by seller, at most `MOST_IN_STEP` in a group. The streams are already ordered by seller. */
function groupsOf(of: readonly { readonly sender: string; readonly at: number }[]): readonly Step[] {
  const steps: Step[] = [];
  for (const { sender, at } of of) {
    const last = steps.at(-1);
    if (last?.sender === sender && last.places.length < MOST_IN_STEP) last.places.push(at);
    else steps.push({ sender, places: [at] });
  }
  return steps;
}
