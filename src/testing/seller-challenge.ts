import { parseStrictObject } from '../codec/strict-json.ts';
import { createHashes } from '../crypto/hashes.ts';
import type { ChallengeAuth, ChallengeBody } from '../events/challenge.ts';
import type { SenderAuth } from '../senders.ts';
import type { Members } from './payloads.ts';
import type { FakeSeller } from './seller-types.ts';

function deliveryAuth(auth: SenderAuth | undefined): ChallengeAuth {
  if (!auth) return { mode: 'rfc9421' };
  const [mode, credential] =
    'hmac' in auth ? ['HMAC-SHA256', auth.hmac.secret] : ['Bearer', auth.bearer.token];
  return { mode, credential_fingerprint: createHashes().sha256Hex(new TextEncoder().encode(credential)) };
}

/** The body of a proof of control, with a fresh challenge. `changes` go to its top level. */
export function sampleChallenge(
  agentUrl: string,
  auth: SenderAuth | undefined,
  changes: Members = {},
): ChallengeBody {
  return {
    type: 'webhook.challenge',
    challenge: `chl_${crypto.randomUUID()}`,
    account_id: 'acc_1',
    subscriber_id: 'sub_1',
    seller_agent_url: agentUrl,
    delivery_auth: deliveryAuth(auth),
    event_types: ['creative.status_changed', 'impairment'],
    ...changes,
  };
}

function echoes(body: string, challenge: unknown): boolean {
  const answer = parseStrictObject(new TextEncoder().encode(body));
  return answer.ok && answer.value['challenge'] === challenge && Object.keys(answer.value).length === 1;
}

/** Always signed, whatever the seller's deliveries are authenticated by, and posted once. */
export function challenging(
  agentUrl: string,
  auth: SenderAuth | undefined,
  { sign, send }: Pick<FakeSeller, 'sign' | 'send'>,
): FakeSeller['challenge'] {
  return async (changes, options = {}) => {
    const body = sampleChallenge(agentUrl, auth, changes);
    const delivery = await sign(body, { auth: 'signature', ...options });
    const attempt = await send(delivery, options);
    const verified = attempt.outcome === 'success' && echoes(attempt.body, body.challenge);
    return { verified, attempt };
  };
}
