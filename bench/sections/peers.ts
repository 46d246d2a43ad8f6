import { verify as verifyBotAuth } from 'web-bot-auth';
import { pipelineContestant, oneThread, withSodium } from '../lib/contestants.ts';
import { makeKey, prepare, PUBLIC_URL, type Prepared } from '../lib/deliveries.ts';
import { checkFor, peerVerifier } from '../lib/peer.ts';
import {
  alternate,
  atMost,
  figure,
  IN_SERVICE,
  micros,
  operations,
  ownClock,
  plan,
  ratio,
  type Contestant,
  type Figure,
  type Figures,
} from '../lib/measure.ts';

function oneByOne(
  name: string,
  all: readonly Prepared[],
  accepts: (one: Prepared) => Promise<boolean | null>,
): Contestant {
  return {
    name,
    async run(count) {
      for (let at = 0; at < count; at += 1) {
        if (!(await accepts(all[at] as Prepared))) throw new Error(`${name} refused a good signature`);
      }
    },
  };
}

/** The whole pipeline over what two peers take to verify the signature alone: no digest, no body, no replays. */
export async function measure(): Promise<Figures> {
  const results: Record<string, Figure> = {};
  for (const alg of ['ed25519', 'ecdsa-p256-sha256'] as const) {
    const pair = await makeKey(alg);
    const planned = plan(3000, 11, IN_SERVICE);
    // Standard base64: the peers read no other alphabet. The second one takes its own tag only.
    const all = await prepare(operations(planned), pair, alg, 1024, { alphabet: 'base64' });
    const tagged = await prepare(planned.count, pair, alg, 1024, {
      alphabet: 'base64',
      params: { tag: 'web-bot-auth' },
    });
    const check = checkFor(pair.publicJwk, alg);
    const verifyByPeer = peerVerifier(pair.publicJwk, alg);
    const messages = new Map(tagged.map((one) => [one, new Headers(one.headers)]));
    const times = await alternate(
      [
        pipelineContestant('pipeline', () => oneThread(pair), all),
        ...(alg === 'ed25519' ? [pipelineContestant('sodium', () => withSodium(pair), all)] : []),
        oneByOne('http-message-signatures', all, ({ headers }) => verifyByPeer(headers)),
        oneByOne('web-bot-auth', tagged, (one) =>
          verifyBotAuth(
            { method: 'POST', url: PUBLIC_URL, headers: messages.get(one) as Headers },
            (data, signature) => check(Buffer.from(data), signature),
          ),
        ),
      ],
      planned,
      ownClock,
    );
    const [one, other] = ['http-message-signatures', 'web-bot-auth'].map((name) => times.get(name) ?? []);
    const better = (one ?? []).map((time, at) => Math.min(time, other?.[at] ?? time));
    const overBetter = (name: string): Figure =>
      figure((times.get(name) ?? []).map((time, at) => time / (better[at] ?? Number.NaN)));
    results[`${alg}: whole pipeline, µs`] = micros(times, 'pipeline');
    results[`${alg}: http-message-signatures verifying alone, µs`] = micros(times, 'http-message-signatures');
    results[`${alg}: web-bot-auth verifying alone, µs`] = micros(times, 'web-bot-auth');
    results[`${alg}: whole pipeline ÷ the better peer verifying alone`] = atMost(overBetter('pipeline'), 0.9);
    results[`${alg}: whole pipeline ÷ http-message-signatures`] = ratio(
      times,
      'pipeline',
      'http-message-signatures',
    );
    results[`${alg}: whole pipeline ÷ web-bot-auth`] = ratio(times, 'pipeline', 'web-bot-auth');
    if (!times.has('sodium')) continue;
    results[`${alg}: whole pipeline with sodium-native ÷ the better peer verifying alone`] =
      overBetter('sodium');
  }
  return results;
}
