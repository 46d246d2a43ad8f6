// `receiver.health()`: the state of the store, the worker and the senders, for load balancers and dashboards.
// Each delivery records its result here. The store is checked at most once a second.

import { putBounded } from '../shared/bounded.ts';
import type { Config } from '../config/resolve-options.ts';
import { Fault, isOfKind, messageOf } from '../shared/errors.ts';
import type { KeyResolver } from '../keys/key-resolver.ts';
import type { Lifecycle } from './lifecycle.ts';
import type {
  Health,
  HealthFault,
  SenderHealth,
  StoreHealth,
  WorkerHealth,
} from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { singleFlight } from '../shared/single-flight.ts';
import type { Running } from '../stages/running.ts';
import type { Startup } from './startup.ts';
import type { Store } from '../stores/store.ts';
import { settledWithin } from '../shared/time-limits.ts';
import { createUnreconciled } from './unreconciled.ts';

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

interface SenderNote extends Writable<Omit<SenderHealth, 'keysFreshUntil'>> {
  readonly entry: SenderEntry | undefined;
}

/** Facts that deliveries and the worker record for `receiver.health()`. */
export interface HealthNotes {
  /** The facts by agent URL, only about senders that the owner configured. */
  readonly senders: Map<string, SenderNote>;
  readonly worker: Writable<Omit<WorkerHealth, 'handlers'>>;
  /** The fault of the last delivery that failed because of the store. It is removed when a later delivery succeeds. */
  storeFault?: HealthFault | undefined;
}

/**
 * The most senders about which facts are stored: twice the 500 sellers of a large buyer. The number is limited, because
 * each `health()` lists all of them.
 */
const MAX_SENDERS = 1_000;

/**
 * Returns the record of facts about a sender, and creates the record if there is none.
 * @param among the senders of the delivery's URL, from which a new record takes the sender's entry.
 */
export function noteOf(
  { senders }: HealthNotes,
  agentUrl: string,
  among: readonly SenderEntry[] | undefined,
): SenderNote {
  const known = senders.get(agentUrl);
  if (known) return known;
  const entry = among?.find((sender) => sender.agentUrl === agentUrl);
  return putBounded(senders, agentUrl, { agentUrl, entry }, MAX_SENDERS);
}

const STORE_CODES: readonly unknown[] = ['store_unavailable', 'not_durable', 'misconfigured'];

/**
 * Records the outcome of a delivery, except for refusals. `noteRefusal` records a refusal, because it also finds the
 * sender by the key id in the delivery.
 */
export function noteOutcome(
  notes: HealthNotes,
  outcome: Outcome,
  senders: readonly SenderEntry[] | undefined,
  now: () => number,
): void {
  const { kind, sender } = outcome;
  if (sender === undefined || kind === 'refused') return;
  const note = noteOf(notes, sender, senders);
  const at = now();
  if (kind === 'unavailable') {
    const { code, detail } = outcome;
    note.lastRefusedAt = at;
    note.lastCode = code;
    if (STORE_CODES.includes(code)) notes.storeFault = { code, message: detail, at };
  } else {
    note.lastAcceptedAt = at;
    notes.storeFault = undefined;
  }
}

/**
 * Minimum time between two checks of the store, ms. Load balancers call `health()` very often, and one check serves all
 * callers.
 */
const ASK_EVERY_MS = 1_000;
/**
 * Longest wait for the store's answer, ms. It is shorter than the default time-outs of load balancers, e.g. 1 s for a
 * probe of Kubernetes.
 */
const PATIENCE_MS = 800;

/** The parts of a receiver from which `receiver.health()` gets its facts. */
interface HealthParts {
  readonly config: Pick<Config, 'senders'>;
  readonly store: Pick<Store, 'peek' | 'registrations'>;
  /** The receiver's registrations. If undefined, no reports are reconciled, and `health()` leaves out that check. */
  readonly registrations?: unknown;
  readonly keys: Pick<KeyResolver, 'freshUntil' | 'pressure'>;
  readonly running: Pick<Running, 'all'>;
  readonly startup: Pick<Startup<unknown>, 'check' | 'hasPassed'>;
  readonly lifecycle: Pick<Lifecycle, 'stopping'>;
  readonly notes: HealthNotes;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Returns a signal that aborts when the receiver has stopped. */
  readonly closed: () => AbortSignal;
}

