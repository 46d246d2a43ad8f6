import { readSignatureFields } from './auth/rfc9421/checks.ts';
import { MAX_URL_BYTES, printableName } from './codec/printable.ts';
import type { OutcomeContext } from './answering.ts';
import type { HeaderFields } from './delivery.ts';
import { docsOf } from './alarms.ts';
import { noteOf } from './health-notes.ts';
import type { Outcome, Refusal } from './outcome.ts';
import type { Parts } from './parts.ts';

/** UTF-8 bytes of a key id in a log. */
const MAX_KEYID_BYTES = 128;

export function keyidOf(headers: HeaderFields): string | undefined {
  const fields = readSignatureFields(headers);
  return fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
}

/** Whose it is, as far as that is known: who it is proved to be of, else who has the key that it names. */
function whoseIs({ who, delivery, selected }: OutcomeContext, { keys }: Parts): string | undefined {
  if (who.sender !== undefined) return who.sender;
  const keyid = delivery && keyidOf(delivery.headers);
  return keyid === undefined ? undefined : keys.whose(keyid, selected?.senders);
}

/** What the owner is told of a refusal, beside the line at level info that each has. */
export function noteRefusal(outcome: Outcome & Refusal, known: OutcomeContext, parts: Parts): void {
  const { delivery, rawBytes } = known;
  if (!delivery) return;
  const sender = whoseIs(known, parts);
  logFirst(outcome, sender, known, parts);
  if (sender !== undefined) {
    const note = noteOf(parts.notes, sender, known.selected?.senders);
    note.lastRefusedAt = parts.now();
    note.lastCode = outcome.code;
  }
  const { headers, method, url } = delivery;
  parts.onRefused?.({ headers, method, url, sender, outcome, ...(rawBytes && { rawBytes }) });
}

/**
 * The first refusal of a sender with a code in a minute is a line that its owner should see. Whose it is, is what it
 * says of itself where a sender has such a key: a sender without one has no line of its own, and cannot hide another's.
 */
function logFirst(
  { code, detail }: Refusal,
  known: string | undefined,
  { delivery, selected }: OutcomeContext,
  { refusals, now, logger }: Parts,
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
  const hint = code === 'webhook_signature_tag_invalid' ? tagHint(delivery.headers) : '';
  logger.warn(fields, `a delivery was refused: ${detail}${hint}`);
}

/** Another tag of webhooks is, as a rule, a name of the protocol that is not accepted here. */
function tagHint(headers: HeaderFields): string {
  const parsed = readSignatureFields(headers);
  const tag = parsed.kind === 'parsed' ? (parsed.input.parameters.tag ?? '') : '';
  const name = /^([a-z][a-z0-9-]{0,31})\/webhook-signing\/v1$/.exec(tag)?.[1];
  return name === undefined
    ? ''
    : ` The seller calls the protocol ${name}, which is not taken here: set protocol: '${name}' in createReceiver.`;
}
