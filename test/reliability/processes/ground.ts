import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { statsOf } from '../../../src/for-tests.ts';
import type { InboxRecord } from '../../../src/stores/index.ts';
import { sellerKey } from '../../receiver/setup.ts';
import { BACKENDS, type Backend } from './backends.ts';
import type { Break } from './breaks.ts';
import { startFleet, type Fleet } from './fleet.ts';
import type { Facts, FinalState } from './judge.ts';
import { ledgerReader, type LedgerReader } from './ledger.ts';
import { randomOf, type Random } from './random.ts';
import { AGENT_URL, PUBLIC_URL, sellerOf, type Seller } from './seller.ts';
import { openForJudge, type Kind, type OpenStore } from './stores.ts';
import type { Mode, ProcessOptions, Role } from './wire.ts';

/**
 * Where processes are killed under load. A lease is over soon after its owner's death. On a slow machine that of a living one
 * can be, too: what is judged are completions, which no lease that ran out can have.
 */
export const TIMES = { leaseMs: 1_000, waitMs: 2_000, timeoutMs: 3_000 } as const;

export interface GroundOptions {
  readonly kind: Kind;
  readonly mode: Mode;
  /** A process each. */
  readonly roles: readonly Role[];
  /** Of whom is picked, and of what the seller does next. */
  readonly seed: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  /** Until a delivery counts as unanswered, ms. */
  readonly timeoutMs: number;
  /** Everything fails loudly when it is over. Ms. */
  readonly deadlineMs: number;
  readonly retry?: ProcessOptions['retry'];
  readonly breaks?: Break;
  readonly observes?: true;
  readonly buys?: ProcessOptions['buys'];
  readonly queue?: ProcessOptions['queue'];
  /** `inject('shared')`. */
  readonly shared: string;
}

/** A store, processes on it, a seller, and who notes what happens. */
export interface Ground {
  readonly backend: Backend;
  readonly random: Random;
  readonly fleet: Fleet;
  readonly seller: Seller;
  readonly ledger: LedgerReader;
  /** Of the ledger: handlers look for files here. */
  readonly folder: string;
  readonly stateOf: (key: string) => Promise<FinalState>;
  /**
   * Waits until nothing is queued or leased any more, as a checker has to before it calls an event lost. @throws Error that
   * names an event which is, five minutes later: stores look again after ten at what nobody was told of, so it was forgotten.
   * @param abandoned keys of those that stay so: inline, and their seller has given them up.
   */
  readonly drained: (abandoned?: ReadonlySet<string>) => Promise<void>;
  /** Waits until nothing is under way any more, stops all processes, and returns what was noted. */
  readonly finish: (abandoned?: ReadonlySet<string>) => Promise<Noted>;
  /** Aborts at the deadline. */
  readonly signal: AbortSignal;
}

/** By the database and by handlers; what is owed is the suite's to say. */
export type Noted = Pick<Facts, 'completions' | 'ledger' | 'effects'>;

const LOOK_MS = 15;
const DRAIN_MS = 300_000;
const NONE: ReadonlySet<string> = new Set();

/**
 * One that is queued or leased. What is leased can be queued between two looks, and leased again before the next: that
 * of a process that died becomes a suspect, whose turn may come at once.
 */
async function unfinished(
  { inbox }: OpenStore['store'],
  abandoned: ReadonlySet<string>,
): Promise<InboxRecord | undefined> {
  for (const state of ['queued', 'leased', 'queued', 'leased'] as const) {
    const { records } = await inbox.list({ state, limit: abandoned.size + 1 });
    const record = records.find(({ key }) => !abandoned.has(key));
    if (record) return record;
  }
  return undefined;
}

/** What is queued, leased and dead: for the message of a run that does not end. */
async function left({ inbox }: OpenStore['store']): Promise<string> {
  const { senders: _senders, ...counts } = await statsOf(inbox, 1_000_000);
  return JSON.stringify(counts);
}

async function drain(
  { store }: OpenStore,
  fleet: Fleet,
  abandoned: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(DRAIN_MS)]);
  for (;;) {
    const record = await unfinished(store, abandoned);
    if (!record) return;
    const problem = fleet.problem();
    if (problem) throw problem;
    if (late.aborted) {
      throw new Error(`never done: ${JSON.stringify(record)} of ${await left(store)}`);
    }
    await sleep(LOOK_MS);
  }
}

async function groundIn(
  folder: string,
  options: GroundOptions,
  backend: Backend,
  open: OpenStore,
): Promise<Ground> {
  const { mode, roles, seed, leaseMs, waitMs, timeoutMs, deadlineMs, retry, breaks, observes, buys, queue } =
    options;
  const { publicJwk, privateJwk } = await sellerKey();
  const random = randomOf(seed);
  const signal = AbortSignal.timeout(deadlineMs);
  const file = join(folder, 'ledger');
  const urls = { agentUrl: AGENT_URL, publicUrl: PUBLIC_URL, publicJwk };
  const told = {
    place: backend.place,
    mode,
    ledger: file,
    leaseMs,
    waitMs,
    ...urls,
    ...(retry && { retry }),
    ...(breaks && { breaks }),
    ...(observes && { observes }),
    ...(buys && { buys }),
    ...(queue && { queue }),
  };
  // Goes with the run.
  const fleet = startFleet(told, roles, random, join(options.shared, 'compiled'));
  const ledger = ledgerReader(file);
  const drained = (abandoned = NONE): Promise<void> => drain(open, fleet, abandoned, signal);
  return {
    backend,
    random,
    fleet,
    seller: sellerOf({ fleet, privateJwk, random, timeoutMs, signal }),
    ledger,
    folder,
    stateOf: async (key) => (await open.store.inbox.inspect(AGENT_URL, key))?.state ?? 'absent',
    drained,
    finish: async (abandoned) => {
      await drained(abandoned);
      await fleet.whole(signal);
      await fleet.stop();
      const [completions, effects] = [await backend.completions(), await backend.effects()];
      return { completions, ledger: ledger.read(), effects };
    },
    signal,
  };
}

/** Sets all up, plays, and leaves nothing behind, however it ends. */
export async function onGround<T>(options: GroundOptions, play: (ground: Ground) => Promise<T>): Promise<T> {
  const backend = await BACKENDS[options.kind](options.shared);
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-ground-'));
  const open = openForJudge(backend.place);
  await open.store.open();
  const ground = await groundIn(folder, options, backend, open);
  try {
    return await play(ground);
  } finally {
    ground.fleet.destroy();
    ground.seller.close();
    ground.ledger.close();
    await open.store.close();
    await open.end();
    await backend.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}
