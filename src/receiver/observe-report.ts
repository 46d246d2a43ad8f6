import { isLongerJson } from '../codec/json-size.ts';
import { utf8 } from '../codec/encoding.ts';
import { ConfigError, Fault } from '../shared/errors.ts';
import { REPORT_TASK_TYPE } from '../events/report-names.ts';
import type { DeliveryReport } from '../events/event.ts';
import { observationKey, type Observed } from '../events/observation.ts';
import { claimOf, readFrom } from '../stages/read.ts';
import type { FirstCopy } from '../stages/admitted-event.ts';
import type { EventClaim } from '../stores/store.ts';
import { turnAfter } from '../shared/time-limits.ts';
import type { ReadyContext, ReceiverContext } from './context.ts';
import { admitObserved, kept } from './observe.ts';

/* A report that was asked for becomes an event like one that came (owed.md §4.3): of one media buy, for one window. */

/** A report of one media buy that the buyer asked for. */
export interface PulledReport {
  /** The agent URL of the seller. */
  readonly sender: string;
  readonly mediaBuyId: string;
  readonly report: DeliveryReport;
}

/** Hands a pulled report to the handlers. `duplicate`: its window came before. */
export type ObserveReport = (pulled: PulledReport) => Promise<Observed>;

/** @throws UnfitObservation (rejects) for a report that cannot be kept, Fault where the store cannot take it now. */
export function observeReportWith({ lifecycle, startup }: ReceiverContext): ObserveReport {
  return async (pulled) => {
    if (lifecycle.stopping()) throw new Fault('shutting_down', 'The receiver stops.');
    lifecycle.arrived();
    try {
      const ready = await startup.ready();
      return await admitObserved(pulled.sender, await kept(() => readPulled(pulled, ready)), ready);
    } finally {
      lifecycle.answered();
    }
  };
}

/** Each has a key of its own: which window it is of decides whether it is a duplicate (owed.md §3.2). */
async function readPulled(
  { sender, mediaBuyId, report }: PulledReport,
  ready: ReadyContext,
): Promise<{ readonly reading: FirstCopy; readonly claim: EventClaim }> {
  const { config, hashes, registrations } = ready;
  const key = observationKey('pull', ready.newId());
  const envelope = {
    idempotency_key: key,
    task_id: mediaBuyId,
    task_type: REPORT_TASK_TYPE,
    status: 'completed',
    result: report,
  };
  const body = isLongerJson(envelope, config.maxBodyBytes) ? undefined : utf8(JSON.stringify(envelope));
  if (body === undefined || body.byteLength > config.maxBodyBytes) {
    throw new ConfigError(`the report is over maxBodyBytes (${config.maxBodyBytes}) as JSON.`);
  }
  await turnAfter(body.byteLength);
  const reading = readFrom({ agentUrl: sender }, body, ready, { source: 'pull' });
  if (!reading.ok) throw new ConfigError('detail' in reading ? reading.detail : 'is not an event.');
  await turnAfter(body.byteLength);
  const claim = claimOf(body, reading, { edition: config.edition, hashes, registrations, isObserved: true });
  return { reading, claim };
}
