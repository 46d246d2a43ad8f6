// `createVerifier`: the checks of a receiver without its store. The owner stores each event, and then commits the
// delivery (admission.md §2.18, §2.19).
// The stages up to `read` are shared with the receiver, through `verify.ts`.

import type { Readiness, RequestInfo } from '../config/receiver-options.ts';
import {
  type Committed,
  resolveVerifierOptions,
  type Unverified,
  type VerifiedDelivery,
  type Verifier,
  type VerifierOptions,
} from '../config/verifier-options.ts';
import { requireRawBytes } from '../shared/delivery.ts';
import type { Acceptance } from '../shared/outcome.ts';
import { startStop } from '../shared/start-stop.ts';
import { announceEvent } from '../stages/announce.ts';
import { burn, type BurnContext, type Identified, nonceRefusal, unreadable } from '../stages/burn.ts';
import { isChallenge, type ReadEvent } from '../stages/read.ts';
import { finishOutcome } from './finish.ts';
import type { Nonces } from './nonces.ts';
import type { OutcomeContext } from './refused.ts';
import { startupWithout } from './startup.ts';
import { type Arrival, arrival, challenged, counted, enter, readWhole } from './verify.ts';
import { createVerifyingParts, type ReadyVerifying, type VerifyingContext } from './verifying.ts';

interface ReadyVerifier extends ReadyVerifying {
  readonly nonces: Nonces;
}

function createContext(options: VerifierOptions): VerifyingContext<ReadyVerifier> {
  const config = resolveVerifierOptions(options);
  const { parts, load } = createVerifyingParts(options, { config });
  const startup = startupWithout({
    ...parts,
    isStopped: parts.lifecycle.stopping,
    load: async (): Promise<ReadyVerifier> => {
      const [loaded, { createNonces }] = await Promise.all([load(), import('./nonces.ts')]);
      return { ...parts, ...loaded, nonces: createNonces(options.burn, loaded.hashes) };
    },
  });
  return { ...parts, startup };
}

const burning = (read: Identified, ready: ReadyVerifier): ReadyVerifier & BurnContext => ({
  ...ready,
  store: ready.nonces.of(read),
});

/** Commits a delivery whose event the owner has stored: records its nonce as used, and makes its outcome. */
async function committed(
  read: ReadEvent,
  known: OutcomeContext,
  ready: ReadyVerifier,
  mayBeBurned: boolean,
): Promise<Committed> {
  const { event } = read.reading;
  const answer: Acceptance = { kind: 'accepted', state: 'applied', event, changed: false };
  return counted(ready, known, async () => {
    const burned = await burn(read, answer, burning(read, ready));
    const isOwn = mayBeBurned && burned.kind === 'refused' && burned.code === 'webhook_signature_replayed';
    const verdict = isOwn ? answer : burned;
    if (verdict.kind === 'accepted') announceEvent(event, ready.raiseAlarm);
    return finishOutcome(verdict, known, ready);
  });
}

/** Makes the result of a verified delivery. The owner stores its event and then calls `commit`. */
function verified(read: ReadEvent, known: OutcomeContext, ready: ReadyVerifier): VerifiedDelivery {
  let ended: Promise<Committed> | undefined;
  // True after a failed `commit`, which may have recorded the nonce although its answer was lost. Then the next
  // `commit` does not take the recorded nonce for a replay.
  let mayBeBurned = false;
  return {
    kind: 'verified',
    event: read.reading.event,
    sender: read.identity.sender.agentUrl,
    deliveryId: read.deliveryId,
    commit: () =>
      (ended ??= committed(read, known, ready, mayBeBurned).then((outcome) => {
        if (outcome.kind !== 'unavailable') return outcome;
        mayBeBurned = true;
        ended = undefined;
        return outcome;
      })),
  };
}

/**
 * Creates a verifier: the checks of a receiver without its store. It does not deduplicate, order or handle events.
 * Use it if you store events yourself.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 * @example
 * ```ts
 * import { createVerifier } from 'proto-webhooks';
 *
 * const verifier = createVerifier({
 *   publicUrl: 'https://buyer.example/webhooks/proto',
 *   senders: [{ agentUrl: 'https://seller.example/mcp' }],
 * });
 *
 * export async function receive(body: Uint8Array, headers: Headers, save: (id: string) => Promise<void>) {
 *   const result = await verifier.verify(body, headers);
 *   if (result.kind !== 'verified') return result.response;
 *   await save(result.deliveryId);
 *   return (await result.commit()).response;
 * }
 * ```
 */
export function createVerifier(options: VerifierOptions): Verifier {
  const context = createContext(options);

  async function verifyIn(rawBody: Uint8Array, known: Arrival): Promise<VerifiedDelivery | Unverified> {
    const entered = await enter(context, known);
    if (entered.kind !== 'entered') return finishOutcome(entered, known, context);
    const { parts: ready, arrivedAt } = entered;
    const read = await readWhole(entered, { rawBody, wholeAt: arrivedAt }, known);
    if (read.kind !== 'read') return finishOutcome(read, known, ready);
    if (isChallenge(read)) {
      return finishOutcome(await challenged(read, burning(read, ready)), known, ready);
    }
    if (!read.claim) {
      return finishOutcome(await burn(read, unreadable(read), burning(read, ready)), known, ready);
    }
    const { look } = ready.nonces;
    const used = look && (await nonceRefusal(read, { ...ready, store: look }));
    return used ? finishOutcome(used, known, ready) : verified(read, known, ready);
  }

  async function verify(
    rawBytes: unknown,
    headers: unknown,
    given: RequestInfo | undefined,
  ): Promise<VerifiedDelivery | Unverified> {
    const rawBody = requireRawBytes(rawBytes);
    const known = arrival(context, headers, given, rawBody);
    return counted(context, known, () => verifyIn(rawBody, known));
  }

  const { lifecycle, startup, keys, config } = context;
  const ready = async (): Promise<Readiness> => {
    await startup.check();
    return { storeId: undefined };
  };
  const { start, stop } = startStop(
    async () => {
      lifecycle.resume();
      keys.resume();
      await ready();
    },
    async () => {
      await lifecycle.drain(config.leaseMs);
      lifecycle.close();
      keys.stop();
      await startup.reset(config.leaseMs);
    },
  );
  return { verify, ready, start, stop, [Symbol.asyncDispose]: stop };
}
