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
  /** Agent URL of the sender that the headers prove, even if the body is then refused. */
  proved?: string | undefined;
  /** The request. Absent if nothing of it is known. */
  readonly delivery?: Head;
  /** Aborts waiting for another copy of the event. */
  readonly signal?: AbortSignal | undefined;
  /** The body, if it had arrived. */
  rawBytes?: Uint8Array | undefined;
  selected?: Pick<Selected, 'target' | 'senders'>;
}

/** Parts of the receiver with which the owner is informed. */
export interface RefusalParts extends SettingParts {
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: SafeLogger;
  /** Limits the log lines at level warn about refusals. */
  readonly refusals: Thinning;
  readonly onRefused: ((delivery: RefusedDelivery) => void) | undefined;
  /** Largest body, in bytes, that is read for `onRefused` if the headers were refused. */
  readonly refusedBodyBytes: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** Longest key id in a log, in UTF-8 bytes. */
const MAX_KEYID_BYTES = 128;

function keyidOf(headers: HeaderFields): string | undefined {
  const fields = readSignatureFields(headers);
  return fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
}

/** The sender: the proved one, or else the configured one that has the key named in the delivery. */
function whoseIs({ who, delivery, selected }: OutcomeContext, { keys }: RefusalParts): string | undefined {
  if (who.sender !== undefined) return who.sender;
  const keyid = delivery && keyidOf(delivery.headers);
  return keyid === undefined ? undefined : keys.whose(keyid, selected?.senders);
}

/** Reports a refusal to the owner, in addition to the log line at level info that every refusal has. */
export function noteRefusal(outcome: Outcome & Refusal, known: OutcomeContext, context: RefusalParts): void {
  const { delivery, rawBytes } = known;
  if (!delivery) return;
  raiseSettingAlarm(outcome, known, context);
  const sender = whoseIs(known, context);
  logFirst(outcome, sender, known, context);
  if (sender !== undefined) {
    const note = noteOf(context.notes, sender, known.selected?.senders);
    note.lastRefusedAt = context.now();
    note.lastCode = outcome.code;
  }
  const { headers, method, url } = delivery;
  const targetUri = targetOf(known, context);
  context.onRefused?.({ headers, method, url, targetUri, sender, outcome, ...(rawBytes && { rawBytes }) });
}

/** The requested URL, as far as it is known. If `publicUrl` is exact, it is the configured one. */
const urlOf = (known: OutcomeContext, context: RefusalParts): string | undefined =>
  targetOf(known, context) ?? known.delivery?.url;

function targetOf({ selected }: OutcomeContext, { config }: RefusalParts): string | undefined {
  const [base, ...others] = config.bases;
  const exact = base.kind === 'exact' && others.length === 0 ? base.target : undefined;
  return (selected?.target ?? exact)?.targetUri;
}

/**
 * The senders that a refusal's alarm is about: the proved sender, or else all that are registered at the URL, of
 * which none is proved.
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
 * Raises an alarm for a refusal that another setting of the receiver would have prevented (verification.md §2.37).
 * If no sender is proved, there is one alarm a minute for all senders registered at the URL, because anybody can
 * vary the URL's spelling.
 */
function raiseSettingAlarm(
  { code, detail, response, challenge }: Outcome & Refusal,
  known: OutcomeContext,
  context: RefusalParts,
): void {
  const { delivery, selected } = known;
  if (!delivery) return;
  const { headers } = delivery;
  const senders = selected?.senders ?? context.config.senders.fixed ?? [];
  const suspect = suspectOf(code, { headers, keyid: keyidOf(headers), senders, parts: context });
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
 * Logs the first refusal of a sender with each code in a minute. The sender is the configured one that has the
 * named key. A delivery without such a key shares a line with others of its kind, so that it cannot suppress a
 * known sender's line.
 */
function logFirst(
  { code, detail }: Refusal,
  known: string | undefined,
  { delivery, selected }: OutcomeContext,
  { refusals, now, logger }: RefusalParts,
): void {
  if (!delivery) return;
  const keyid = keyidOf(delivery.headers);
  const suppressed = refusals(JSON.stringify([known, code]), now());
  if (suppressed === undefined) return;
  const url = selected?.target.targetUri ?? delivery.url;
  const fields = {
    code,
    ...(known !== undefined && { sender: known }),
    ...(keyid !== undefined && { keyid: printableName(keyid, MAX_KEYID_BYTES) }),
    ...(url !== undefined && { url: printableName(url, MAX_URL_BYTES) }),
    docs: docsOf(code),
    ...(suppressed > 0 && { suppressed }),
  };
  logger.warn(fields, `a delivery was refused: ${detail}`);
}

/** One body a second is enough for an example of each mistake, and a flood of refusals costs no more than that. */
const SAMPLE_EVERY_MS = 1_000;

type Finish = (raw: Verdict, known: OutcomeContext) => Outcome;

/** Returns the refusal at once, or an upload that gives the refusal when the body has arrived. */
export type BodySampling = (refusal: Refusal, known: OutcomeContext) => Promise<Refusal | Upload>;

/**
 * Reads the body of a delivery that was refused by its headers, for `onRefused`. At most one body a second is read,
 * and only if a known sender has the named key. The answer is the refusal, with or without the body.
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
