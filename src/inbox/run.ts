import { deliveryId } from '../delivery-id.ts';
import { boundLogger } from '../logging.ts';
import type { Equipped } from '../parts.ts';
import { dispatch } from '../stages/dispatch.ts';
import { idsOf } from '../stages/ids.ts';
import { settle } from '../stages/settle.ts';
import { originOf, readStored } from '../stages/stored.ts';
import type { Started, Won } from '../stages/won.ts';
import type { LeasedEvent } from '../stores/contract.ts';

/** The corridor's end, entered from the inbox. A sender that is no longer configured makes no difference. */
export function wonOf(event: LeasedEvent, parts: Equipped): Won {
  const { sender, key, lease, waitedMs, traceparent, body } = event;
  const origin = originOf(parts.config, sender);
  return {
    kind: 'won',
    origin,
    key,
    deliveryId: deliveryId(parts.hashes, sender, key),
    lease,
    ...(waitedMs !== undefined && { waitedMs }),
    ...(traceparent !== undefined && { traceparent }),
    place: event,
    firstCopy: () => readStored(origin, key, body, parts),
    once: false,
  };
}

/**
 * Runs a leased event's handler and completes or fails it. Resolves when the handler has settled, or counts as
 * crashed; never rejects: what cannot be settled runs out, and is leased again.
 */
export async function runLeased(run: Started, parts: Equipped, abort: AbortController): Promise<void> {
  const { deliveryId: id, key, lease, origin } = run.won;
  const log = boundLogger(parts.logger, { sender: origin.agentUrl, key, deliveryId: id });
  const late: Promise<unknown>[] = [];
  const delivery = {
    log,
    background: (work: Promise<unknown>) => late.push(work),
    isUnattended: true,
  };
  try {
    const dispatched = await dispatch(run, parts, log, abort);
    const result = await settle(dispatched, parts, delivery);
    const fields = { ...idsOf(dispatched.run.event), attempt: lease.attempt };
    if (result.kind === 'settled') {
      log.info({ ...fields, state: result.state }, `event ${result.state}`);
    } else if (result.code !== 'handler_failed') {
      log.warn({ ...fields, code: result.code, detail: result.detail }, 'event not settled');
    }
    await Promise.all(late);
  } catch (error) {
    log.error({ err: error, attempt: lease.attempt }, 'an event could not be settled: its lease runs out');
  }
}
