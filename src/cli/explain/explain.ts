// Explains a captured delivery: makes a receiver's checks on it, and searches the causes of failures. `explain-verb.ts`
// calls it.
import type { AuthContext } from '../../auth/auth-contract.ts';
import { canonicalTargetUri } from '../../auth/rfc9421/signature-base.ts';
import { contentTypes } from '../../config/content-types.ts';
import { senderSource } from '../../config/sender-source.ts';
import { createHashes } from '../../crypto/hashes.ts';
import { createEngine } from '../../crypto/index.ts';
import { headerFields, type Delivery } from '../../shared/delivery.ts';
import { editionFor } from '../../shared/editions.ts';
import { protocolsFor } from '../../shared/wire-names.ts';
import { safeLogger } from '../../shared/logging.ts';
import { createKeyResolver } from '../../keys/resolver.ts';
import type { Case, ExplainInput, Explanation, Step } from './explain-case.ts';
import { findCauses } from './causes.ts';
import { checklist, withKnown } from './checklist.ts';

/** The default of a receiver's `maxBodyBytes`. */
const DEFAULT_MAX_BYTES = 1_048_576;

const quiet = safeLogger({
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
});

async function caseOf(input: ExplainInput): Promise<Case> {
  const protocols = protocolsFor(input.protocol);
  const edition = editionFor(input.edition);
  const engine = await createEngine();
  const target = canonicalTargetUri(input.url);
  const { fixed = [] } = senderSource(input.senders, {
    protocols,
    edition,
    allowLoopback: true,
    maxNoncesPerKey: 1,
    maxNoncesPerSender: Infinity,
  });
  const keys = createKeyResolver({
    protocols,
    engine,
    // Nothing is fetched, because all senders have their keys as `pins` here.
    fetch: () => Promise.reject(new Error('nothing is fetched')),
    now: () => input.receivedAt,
    allowLoopback: true,
    raiseAlarm: () => undefined,
    logger: quiet,
  });
  const { capture, receivedAt, hostCheck = 'strict' } = input;
  const headers = headerFields(capture.headers);
  const delivery: Delivery = { method: capture.method, url: capture.target, headers, rawBody: capture.body };
  const context: AuthContext = {
    protocols,
    engine,
    hashes: createHashes(),
    keys: withKnown(keys, input),
    hostCheck,
    raiseAlarm: () => undefined,
  };
  return {
    input,
    target,
    context,
    request: { delivery, target, senders: fixed, arrivedAt: receivedAt },
  };
}

const stepsOf = ({ input, context, request }: Case): Promise<Step[]> =>
  checklist(context, request, {
    ...input,
    bodyless: input.capture.bodyless,
    maxBodyBytes: input.maxBodyBytes ?? DEFAULT_MAX_BYTES,
    contentTypes: contentTypes(input.contentTypes),
  });

/**
 * Makes a receiver's checks on a captured delivery, and searches for changes with which failed checks would pass.
 * @throws ConfigError or TargetUriError for unusable senders, protocol, edition or URL; never because of the capture.
 */
export async function explainDelivery(input: ExplainInput): Promise<Explanation> {
  const made = await caseOf(input);
  const steps = await stepsOf(made);
  const again = {
    steps: async (mended: ExplainInput) => stepsOf(await caseOf(mended)),
    explain: explainDelivery,
  };
  const findings = await findCauses(made, steps, again);
  return { ok: !steps.some(({ verdict }) => verdict === 'fail'), steps, findings };
}
