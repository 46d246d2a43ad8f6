// Reports a refusal to the owner: by a log line, by an alarm if a setting may be the cause, and by `onRefused`
// (verification.md §2.37).
// Loaded on demand, and called after the answer was decided. For `onRefused`, some bodies of refused deliveries are
// read.

import { type Alarm, docsOf } from '../shared/alarms.ts';
import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { loadHashes } from '../crypto/native-hashes.ts';
import type { Head, HeaderFields } from '../shared/delivery.ts';
import type { Event } from '../events/event.ts';
import { noteOf } from './health.ts';
import type { DeliveryWatch } from './instruments.ts';
import type { Outcome, Refusal, Verdict } from '../shared/outcome.ts';
import { type SettingParts, suspectOf } from './refusal-settings.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SafeLogger, Thinning } from '../shared/logging.ts';
import type { RefusedDelivery } from '../config/receiver-options.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { declaredLength } from '../stages/guard.ts';
import type { Selected } from '../stages/selected.ts';
import type { Upload } from './ticket.ts';

/** Facts about a delivery that are collected while it is processed, however it ends. */
export interface OutcomeContext {
  readonly watch?: DeliveryWatch | undefined;
  who: Pick<Outcome, 'sender' | 'deliveryId'>;
  event?: Event;
  /** The agent URL of the sender whom the headers authenticate, even if the body is refused later. */
  proved?: string | undefined;
  /** The request without its body. Absent if an adapter could not pass the request on. */
  readonly delivery?: Head;
  /** A signal that ends a duplicate's wait for the first copy of its event. */
  readonly signal?: AbortSignal | undefined;
  /** The body, if it has arrived. */
  rawBytes?: Uint8Array | undefined;
  selected?: Pick<Selected, 'target' | 'senders'>;
}

