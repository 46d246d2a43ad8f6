import type { JsonObject } from '../../codec/members.ts';
import { readChallenge } from '../../events/challenge.ts';
import type { Step } from './checklist.ts';

/** A proof of control is no event: the owner is asked about it. */
export function challengeSteps(payload: JsonObject): Step[] {
  const read = readChallenge(payload);
  const wrong = typeof read === 'string' ? { code: 'challenge_refused', detail: read } : undefined;
  return [
    { id: '14', title: 'the body is strict JSON', verdict: 'pass' },
    {
      id: 'envelope',
      title: 'the body is a proof of control',
      verdict: wrong ? 'fail' : 'open',
      ...(wrong ?? { detail: 'onChallenge is asked, where seller_agent_url is the agentUrl of the sender' }),
    },
  ];
}
