import type { AuthContext, AuthRequest, Target } from '../../auth/contract.ts';
import { canonicalTargetUri } from '../../auth/rfc9421/target-uri.ts';
import { contentTypes } from '../../config/content-types.ts';
import { senderSource } from '../../config/senders.ts';
import { createHashes } from '../../crypto/hashes.ts';
import { createEngine } from '../../crypto/index.ts';
import { headerFields, type Delivery } from '../../delivery.ts';
import { editionFor, type EditionName } from '../../edition.ts';
import { createKeyResolver } from '../../keys/resolver.ts';
import { protocolFor } from '../../protocol.ts';
import type { Sender } from '../../senders.ts';
import type { Capture } from '../capture/capture.ts';
import { type Budget, createBudget } from './budget.ts';
import { checklist, type Step } from './checklist.ts';
import type { Finding } from './finding.ts';
import { findCauses } from './find-causes.ts';
import { type Known, withKnown } from './known.ts';

/** A captured delivery, and what its receiver is configured with. */
export interface ExplainInput extends Known {
  readonly capture: Capture;
  /** `publicUrl`: the URL that the seller was given. */
  readonly url: string;
  /** All of one scheme. Keys as `pins`, or legacy `auth`; nothing is fetched. */
  readonly senders: readonly Sender[];
  /** Unix ms. */
  readonly receivedAt: number;
  readonly protocol?: string | undefined;
  readonly edition?: EditionName | undefined;
  readonly hostCheck?: 'strict' | 'off' | undefined;
  /** 1 048 576. */
  readonly maxBodyBytes?: number | undefined;
  /** Taken beside `application/json`. */
  readonly contentTypes?: readonly string[] | undefined;
}

/** The checklist, and why its failed steps failed. */
export interface Explanation {
  /** No step failed. */
  readonly ok: boolean;
  readonly steps: readonly Step[];
  /** At least one for each step that failed. */
  readonly findings: readonly Finding[];
}

/** Everything that the steps and the searches work on. */
export interface Case {
  readonly input: ExplainInput;
  readonly target: Target;
  readonly context: AuthContext;
  readonly request: AuthRequest;
  /** For all searches of this explanation together. */
  readonly budget: Budget;
}

const DEFAULT_MAX_BYTES = 1_048_576;

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

async function caseOf(input: ExplainInput, budget: Budget): Promise<Case> {
  const protocol = protocolFor(input.protocol);
  const edition = editionFor(input.edition);
  const engine = await createEngine();
  const target = canonicalTargetUri(input.url);
  const { fixed = [] } = senderSource(input.senders, {
    protocol,
    edition,
    allowLoopback: true,
    maxNoncesPerKey: 1,
  });
  const keys = createKeyResolver({
    protocol,
    engine,
    // Pins are all there is: whoever is asked about has been fetched before.
    transport: () => Promise.reject(new Error('nothing is fetched')),
    now: () => input.receivedAt,
    allowLoopback: true,
    raiseAlarm: () => undefined,
    logger: quiet,
  });
  const { capture, receivedAt, hostCheck = 'strict' } = input;
  const headers = headerFields(capture.headers);
  const delivery: Delivery = { method: capture.method, url: capture.target, headers, rawBody: capture.body };
  const context: AuthContext = {
    protocol,
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
    budget,
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
 * Takes a captured delivery through a receiver's checks, and looks for what would make the failed ones pass.
 * @throws ConfigError, TargetUriError for an unusable senders, protocol, edition or URL; never for the capture.
 * @param budget bounds what the searches do; a finding says where they were cut short.
 */
export async function explainDelivery(
  input: ExplainInput,
  budget: Budget = createBudget(),
): Promise<Explanation> {
  const made = await caseOf(input, budget);
  const steps = await stepsOf(made);
  const again = {
    steps: async (mended: ExplainInput) => stepsOf(await caseOf(mended, budget)),
    explain: (mended: ExplainInput) => explainDelivery(mended, budget),
  };
  const findings = await findCauses(made, steps, again);
  return { ok: !steps.some(({ verdict }) => verdict === 'fail'), steps, findings };
}
