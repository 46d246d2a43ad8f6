import type { AcceptDecision } from '../../../src/stores/index.ts';
import { discard } from '../../../src/stores/for-tests.ts';
import { hadIn, streamIn } from '../../../src/windows/for-tests.ts';
import type { Breach, Step } from './explore.ts';
import type { Play, Steps } from './play.ts';
import { keyOf, onStore } from './play.ts';
import type { Kept } from './rows.ts';
import type { Invariant, Thread, World } from './world.ts';
import { RETENTION_MS, SELLER, accountOf, breached, eventOf, spend, withAccount } from './world.ts';

/*
 * Reports of one window, sent and pulled (owed.md §3), judged by what came and what was handled.
 */

type Broken = Breach<Invariant> | undefined;

/** The account's window: handled, and by which events it is claimed. */
function accountIn({ streams }: Kept): { readonly isHad: boolean; readonly claims: readonly string[] } {
  const streamsIn = [...streams.values()].map(({ value }) => streamIn(value));
  return {
    isHad: streamsIn.some((stream) => hadIn(stream, 'daily').length > 0),
    claims: streamsIn.flatMap(({ claims }) => claims.map(({ key }) => key)),
  };
}

/** It may still be handled, or is DEAD. */
const STANDS: ReadonlySet<string | undefined> = new Set(['queued', 'leased', 'dead']);

const stands = (play: Play, { kept }: World, event: number): boolean =>
  STANDS.has(kept.records.get(keyOf(play, event))?.state);

const isHandled = (world: World, event: number): boolean => accountOf(world, event).completedBy.length > 0;

function reportsOf({ scenario }: Play): readonly number[] {
  return scenario.events.flatMap(({ report }, event) => (report ? [event] : []));
}

/** Whether the window came by another event. */
function cameBeside(play: Play, world: World, event: number): boolean {
  return reportsOf(play).some(
    (other) => other !== event && (isHandled(world, other) || stands(play, world, other)),
  );
}

/** What holds in every state of a world with reports. */
export function accountedWrongly(play: Play, world: World): Broken {
  if (world.kept.streams.size === 0) return undefined;
  const { isHad, claims } = accountIn(world.kept);
  const reports = reportsOf(play);
  const handled = reports.find((event) => isHandled(world, event));
  if (isHad !== (handled !== undefined)) {
    const how = handled === undefined ? 'none of its reports' : keyOf(play, handled);
    return {
      invariant: 'a window is had exactly where a report of it was completed',
      detail: `the window is ${isHad ? '' : 'not '}had, and ${how} was completed`,
    };
  }
  const bare = reports.find((event) => stands(play, world, event) && !claims.includes(keyOf(play, event)));
  if (bare === undefined) return undefined;
  return {
    invariant: 'a report that is not done is claimed',
    detail: `${keyOf(play, bare)} is not done, and the account does not know of it`,
  };
}

/** An accept has taken the report for one that comes first, or for one that comes again. */
export function judgedReport(
  play: Play,
  before: World,
  after: World,
  { thread: { event }, result }: { readonly thread: Thread; readonly result: AcceptDecision | undefined },
): World {
  const { report } = eventOf(play.scenario, event);
  if (!report) return after;
  const key = keyOf(play, event);
  const record = after.kept.records.get(key);
  const isNew = record !== undefined && !before.kept.records.has(key);
  const came = cameBeside(play, before, event);
  if (report === 'sent') {
    const isRepeated = record?.windows?.[0]?.isRepeated ?? false;
    if (!isNew || isRepeated === came) return after;
    return breached(
      after,
      'a webhook says that it repeats exactly where its window came before',
      `${key} says ${isRepeated ? '' : 'not '}so, and its window ${came ? 'came' : 'did not come'}`,
    );
  }
  const isDuplicate = record === undefined && result?.kind === 'done';
  if (!(isNew && came) && !(isDuplicate && !came)) return after;
  return breached(
    after,
    'a pulled report is a duplicate exactly where its window came before',
    `${key} is ${isNew ? 'new' : 'a duplicate'}, and its window ${came ? 'came' : 'did not come'}`,
  );
}

/** What becomes of reports that are not done: made safe, discarded, forgotten. */
export function reportSteps(play: Play, world: World): Steps {
  return reportsOf(play).flatMap((event) => [
    ...safeSteps(play, world, event),
    ...(world.budget.losses > 0 ? lossSteps(play, spend(world, 'losses'), event) : []),
  ]);
}

/** The window of an event that its seller may have given up is due: the reconciler makes it safe. */
function safeSteps(play: Play, world: World, event: number): Steps {
  const key = keyOf(play, event);
  const record = world.kept.records.get(key);
  if (record?.acked !== false) return [];
  const { after } = onStore(world, (rows, now) =>
    play.system.acknowledge(rows, { sender: SELLER, key }, now),
  );
  // Nothing is changed by one that does not.
  if (after.kept.records.get(key)?.acked !== true) return [];
  const state = withAccount(after, event, { acknowledged: true });
  return [{ label: `a reconciler makes ${key} safe`, state }];
}

function lossSteps(play: Play, world: World, event: number): Steps {
  const key = keyOf(play, event);
  const record = world.kept.records.get(key);
  if (record?.state === 'queued' || record?.state === 'dead') {
    const request = { sender: SELLER, key, retentionMs: RETENTION_MS, only: undefined };
    const { after } = onStore(world, (rows, now) => discard(rows, request, now));
    const discarded = { label: `${key} is discarded`, state: withAccount(after, event, { discarded: true }) };
    return record.acked ? [discarded] : [discarded, ...forgetSteps(play, world, event)];
  }
  return record?.acked === false ? forgetSteps(play, world, event) : [];
}

/** Its retention is over before it is acknowledged: nothing is known of it, nor of its nonces, and its bytes are too old. */
function forgetSteps(play: Play, world: World, event: number): Steps {
  const key = keyOf(play, event);
  if (world.threads.some((thread) => thread.event === event)) return [];
  const without = <R>(
    rows: ReadonlyMap<string, R>,
    isOf: (name: string, row: R) => boolean,
  ): Map<string, R> => new Map([...rows].filter(([name, row]) => !isOf(name, row)));
  const { records, bodies, nonces } = world.kept;
  const kept: Kept = {
    ...world.kept,
    records: without(records, (name) => name === key),
    bodies: without(bodies, (name) => name === key),
    nonces: without(nonces, (_nonce, row) => row.key === key),
  };
  const sent = world.sent.filter((one) => one.event !== event);
  return [{ label: `${key} is forgotten`, state: { ...world, kept, sent } }];
}

/** The window is handled, or its DEAD event is named. */
export function isAccounted(play: Play, world: World): boolean {
  const isHeld = reportsOf(play).some(
    (event) => world.kept.records.get(keyOf(play, event))?.state === 'dead',
  );
  return accountIn(world.kept).isHad || isHeld;
}

/**
 * What a reconciler does next, whose look is as the account: what is claimed is made safe, and what is missing pulled, under a key that
 * is new.
 */
export function reconcileStep(
  play: Play,
  world: World,
  observe: (event: number) => Step<World>,
): Step<World> | undefined {
  const reports = reportsOf(play);
  const [safe] = reports.flatMap((event) => safeSteps(play, world, event));
  if (safe) return safe;
  if (isAccounted(play, world) || reports.some((event) => stands(play, world, event))) return undefined;
  const isFree = (event: number): boolean =>
    eventOf(play.scenario, event).report === 'pulled' && !world.kept.records.has(keyOf(play, event));
  const free = reports.find(isFree);
  if (free === undefined) throw new RangeError('no pull is left');
  return observe(free);
}
