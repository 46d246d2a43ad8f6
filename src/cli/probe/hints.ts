import type { ProbeResult } from './case.ts';
import type { Identity } from './identity.ts';

const HOW: Readonly<Record<Identity['how'], string>> = {
  pins: 'It has to have these keys as pins. Paste into the configuration of the receiver under test:',
  'agent-url':
    'It has to know this agent, and its brand.json has to lead to the public halves of these keys (proto-webhooks keys check):',
  'fake-seller':
    'It has to know this agent, whose brand.json is served here while the probe runs, and to allow loopback:',
};

/** Of everything that was sent with a good signature. */
const GOOD: readonly string[] = ['tool-completed', 'agent-completed', 'report'];

/** verification.md §5.19: failures are remembered at most so many ms. */
const REMEMBERED_MS = 60_000;

/**
 * Says what is missing where the receiver cannot have found the keys: every answer was 503, or it took every good
 * delivery for one by a key that nobody publishes.
 * @param waitedMs for which a receiver that remembers a failed fetch was waited for.
 */
export function hintOf(results: readonly ProbeResult[], identity: Identity, waitedMs: number): string[] {
  const sent = results.filter(({ answered }) => answered !== '-');
  const good = sent.filter(({ name }) => GOOD.includes(name));
  const faults = sent.filter(({ answered }) => answered.startsWith('503'));
  const unknown = good.length > 0 && good.every(({ answered }) => answered.endsWith('key_unknown'));
  const lost = good.length > 0 && good.every(({ answered }) => answered.startsWith('503'));
  if (!unknown && !lost) return [];
  const what = unknown
    ? 'Every good delivery was answered 401 webhook_signature_key_unknown: the receiver does not know these keys.'
    : `${faults.length === sent.length ? 'Every answer' : 'The answer to every good delivery'} was 503: most likely the receiver cannot find the keys (or its store is down; its log says which).`;
  const asked = identity.fetches?.();
  const fetched =
    asked === undefined
      ? []
      : [
          asked === 0
            ? `Nothing was asked for here: the receiver does not have this agentUrl, or not allowLoopback${waitedMs < REMEMBERED_MS ? ', or it remembers for up to 60 s that nothing was served here' : ''}.`
            : `Documents were asked for here ${asked} times.`,
        ];
  return [what, ...fetched, HOW[identity.how], identity.config];
}
