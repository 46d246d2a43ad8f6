// Reads the current states of objects that a subscription reports, e.g. creatives, with the functions that
// `reconciler.snapshot` registered (owed.md §6.8). The loop in snapshots.ts calls it.
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { printableValue } from '../codec/printable-value.ts';
import { onlyKnown } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { parseInstant } from '../events/instant.ts';
import { allRows } from '../registrations/operation-rows.ts';
import { setAt, setIn, setNameIn, type Subscription } from '../registrations/subscriptions/set-row.ts';
import { ConfigError, messageOf } from '../shared/errors.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import { hasState, stateIn } from '../events/state-reading.ts';
import { snapshotRowId } from '../stages/notified-states.ts';
import type { SnapshotAnswer, SnapshotEntry } from '../states/judge.ts';
import { countedInstant, MAX_STATE_ID, MOST_STATES, type StateHolder, stateWord } from '../states/states.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import { heldRow, type ReconcilerContext } from './context.ts';
import { snapped, type Snapped, tellStates } from './tell-states.ts';

/** The subscription for which your `SnapshotReader` must return the states. */
export interface SnapshotQuery {
  /** The agent URL of the seller. */
  readonly agentUrl: string;
  /** The seller's id of the subscription's account. Absent if the subscription is for the whole agent. */
  readonly accountId?: string;
  readonly subscriberId: string;
  /** The `ref` of the subscription. */
  readonly ref: string;
  /** Aborts after `callMs`, and when the reconciler stops. */
  readonly signal: AbortSignal;
}

/** The current state of one object, e.g. of a creative, as a `SnapshotReader` returns it. */
export interface SnapshotState {
  /** The id that events use for the object, e.g. the `creative_id`. */
  readonly id: string;
  /** The time of the object's last change, as the seller states it, RFC 3339 with a zone. */
  readonly observedAt?: string | undefined;
  /** The payload that an event about this state would have, as JSON. A handler gets it unchanged. */
  readonly payload: Readonly<Record<string, unknown>>;
}

/**
 * Your function that `reconciler.snapshot` registers. It returns all states that are current at the seller, at most
 * 1 000. A state that was reported before, and is absent now, has ended.
 */
export type SnapshotReader = (
  query: SnapshotQuery,
) => readonly SnapshotState[] | Promise<readonly SnapshotState[]>;

/** The functions that `reconciler.snapshot` registered in this process, by event type. */
export type Readers = ReadonlyMap<string, SnapshotReader>;

/** The row that stores the states of one event type for one subscription. */
interface ReaderRow extends StateHolder {
  readonly type: string;
  readonly subscriberId: string;
  /** The time at which the row was added, on the store's clock, Unix ms. */
  readonly since: number;
}

/** Checks the arguments of `reconciler.snapshot`. @throws ConfigError */
export function requireReader(readers: Readers, type: unknown, read: unknown): void {
  const fail = (what: string): never => {
    throw new ConfigError(`snapshot: ${what}`);
  };
  if (type === 'impairment') fail('impairments are read by the reconciler itself. Leave it out.');
  if (typeof type !== 'string' || !hasState(type)) {
    fail(
      `${JSON.stringify(printableValue(type))} is no type of events that tell of one thing each. Give e.g. 'creative.status_changed'.`,
    );
  }
  if (typeof read !== 'function')
    fail('read is not a function. Give async ({ agentUrl, accountId, signal }) => [{ id, payload }].');
  if (readers.has(type as string))
    fail(`${type as string} has a reader already. Give one function for each type.`);
}

/**
 * Makes a loop that adds the missing rows for subscriptions whose event type has a registered function. It runs until
 * the signal aborts.
 */
