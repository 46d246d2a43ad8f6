import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { compareHost } from '../../auth/rfc9421/host-check.ts';
import { fieldValue } from '../../delivery.ts';
import { adviceFor } from './advice.ts';
import { createBudget, withNote } from './budget.ts';
import type { Case } from './explain.ts';
import { type Look, unknown } from './look.ts';
import { receiverTries } from './receiver-tries.ts';
import { sequenceText } from './signature-forms.ts';
import { searchSignature } from './signature-search.ts';
import type { NamedKey, Scene } from './signature-trials.ts';
import { partsOf } from './url-axes.ts';

async function namedKeys({ context, request }: Case): Promise<NamedKey[]> {
  const keys: NamedKey[] = [];
  for (const jwk of request.senders.flatMap(({ pins = [] }) => pins)) {
    const key = await context.engine.importKey(jwk);
    if (typeof key !== 'string') keys.push({ kid: String(jwk['kid']), key });
  }
  return keys;
}

async function sceneOf(made: Case): Promise<Scene | undefined> {
  const { input, target, context, request } = made;
  const { headers, method } = request.delivery;
  const fields = readSignatureFields(headers);
  const parts = partsOf(target.targetUri);
  if (fields.kind === 'refused' || !parts) return undefined;
  const captured = input.capture.url === undefined ? undefined : partsOf(input.capture.url)?.authority;
  return {
    method,
    headers,
    target,
    url: input.url,
    evidence: { parts, headers, target: input.capture.target, captured },
    tried: receiverTries(made),
    components: fields.input.components,
    params: fields.input.raw,
    signature: fields.signature,
    signatureText: sequenceText(fieldValue(headers, 'signature') ?? '', 'sig1') ?? '',
    keyid: fields.input.parameters.keyid ?? '',
    keys: await namedKeys(made),
    engine: context.engine,
  };
}

/** Checks 7 and 10. */
export const lookAtSignature: Look = async (made, step) => {
  const { request, target, context } = made;
  // The keys were never tried: nothing that was signed otherwise is to be found.
  if (step.code === 'keys_unavailable') return [];
  const host = compareHost(request.delivery, target, context.hostCheck);
  if (host.kind === 'contradiction')
    return [
      unknown(step, host.detail, 'The sender or a proxy sent two different hosts; send one Host header.'),
    ];
  if (host.kind === 'differs' && step.fault === true && step.id === '10') {
    return [
      {
        step: step.id,
        cause: 'host-rewritten',
        says: `The signature is right, and a proxy of yours rewrote Host to ${host.received}.`,
        fix: "Let the proxy pass Host unchanged, or set hostCheck: 'off'.",
        proved: true,
      },
    ];
  }
  const scene = await sceneOf(made);
  // Half of it at most: the body has to be looked into too.
  const budget = createBudget(made.budget.left() / 2, made.budget);
  const found = scene && (await searchSignature(scene, step.id, budget));
  if (found) return found;
  const advice = adviceFor(step);
  return [
    advice ??
      unknown(
        step,
        withNote('None of the usual slips makes the signature verify.', budget),
        'Compare the URL that the seller was given, letter by letter (--url), the keys (proto-webhooks keys check), and whether a header that is covered was changed on the way.',
      ),
  ];
};
