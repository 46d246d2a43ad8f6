import type { Hashes } from '../crypto/engine.ts';
import { canonicalJson } from '../codec/canonical-json.ts';
import type { EventReading, ReadBody } from '../events/reading.ts';
import type { Protocol } from '../protocol.ts';
import type { Identity } from '../auth/contract.ts';
import type { Edition } from '../edition.ts';
import type { SenderEntry } from '../senders.ts';
import type { DeliveryReportEvent } from '../events/event.ts';
import type { EventClaim, ReportClaim } from '../stores/contract.ts';
import type { Authentic } from './authenticate.ts';
import { storedId } from './stored-id.ts';

/** An authentic body, read; or why it gives no event. Which it is gets answered only after `admit`. */
export interface Read {
  readonly kind: 'read';
  readonly identity: Identity;
  readonly rawBody: Uint8Array;
  readonly reading: EventReading;
  /** What the store compares and keeps, where there is an event. */
  readonly claim?: EventClaim;
}

export interface ReadContext {
  readonly protocol: Protocol;
  readonly hashes: Hashes;
  /** The reader of bodies, loaded before the first delivery. */
  readonly readBody: ReadBody;
}

/** Who sent it, and in which format where registration told. */
export type Origin = Pick<SenderEntry, 'agentUrl' | 'format'>;

/** Reads bytes of a known sender: this delivery's, or a stored first copy's. */
export function readFrom(sender: Origin, bytes: Uint8Array, context: ReadContext): EventReading {
  return context.readBody(bytes, {
    sender: sender.agentUrl,
    protocol: context.protocol,
    hash: (raw) => context.hashes.sha256Hex(raw),
    ...(sender.format !== undefined && { format: sender.format }),
  });
}

/** A report may speak of many media buys; so many are enough to notice one that goes on after its last. */
const MAX_REPORTED_BUYS = 100;

function reportClaim({ report }: DeliveryReportEvent, hashes: Hashes): ReportClaim {
  const ids = (report.media_buy_deliveries ?? []).map(({ media_buy_id }) => storedId(media_buy_id, hashes));
  return {
    mediaBuyIds: [...new Set(ids)].slice(0, MAX_REPORTED_BUYS),
    final: report.notification_type === 'final',
  };
}

/** What the store compares and keeps of an event. */
export function claimOf(
  edition: Edition,
  rawBody: Uint8Array,
  reading: Extract<EventReading, { ok: true }>,
  hashes: Hashes,
): EventClaim {
  const { event, instant, terminal } = reading;
  return {
    key: event.idempotencyKey,
    body: rawBody,
    rawHash: hashes.sha256Hex(rawBody),
    ...(edition.fingerprint === 'canonical' && {
      canonicalHash: hashes.sha256Hex(new TextEncoder().encode(canonicalJson(event.envelope))),
    }),
    onChanged: edition.changedPayload === 'conflict' ? 'conflict' : 'first-wins',
    // Reports and other families are neither ordered nor serialised (design.md, "The store", Ordering).
    ...(event.kind === 'task' && {
      task: {
        id: storedId(event.taskId, hashes),
        terminal,
        ...(instant && { instant: instant.key, instantMs: instant.ms }),
      },
    }),
    ...(event.kind === 'delivery-report' && { report: reportClaim(event, hashes) }),
    ...(event.notificationId !== undefined && {
      notificationId: storedId(event.notificationId, hashes),
    }),
  };
}

/** Check 14, then the envelope rules of verification.md section 7. No I/O. */
export function read({ delivery, identity }: Authentic, context: ReadContext): Read {
  const { rawBody } = delivery;
  const { sender } = identity;
  const reading = readFrom(sender, rawBody, context);
  const read = { kind: 'read', identity, rawBody, reading } as const;
  return reading.ok ? { ...read, claim: claimOf(sender.edition, rawBody, reading, context.hashes) } : read;
}