export function readerRowsLoop(
  context: ReconcilerContext,
  hashes: Hashes,
  readers: Readers,
): (stopping: AbortSignal) => Promise<void> {
  const { parts, sleep, lookMs, snapshotMs } = context;
  let found = new Set<string>();
  return async (stopping) => {
    let nextAt = 0;
    while (!stopping.aborted) {
      // Subscriptions are searched immediately if a function was registered since the last search. Otherwise they are
      // searched every `snapshotMs`.
      const isNew = [...readers.keys()].some((type) => !found.has(type));
      if (isNew || parts.now() >= nextAt) {
        try {
          found = new Set(readers.keys());
          nextAt = parts.now() + snapshotMs;
          if (found.size > 0) await addReaderRows(context, hashes, readers);
        } catch (error) {
          nextAt = 0;
          parts.logger.warn({ err: error }, `The store cannot list subscriptions. ${messageOf(error)}`);
        }
      }
      await sleep(lookMs, stopping);
    }
  };
}

/** Adds the missing rows: one for each subscription and event type with a registered function. */
async function addReaderRows(
  { rows: store }: ReconcilerContext,
  hashes: Hashes,
  readers: Readers,
): Promise<void> {
  for await (const row of allRows(store, { kind: 'subscription' })) {
    const wanted = setIn(row)
      .subscriptions.filter(isKept)
      .flatMap(({ subscriberId, eventTypes }) =>
        eventTypes.filter((type) => readers.has(type)).map((type) => ({ type, subscriberId })),
      );
    if (wanted.length === 0) continue;
    await store.run(row.sender, (rows, now) => {
      for (const of of wanted) addReaderRow(rows, row.sender, of, { hashes, now });
    });
  }
}

const isKept = ({ state }: Subscription): boolean => state !== 'removing' && state !== 'refused';

function addReaderRow(
  rows: RegistrationRows,
  sender: string,
  of: Pick<ReaderRow, 'type' | 'subscriberId'>,
  { hashes, now }: { readonly hashes: Hashes; readonly now: number },
): void {
  const id = snapshotRowId(of, of.type, hashes);
  if (rows.get('snapshot', id)) return;
  const value = JSON.stringify({ ...of, since: now });
  const row = { kind: 'snapshot', sender, id, value, list: null, expiresAt: null } as const;
  rows.save({ ...row, dueAt: Math.ceil(now) });
}

const readerRowIn = ({ value }: RegistrationRow): ReaderRow => JSON.parse(value) as ReaderRow;

/**
 * True if the row stores the states of a subscription. Other rows of kind `snapshot` are for the impairments of media
 * buys.
 */
export const isReaderRow = (row: RegistrationRow): boolean => 'type' in readerRowIn(row);

/**
 * If this process has no function for the event type of a due row, it leaves the row to other processes for this
 * time. Ms.
 */
const LEFT_MS = 60_000;

/**
 * Calls the registered function for the states of a subscription, stores the states, and passes changes to the
 * handlers.
 */
export async function lookAtStates(
  context: ReconcilerContext,
  readers: Readers,
  held: RegistrationRow,
  stopping: AbortSignal,
): Promise<void> {
  const { type } = readerRowIn(held);
  const read = readers.get(type);
  const begun = await context.rows.run(held.sender, (rows, now) =>
    begin(rows, held, read !== undefined, now),
  );
  if (!begun || !read || stopping.aborted) return;
  const { query, askedAt } = begun;
  const answer = await answerOf(context, read, { type, query, askedAt }, stopping);
  const taken = await context.rows.run(held.sender, (rows, now) => {
    const row = heldRow(rows, 'snapshot', held);
    if (!row) return undefined;
    const known = readerRowIn(row);
    const one: Snapped<ReaderRow> | undefined =
      answer &&
      snapped({ rows, askedAt, now }, known, answer, { most: MOST_STATES.snapshot, since: known.since });
    const value = one ? JSON.stringify(one.holder) : row.value;
    const dueAt = stopping.aborted ? now : Math.max(now, askedAt + context.snapshotMs);
    rows.save({ ...row, value, dueAt: Math.ceil(dueAt) });
    return one;
  });
  if (!taken) return;
  const { ref: _ref, agentUrl: sender, ...subscription } = query;
  const of = { sender, family: type, subscription, holder: { kind: 'snapshot', id: held.id } } as const;
  await tellStates(context, of, taken, stopping);
}

interface BegunRead {
  readonly query: Omit<SnapshotQuery, 'signal'>;
  readonly askedAt: number;
}

/**
 * Returns the query for the registered function. If the subscription no longer exists, deletes the row.
 * @returns undefined if nothing is read now.
 */
