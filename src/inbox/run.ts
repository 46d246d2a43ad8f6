import { deliveryId } from '../delivery-id.ts';
import { boundLogger } from '../logging.ts';
import type { Equipped } from '../parts.ts';
import { dispatch } from '../stages/dispatch.ts';
import { settle } from '../stages/settle.ts';
import { originOf, readStored } from '../stages/stored.ts';
import type { Won } from '../stages/won.ts';
import type { LeasedEvent } from '../stores/contract.ts';

/** The corridor's end, entered from the inbox. A sender that is no longer configured makes no difference. */
function wonOf(event: LeasedEvent, parts: Equipped): Won {
  const { sender, key, lease, body } = event;
  const origin = originOf(parts.config, sender);
  return {
    kind: 'won',
    origin,
    key,
    deliveryId: deliveryId(parts.hashes, sender, key),
    lease,
    place: event,
    firstCopy: () => readStored(origin, key, body, parts),
    once: false,
  };
}

/**
 * Runs a leased event's handler and completes or fails it. Resolves when the handler has settled, or counts as
 * crashed; never rejects: what cannot be settled runs out, and is leased again.
 */
export async function runLeased(event: LeasedEvent, parts: Equipped, abort: AbortController): Promise<void> {
  const { sender, lease } = event;
  const won = wonOf(event, parts);
  const log = boundLogger(parts.logger, { sender, deliveryId: won.deliveryId });
  const late: Promise<unknown>[] = [];
  const delivery = {
    log,
    background: (work: Promise<unknown>) => late.push(work),
    // Nobody waits for an answer, and work that was done is not to be done again.
    patienceMs: parts.config.leaseMs,
  };
  try {
    const dispatched = await dispatch(won, parts, log, abort);
    const result = await settle(dispatched, parts, delivery);
    if (result.kind === 'settled') {
      log.info({ attempt: lease.attempt, state: result.state }, `event ${result.state}`);
    } else if (result.code !== 'handler_failed') {
      log.warn({ attempt: lease.attempt, code: result.code, detail: result.detail }, 'event not settled');
    }
    await Promise.all(late);
  } catch (error) {
    log.error({ err: error, attempt: lease.attempt }, 'an event could not be settled: its lease runs out');
  }
}

/** Gives an event back that was leased for nothing: no attempt is counted, and the next worker has it at once. */
export async function giveBack(event: LeasedEvent, { store, config, logger }: Equipped): Promise<void> {
  const { sender, key, lease } = event;
  const { retry, retentionMs } = config;
  const unstarted = { permanent: false, unstarted: true, backoffMs: 0 };
  try {
    await store.fail({ sender, key, owner: lease.owner, ...unstarted, retry, retentionMs });
  } catch (error) {
    logger.warn({ err: error, sender, key }, 'an event could not be given back: its lease runs out');
  }
}