/** Makes `receiver.health`, which never rejects. */
export function createHealth(context: HealthParts): () => Promise<Health> {
  const { notes, startup, lifecycle, closed, running, keys } = context;
  const askStore = createStoreProbe(context);
  const rows = context.registrations === undefined ? undefined : context.store.registrations;
  const reports = rows && createUnreconciled(rows, context.now, PATIENCE_MS);

  const worker = (): WorkerHealth => ({ ...notes.worker, handlers: running.all().length });

  return async () => {
    const [store, senders, unreconciled = []] = await Promise.all([
      askStore(),
      sendersOf(context),
      reports?.(),
    ]);
    const isStopping = lifecycle.stopping();
    const ready = store.ok && startup.hasPassed() && !isStopping;
    const admissionPressure = keys.pressure?.();
    return {
      live: !closed().aborted,
      ready,
      store,
      worker: worker(),
      senders,
      ...(admissionPressure && { admissionPressure }),
      ...(unreconciled.length > 0 && { unreconciled }),
    };
  };
}

/** Returns a function that checks the store once for all concurrent callers, at most once a second. */
function createStoreProbe(context: HealthParts): () => Promise<StoreHealth> {
  const { notes, now, closed } = context;
  const asking = new Map<'store', Promise<StoreHealth>>();
  let last: StoreHealth | undefined;
  /**
   * The signal of the receiver's run (start to stop) in which `last` was found. A result of an earlier run is not
   * reused.
   */
  let run: AbortSignal | undefined;

  async function ask(): Promise<StoreHealth> {
    const isTroubled = last?.ok === false;
    const fault = await settledWithin(faultOf(context, isTroubled), PATIENCE_MS);
    const checkedAt = now();
    run = closed();
    if (fault === 'none') last = { ok: true, checkedAt };
    else last = { ok: false, checkedAt, fault: fault ?? late(checkedAt) };
    return last;
  }

  return async () => {
    const isRecent =
      last !== undefined && run === closed() && Math.abs(now() - last.checkedAt) < ASK_EVERY_MS;
    const found = isRecent && last ? last : await singleFlight(asking, 'store', ask);
    return { ...found, ...(notes.storeFault && { deliveryFault: notes.storeFault }) };
  };
}

const late = (at: number): HealthFault => ({
  code: 'store_unavailable',
  message: `the store did not answer within ${PATIENCE_MS} ms`,
  at,
});

/**
 * Returns the store's fault, or `none`. If the receiver has not started or the last check failed, the whole startup
 * check runs. Otherwise nothing might start that check: a load balancer sends no deliveries before health is good.
 * Never rejects.
 */
async function faultOf(
  { startup, store, now }: HealthParts,
  isTroubled: boolean,
): Promise<HealthFault | 'none'> {
  try {
    if (isTroubled || !startup.hasPassed()) await startup.check();
    else await store.peek('health', 'health');
    return 'none';
  } catch (error) {
    const code = isOfKind(error, Fault) ? error.code : 'misconfigured';
    return { code, message: messageOf(error), at: now() };
  }
}

async function sendersOf({ config, notes, keys }: HealthParts): Promise<readonly SenderHealth[]> {
  const { fixed = [] } = config.senders;
  for (const { agentUrl } of fixed) noteOf(notes, agentUrl, fixed);
  return Promise.all(
    Array.from(notes.senders.values(), async ({ entry, ...seen }) => {
      const keysFreshUntil = entry && (await keys.freshUntil(entry));
      return { ...seen, ...(keysFreshUntil !== undefined && { keysFreshUntil }) };
    }),
  );
}
