import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { readContentDigest } from '../../auth/rfc9421/content-digest.ts';
import { fieldValue } from '../../delivery.ts';
import { editionFor, type EditionName } from '../../edition.ts';
import { adviceFor } from './advice.ts';
import { searchBody } from './body-search.ts';
import type { Step } from './checklist.ts';
import { searchClock } from './clock-search.ts';
import type { Case } from './explain.ts';
import type { Finding } from './finding.ts';
import { repairs } from './header-repairs.ts';
import { byteForms, sequenceText } from './signature-forms.ts';
import { lookAtHmac } from './look-at-hmac.ts';
import { lookAtSignature } from './look-at-signature.ts';
import { type Again, type Look, unknown } from './look.ts';

const passes = (steps: readonly Step[], id: string): boolean =>
  steps.some((step) => step.id === id && step.verdict === 'pass');

/** Check 1: the same delivery with its headers mended. */
const lookAtHeaders: Look = async ({ input }, step, again) => {
  for (const { headers, change } of repairs(input.capture.headers)) {
    const capture = { ...input.capture, headers };
    const mended = { ...input, capture };
    if (!passes(await again.steps(mended), '1')) continue;
    const { findings } = await again.explain(mended);
    const others = findings.filter((finding) => finding.cause !== 'headers');
    return [{ step: step.id, proved: true, fix: '', ...change }, ...others];
  }
  return [];
};

/** Check 3: another tag is, as a rule, another name of the protocol. */
const lookAtTag: Look = async ({ request }, step) => {
  const fields = readSignatureFields(request.delivery.headers);
  const tag = fields.kind === 'parsed' ? (fields.input.parameters.tag ?? '') : '';
  const name = /^([a-z][a-z0-9-]*)\/webhook-signing\/v1$/.exec(tag)?.[1];
  if (name === undefined)
    return [
      unknown(
        step,
        `The tag is ${JSON.stringify(tag)}.`,
        'The seller signed for another purpose; webhooks have the tag <protocol>/webhook-signing/v1.',
      ),
    ];
  return [
    {
      step: step.id,
      cause: 'protocol',
      says: `The seller calls the protocol ${JSON.stringify(name)}.`,
      fix: `Set protocol: '${name}' (here: --protocol ${name}).`,
      proved: true,
    },
  ];
};

const lookAtClock: Look = async ({ request }, step) => {
  const fields = readSignatureFields(request.delivery.headers);
  return fields.kind === 'parsed' ? [searchClock(fields.input.parameters, request.arrivedAt, step.id)] : [];
};

/** Check 8: another edition takes the purpose, or none does. */
const lookAtPurpose: Look = async ({ input, request, context }, step, again) => {
  const editions: readonly EditionName[] = ['3.1', '3.2'];
  const current = request.senders[0]?.edition ?? editionFor();
  for (const edition of editions.filter((name) => name !== current.name)) {
    const senders = input.senders.map((sender) => ({ ...sender, edition }));
    const steps = await again.steps({ ...input, senders });
    if (!passes(steps, '8')) continue;
    const says = `The key's ${context.protocol.purposeMember} is allowed from edition ${edition} on.`;
    return [
      {
        step: step.id,
        cause: 'edition',
        says,
        fix: `Set edition: '${edition}' for this sender (here: --edition ${edition}).`,
        proved: true,
      },
    ];
  }
  return [
    {
      step: step.id,
      cause: 'key-purpose',
      says: step.detail ?? '',
      fix: `The seller has to publish the key with use "sig", key_ops ["verify"], ${context.protocol.purposeMember} "webhook-signing", and an alg that fits kty and crv.`,
      proved: true,
    },
  ];
};

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** Check 11. */
const lookAtBody: Look = async ({ request, context, budget }, step) => {
  const { headers, rawBody } = request.delivery;
  const digest = readContentDigest(headers.get('content-digest') ?? []);
  if (typeof digest === 'string' || digest.sha256 === undefined) {
    return [
      unknown(
        step,
        'Content-Digest has no sha-256 member.',
        'The seller has to send Content-Digest: sha-256=:…:.',
      ),
    ];
  }
  const text = sequenceText(fieldValue(headers, 'content-digest') ?? '', 'sha-256') ?? '';
  const actual = context.hashes.sha256(rawBody);
  const form = byteForms(text, 'Content-Digest').find(({ bytes }) => sameBytes(bytes, actual));
  if (form) return [{ step: step.id, proved: true, fix: '', ...form.change }];
  const signed = digest.sha256;
  const matches = (bytes: Uint8Array): boolean =>
    budget.take(bytes.length) && sameBytes(signed, context.hashes.sha256(bytes));
  return searchBody(rawBody, matches, step.id, budget);
};

/** A step that is not here is explained by its code. */
const LOOKS: Readonly<Record<string, Look>> = {
  '1': lookAtHeaders,
  '3': lookAtTag,
  '5': lookAtClock,
  '7': lookAtSignature,
  '8': lookAtPurpose,
  '10': lookAtSignature,
  '11': lookAtBody,
  hmac: lookAtHmac,
};

/** At least one finding for each step that failed. */
export async function findCauses(made: Case, steps: readonly Step[], again: Again): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const step of steps.filter(({ verdict }) => verdict === 'fail')) {
    const found = (await LOOKS[step.id]?.(made, step, again)) ?? [];
    const advice = found.length > 0 ? undefined : adviceFor(step);
    findings.push(...found, ...(advice ? [advice] : []));
    if (found.length === 0 && !advice)
      findings.push(unknown(step, step.detail ?? '', 'See the code in docs/keys.md and the README.'));
  }
  return findings;
}
