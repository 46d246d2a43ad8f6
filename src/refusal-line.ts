import { readSignatureFields } from './auth/rfc9421/checks.ts';
import { MAX_URL_BYTES, printableName } from './codec/printable.ts';
import type { OutcomeContext } from './answering.ts';
import type { HeaderFields } from './delivery.ts';
import { type AlarmCode, docsOf } from './alarms.ts';
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
  raiseSettingAlarm(outcome, known, parts);
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
 * A refusal that another setting of ours would not have made (verification.md §2.37). Nothing is proved: once a minute
 * for those who are registered at the URL, whose spelling anybody can vary.
 */
function raiseSettingAlarm(
  { code, detail }: Refusal,
  { delivery, selected }: OutcomeContext,
  { raiseAlarm }: Parts,
): void {
  if (!selected || !delivery) return;
  const url = printableName(selected.target.targetUri, MAX_URL_BYTES);
  const registered = selected.senders.map(({ agentUrl }) => agentUrl).join(', ');
  const raise = (alarm: AlarmCode, fix: string): void =>
    raiseAlarm({
      code: alarm,
      url,
      registered,
      message: `401 at ${url}, final for the seller (${registered} is registered there): ${detail} ${fix}`,
    });
  if (code === 'webhook_mode_mismatch') {
    raise(code, 'If the seller has changed its scheme, change the auth of its sender.');
  }
  const name = code === 'webhook_signature_tag_invalid' ? nameInTag(delivery.headers) : undefined;
  if (name !== undefined) {
    raise('webhook_signature_tag_invalid', `Leave protocol out, or set protocol: '${name}'.`);
  }
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
  logger.warn(fields, `a delivery was refused: ${detail}`);
}

/** The name of the protocol in another tag of webhooks: as a rule one that is not accepted here. */
function nameInTag(headers: HeaderFields): string | undefined {
  const parsed = readSignatureFields(headers);
  const tag = parsed.kind === 'parsed' ? (parsed.input.parameters.tag ?? '') : '';
  return /^([a-z][a-z0-9-]{0,31})\/webhook-signing\/v1$/.exec(tag)?.[1];
}
