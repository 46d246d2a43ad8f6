import { type BuyStream, buyStreamIn, isRegistered } from '../registrations/streams.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import type { EventState } from './evaluate.ts';

/*
 * Streams with what became of the events that claim their windows, in few steps of the store (owed.md §5.2).
 */

/** A row of a stream as a page has it. One that is asked for by its name has no value yet. */
export type NamedStream = Pick<RegistrationRow, 'sender' | 'id'> & { readonly value?: string };

/** A stream, and how far the events are that claim windows of it. */
export interface ReadStream {
  readonly agentUrl: string;
  readonly stream: BuyStream;
  readonly stateOf: (key: string) => EventState;
}

/** Streams of one seller that one step reads: it holds while nobody writes any of them. */
const MOST_IN_STEP = 100;

/**
 * The registered ones of some streams, in their order. A stream without claims is as its page has it; any other is read again, in
 * one step with its events.
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

/** All events are named in one go, so that the step loads them at once. */
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

/** One seller's, so many at once; they come seller by seller. */
function groupsOf(of: readonly { readonly sender: string; readonly at: number }[]): readonly Step[] {
  const steps: Step[] = [];
  for (const { sender, at } of of) {
    const last = steps.at(-1);
    if (last?.sender === sender && last.places.length < MOST_IN_STEP) last.places.push(at);
    else steps.push({ sender, places: [at] });
  }
  return steps;
}