function begin(
  rows: RegistrationRows,
  held: RegistrationRow,
  isRead: boolean,
  now: number,
): BegunRead | undefined {
  const row = heldRow(rows, 'snapshot', held);
  if (!row) return undefined;
  const { type, subscriberId } = readerRowIn(row);
  const set = setAt(rows, setNameIn(subscriberId) ?? ' ');
  const subscription = set?.subscriptions.find((one) => one.subscriberId === subscriberId);
  if (!subscription || !isKept(subscription) || !subscription.eventTypes.includes(type)) {
    rows.save({ ...row, dueAt: null, expiresAt: 1 });
    return undefined;
  }
  if (!isRead) {
    rows.save({ ...row, dueAt: Math.ceil(now + LEFT_MS) });
    return undefined;
  }
  const { ref } = subscription;
  const accountId = set?.accountId;
  return {
    query: { agentUrl: row.sender, ...(accountId !== undefined && { accountId }), subscriberId, ref },
    askedAt: now,
  };
}

/**
 * Calls the registered function, and returns its states.
 * @returns undefined if the function failed or returned something invalid. Then nothing changes, and an alarm is
 * raised.
 */
async function answerOf(
  { parts, callMs }: ReconcilerContext,
  read: SnapshotReader,
  { type, query, askedAt }: BegunRead & { readonly type: string },
  stopping: AbortSignal,
): Promise<SnapshotAnswer | undefined> {
  const reason = `it did not return within callMs (${callMs} ms)`;
  try {
    const given: unknown = await limited({ ms: callMs, reason }, stopping, (signal) =>
      orAborted((async () => read({ ...query, signal }))(), signal),
    );
    return { entries: entriesIn(type, given, askedAt), isTerminal: false, askedAt };
  } catch (error) {
    if (stopping.aborted) return undefined;
    const message = `The reader of snapshot('${type}') failed: ${messageOf(error)} Nothing is told of ${type} until it succeeds.`;
    parts.raiseAlarm({ code: 'misconfigured', sender: query.agentUrl, message });
    return undefined;
  }
}

const STATE: Readonly<Record<keyof SnapshotState, true>> = { id: true, observedAt: true, payload: true };

/** Checks the states that a registered function returned. @throws ConfigError */
function entriesIn(type: string, given: unknown, now: number): readonly SnapshotEntry[] {
  if (!Array.isArray(given))
    throw new ConfigError('it returned no list. Return [{ id, observedAt, payload }].');
  if (given.length > MOST_STATES.snapshot) {
    throw new ConfigError(`it returned ${given.length} states. At most ${MOST_STATES.snapshot} are kept.`);
  }
  const entries = given.map((one: unknown) => entryIn(type, one, now));
  const ids = new Set(entries.map(({ id }) => id));
  if (ids.size < entries.length) throw new ConfigError('it returned an id twice. Return each thing once.');
  return entries;
}

function entryIn(type: string, one: unknown, now: number): SnapshotEntry {
  onlyKnown('a state', one, STATE);
  const { id, observedAt, payload } = one as Partial<Record<keyof SnapshotState, unknown>>;
  if (typeof id !== 'string' || id === '' || id.length > MAX_STATE_ID) {
    throw new ConfigError(`it returned an id that is no text of 1 to ${MAX_STATE_ID} characters.`);
  }
  if (!isJsonObject(payload))
    throw new ConfigError(`payload of ${id} is not an object. Return the seller's.`);
  const said = typeof observedAt === 'string' ? parseInstant(observedAt)?.ms : undefined;
  if (observedAt !== undefined && said === undefined) {
    throw new ConfigError(`observedAt of ${id} is not an RFC 3339 date-time with a zone.`);
  }
  return entryOf(type, { id, payload, at: countedInstant(said, now) });
}

function entryOf(
  type: string,
  { id, payload, at }: { readonly id: string; readonly payload: JsonObject; readonly at: number | undefined },
): SnapshotEntry {
  const to = stateIn(type, payload);
  return { id, payload, ...(at !== undefined && { at }), ...(to !== undefined && { to: stateWord(to) }) };
}
