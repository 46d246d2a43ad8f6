import { bareContestant, oneThread } from '../lib/contestants.ts';
import { makeKey, prepare, sign, type Signing, type Wire } from '../lib/deliveries.ts';
import {
  alternate,
  atMost,
  micros,
  ownClock,
  plan,
  ratio,
  type Contestant,
  type Figure,
  type Figures,
} from '../lib/measure.ts';
import type { Receiver } from '../../dist/index.js';

interface Case {
  readonly code: string;
  readonly signing: Signing;
  /** A stranger signs, under the id of the seller's key. */
  readonly forged?: true;
}

const HOUR_MS = 3_600_000;

/** What is refused before any cryptography. */
const CASES: Readonly<Record<string, Case>> = {
  'bad content type': {
    code: 'unsupported_media_type',
    signing: { headers: { 'Content-Type': 'text/plain' } },
  },
  'bad tag': {
    code: 'webhook_signature_tag_invalid',
    signing: { params: { tag: 'other/webhook-signing/v1' } },
  },
  'bad window': {
    code: 'webhook_signature_window_invalid',
    signing: { now: () => Date.now() - HOUR_MS },
    // Three authentic ones in a row that are off by the same amount say that the receiver's own clock is wrong.
    forged: true,
  },
  'unknown key': { code: 'webhook_signature_key_unknown', signing: { params: { keyid: 'never-published' } } },
};

function refused(name: string, receiver: Receiver, all: readonly Wire[], code: string): Contestant {
  return {
    name,
    async run(count) {
      for (let at = 0; at < count; at += 1) {
        const { body, rawHeaders } = all[at] as Wire;
        const outcome = await receiver.verifyAndDispatch(body, rawHeaders);
        if (outcome.code !== code) throw new Error(`${name}: ${outcome.kind} ${outcome.code}, not ${code}`);
      }
    },
  };
}

/** What a refusal costs that needs no verification, over one bare verification: Ed25519, 1 KB. */
export async function measure(): Promise<Figures> {
  const planned = plan(1500);
  const { count } = planned;
  const key = await makeKey('ed25519');
  const stranger = await makeKey('ed25519');
  const receiver = oneThread(key);
  await receiver.ready();
  const good = await prepare(count, key, 'ed25519', 1024);
  const contestants: Contestant[] = [bareContestant('bare', key, 'ed25519', good)];
  for (const [name, { code, signing, forged }] of Object.entries(CASES)) {
    const all: Wire[] = [];
    for (let at = 0; at < count; at += 1) all.push(await sign(at, forged ? stranger : key, 1024, signing));
    contestants.push(refused(name, receiver, all, code));
  }
  const times = await alternate(contestants, planned, ownClock);
  await receiver.stop();
  const results: Record<string, Figure> = { 'bare verify, µs': micros(times, 'bare') };
  for (const name of Object.keys(CASES)) {
    results[`${name} refused ÷ bare verify`] = atMost(ratio(times, name, 'bare'), 0.25);
  }
  return results;
}
