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

/** What became known of a delivery on its way, whatever its end. */
export interface OutcomeContext {
  readonly watch?: DeliveryWatch | undefined;
  who: Pick<Outcome, 'sender' | 'deliveryId'>;
  event?: Event;
  /** Agent URL of the sender that its headers prove, whatever its body is. */
  proved?: string | undefined;
  /** Absent where nothing of it is known. */
  readonly delivery?: Head;
  /** Aborts a wait for another copy. */
  readonly signal?: AbortSignal | undefined;
  /** Where it was there. */
  rawBytes?: Uint8Array | undefined;
  selected?: Pick<Selected, 'target' | 'senders'>;
}

/** Parts of the receiver that the owner is told by. */
export interface RefusalParts extends SettingParts {
  readonly raiseAlarm: RaiseAlarm;
  readonly logger: SafeLogger;
  /** Refusals that are a line at level warn. */
  readonly refusals: Thinning;
  readonly onRefused: ((delivery: RefusedDelivery) => void) | undefined;
  /** The most that `onRefused` wants of a body that was not read. Bytes. */
  readonly refusedBodyBytes: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** UTF-8 bytes of a key id in a log. */
const MAX_KEYID_BYTES = 128;

function keyidOf(headers: HeaderFields): string | undefined {
  const fields = readSignatureFields(headers);
  return fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
}

/** Whose it is, as far as that is known: who it is proved to be of, else who has the key that it names. */
function whoseIs({ who, delivery, selected }: OutcomeContext, { keys }: RefusalParts): string | undefined {
  if (who.sender !== undefined) return who.sender;
  const keyid = delivery && keyidOf(delivery.headers);
  return keyid === undefined ? undefined : keys.whose(keyid, selected?.senders);
}

/** What the owner is told of a refusal, beside the line at level info that each has. */
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

/** The URL that was asked for, as far as it is known; as it is configured where that is exact. */
const urlOf = (known: OutcomeContext, context: RefusalParts): string | undefined =>
  targetOf(known, context) ?? known.delivery?.url;

function targetOf({ selected }: OutcomeContext, { config }: RefusalParts): string | undefined {
  const [base, ...others] = config.bases;
  const exact = base.kind === 'exact' && others.length === 0 ? base.target : undefined;
  return (selected?.target ?? exact)?.targetUri;
}

/** Whom an alarm of a refusal is about: the sender that is proved, or those who are registered, of whom nobody is. */
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
 * A refusal that another setting of ours would not have made (verification.md §2.37). Where nothing is proved it is once a
 * minute for those who are registered at the URL, whose spelling anybody can vary.
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
 * The first refusal of a sender with a code in a minute is a line that its owner should see. Whose it is, is what it
 * says of itself where a sender has such a key: a sender without one has no line of its own, and cannot hide another's.
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

/** Enough for an example of each fault; a flood of refusals costs no more than one body a second. */
const SAMPLE_EVERY_MS = 1_000;

type Finish = (raw: Verdict, known: OutcomeContext) => Outcome;

/** What a refusal by the headers comes to: the refusal at once, or when the body is there. */
export type BodySampling = (refusal: Refusal, known: OutcomeContext) => Promise<Refusal | Upload>;

/**
 * Whether the body of a delivery that its headers refused is read all the same, for `onRefused`: one a second, of who
 * names a key of a known sender. It decides nothing: the answer is the refusal, with or without the body.
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
