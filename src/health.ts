import { Fault, isOfKind, messageOf } from './errors.ts';
import type { Health, HealthFault, SenderHealth, StoreHealth, WorkerHealth } from './options.ts';
import { noteOf } from './health-notes.ts';
import type { Parts } from './parts.ts';
import { singleFlight } from './single-flight.ts';
import { settledWithin } from './time-limits.ts';

/** A health check comes every few seconds, from a balancer many times as often: the store is asked once for all of these. Ms. */
const ASK_EVERY_MS = 1_000;
/** Under the time-out that balancers begin with (Kubernetes 1 s is the shortest; it counts from the request). Ms. */
const PATIENCE_MS = 800;

/** `receiver.health`. Never rejects. */
export function createHealth(parts: Parts): () => Promise<Health> {
  const { notes, startup, lifecycle, closed, running, keys } = parts;
  const askStore = createStoreProbe(parts);

  const worker = (): WorkerHealth => ({ ...notes.worker, handlers: running.all().length });

  return async () => {
    const [store, senders] = await Promise.all([askStore(), sendersOf(parts)]);
    const isStopping = lifecycle.stopping();
    const ready = store.ok && startup.hasPassed() && !isStopping;
    const admissionPressure = keys.pressure?.();
    return {
      live: !closed.aborted,
      ready,
      store,
      worker: worker(),
      senders,
      ...(admissionPressure && { admissionPressure }),
    };
  };
}

/** Asked for all who want to know at once, and not again for a second. */
function createStoreProbe(parts: Parts): () => Promise<StoreHealth> {
  const { notes, now } = parts;
  const asking = new Map<'store', Promise<StoreHealth>>();
  let last: StoreHealth | undefined;

  async function ask(): Promise<StoreHealth> {
    const isTroubled = last?.ok === false;
    const fault = await settledWithin(faultOf(parts, isTroubled), PATIENCE_MS);
    const checkedAt = now();
    if (fault === 'none') last = { ok: true, checkedAt };
    else last = { ok: false, checkedAt, fault: fault ?? late(checkedAt) };
    return last;
  }

  return async () => {
    const isRecent = last !== undefined && Math.abs(now() - last.checkedAt) < ASK_EVERY_MS;
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
 * Where it has not started, or was in trouble, the whole check: nothing else would make it, once a balancer that asks
 * here sends no deliveries. Never rejects.
 */
async function faultOf({ startup, store, now }: Parts, isTroubled: boolean): Promise<HealthFault | 'none'> {
  try {
    if (isTroubled || !startup.hasPassed()) await startup.check();
    else await store.peek('health', 'health');
    return 'none';
  } catch (error) {
    const code = isOfKind(error, Fault) ? error.code : 'misconfigured';
    return { code, message: messageOf(error), at: now() };
  }
}

async function sendersOf({ config, notes, keys }: Parts): Promise<readonly SenderHealth[]> {
  const { fixed = [] } = config.senders;
  for (const { agentUrl } of fixed) noteOf(notes, agentUrl, fixed);
  return Promise.all(
    Array.from(notes.senders.values(), async ({ entry, ...seen }) => {
      const keysFreshUntil = entry && (await keys.freshUntil(entry));
      return { ...seen, ...(keysFreshUntil !== undefined && { keysFreshUntil }) };
    }),
  );
}