/** The parts of the receiver that report a refusal to the owner. */
export interface RefusalParts extends SettingParts {
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: SafeLogger;
  /** Limits the log lines at level warn about refusals. */
  readonly refusals: Thinning;
  readonly onRefused: ((delivery: RefusedDelivery) => void) | undefined;
  /** Largest body, in bytes, that is read for `onRefused` if the headers were refused. */
  readonly refusedBodyBytes: number;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/** Longest key id in a log, in UTF-8 bytes. */
const MAX_KEYID_BYTES = 128;

function keyidOf(headers: HeaderFields): string | undefined {
  const fields = readSignatureFields(headers);
  return fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
}

/**
 * Returns the agent URL of the authenticated sender, or else of the configured sender that has the delivery's key id.
 */
function whoseIs(
  { who, selected }: OutcomeContext,
  keyid: string | undefined,
  { keys }: RefusalParts,
): string | undefined {
  if (who.sender !== undefined) return who.sender;
  return keyid === undefined ? undefined : keys.whose(keyid, selected?.senders);
}

/** Reports a refusal to the owner, in addition to the log line at level info that every refusal has. */
export function noteRefusal(outcome: Outcome & Refusal, known: OutcomeContext, context: RefusalParts): void {
  const { delivery, rawBytes } = known;
  if (!delivery) return;
  const keyid = keyidOf(delivery.headers);
  raiseSettingAlarm(outcome, known, keyid, context);
  const sender = whoseIs(known, keyid, context);
  logFirst(outcome, { sender, keyid }, known, context);
  if (sender !== undefined) {
    const note = noteOf(context.notes, sender, known.selected?.senders);
    note.lastRefusedAt = context.now();
    note.lastCode = outcome.code;
  }
  const { headers, method, url } = delivery;
  const targetUri = targetOf(known, context);
  context.onRefused?.({ headers, method, url, targetUri, sender, outcome, ...(rawBytes && { rawBytes }) });
}

/** Returns the URL for which the delivery was verified, or the only configured URL, or else the request target. */
const urlOf = (known: OutcomeContext, context: RefusalParts): string | undefined =>
  targetOf(known, context) ?? known.delivery?.url;

function targetOf({ selected }: OutcomeContext, { config }: RefusalParts): string | undefined {
  const [base, ...others] = config.bases;
  const exact = base.kind === 'exact' && others.length === 0 ? base.target : undefined;
  return (selected?.target ?? exact)?.targetUri;
}

/**
 * Returns the senders that a refusal's alarm names: the authenticated sender, or else every sender that is registered
 * at the URL.
 */
function aboutOf(
  known: OutcomeContext,
  senders: readonly SenderEntry[],
  context: RefusalParts,
): { readonly about: Pick<Alarm, 'sender' | 'url' | 'registered'>; readonly whose: string } {
  const sender = known.who.sender ?? known.proved;
  const url = printableName(urlOf(known, context) ?? '', MAX_URL_BYTES);
  const registered = senders.map(({ agentUrl }) => agentUrl).join(', ');
  const there = `${registered === '' ? 'nobody' : registered} is registered there`;
  return { about: { ...(sender !== undefined && { sender }), url, registered }, whose: sender ?? there };
}

/**
 * Raises an alarm for a refusal that another setting of the receiver might have prevented (verification.md §2.37). If
 * no sender is authenticated, all URLs of the same registered senders share one alarm a minute, because anybody can
 * vary a URL's spelling.
 */
function raiseSettingAlarm(
  { code, detail, response, challenge }: Outcome & Refusal,
  known: OutcomeContext,
  keyid: string | undefined,
  context: RefusalParts,
): void {
  const { delivery, selected } = known;
  if (!delivery) return;
  const { headers } = delivery;
  const senders = selected?.senders ?? context.config.senders.fixed ?? [];
  const suspect = suspectOf(code, { headers, keyid, senders, parts: context });
  if (!suspect) return;
  const { option, advice } = suspect;
  const { about, whose } = aboutOf(known, senders, context);
  const final = challenge === 'bearer' ? '' : ', final for the seller';
  context.raiseAlarm({
    ...about,
    code: suspect.code,
    ...(option !== undefined && { option }),
    message: `${response.status} at ${String(about['url'])}${final} (${whose}): ${detail.replace(/\.$/, '')}. ${advice}`,
  });
}

/**
 * Logs the first refusal in a minute for each sender and code. The sender is the authenticated one, or the one whose
 * key id the delivery names. Deliveries of unknown senders share one line per code, so that they cannot suppress a
 * known sender's line.
 */
function logFirst(
  { code, detail }: Refusal,
  { sender, keyid }: { readonly sender: string | undefined; readonly keyid: string | undefined },
  { delivery, selected }: OutcomeContext,
  { refusals, now, logger }: RefusalParts,
): void {
  if (!delivery) return;
  const suppressed = refusals(JSON.stringify([sender, code]), now());
  if (suppressed === undefined) return;
  const url = selected?.target.targetUri ?? delivery.url;
  const fields = {
    code,
    ...(sender !== undefined && { sender }),
    ...(keyid !== undefined && { keyid: printableName(keyid, MAX_KEYID_BYTES) }),
    ...(url !== undefined && { url: printableName(url, MAX_URL_BYTES) }),
    docs: docsOf(code),
    ...(suppressed > 0 && { suppressed }),
  };
  logger.warn(fields, `a delivery was refused: ${detail}`);
}

/**
 * Minimum time between two bodies that are read for `onRefused`, ms. It is short enough for an example of each mistake,
 * and limits the cost of a flood of refusals.
 */
const SAMPLE_EVERY_MS = 1_000;

type Finish = (raw: Verdict, known: OutcomeContext) => Outcome;

/**
 * Returns the refusal if the body shall not be read. Otherwise returns an upload, which reads the body and then gives
 * the refusal as the answer.
 */
export type BodySampling = (refusal: Refusal, known: OutcomeContext) => Promise<Refusal | Upload>;

/**
 * Makes the function that reads bodies of deliveries refused by their headers, for `onRefused`. At most one body a
 * second is read, and only if a known sender has the key id in the headers. The answer is the refusal in any case.
 */
export function createBodySampling(context: RefusalParts, finish: Finish): BodySampling {
  const maxBytes = context.onRefused ? context.refusedBodyBytes : 0;
  let last = Number.NEGATIVE_INFINITY;
  return async (refusal, known) => {
    const { delivery, selected } = known;
    const now = context.now();
    if (maxBytes === 0 || !delivery || !selected || Math.abs(now - last) < SAMPLE_EVERY_MS) return refusal;
    const keyid = keyidOf(delivery.headers);
    if (keyid === undefined || context.keys.whose(keyid, selected.senders) === undefined) return refusal;
    const declared = declaredLength(delivery.headers);
    if (declared !== undefined && declared > maxBytes) return refusal;
    last = now;
    return {
      kind: 'upload',
      proof: { sender: undefined },
      hashes: await loadHashes(),
      declared,
      maxBytes,
      finish: async ({ rawBody }) => {
        known.rawBytes = rawBody;
        return finish(refusal, known);
      },
      fail: () => finish(refusal, known),
    };
  };
}
