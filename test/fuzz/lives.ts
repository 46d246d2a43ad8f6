import { Fault, type ReceiverOptions } from '../../src/index.ts';
import type { Random } from '../reliability/processes/random.ts';
import { randomOf } from '../reliability/processes/random.ts';
import type { WireRequest } from '../adapters/contract/wire.ts';
import { NOW, type Signer } from '../auth/rfc9421/support.ts';
import type { Code } from './codes.ts';
import { draftAt, payloadsOf, randomId, requestOf } from './draft.ts';
import { KEYLESS, LIVING_SENDERS, SIGNERS, STALE } from './sellers.ts';
import { fuzzOptions, type OpenWay, type FuzzedAnswer, type Way } from './ways.ts';
import { type Gate, gate } from '../support/gate.ts';

/*
 * Codes that depend on what came before: a receiver with small caps lives for a few dozen deliveries, in each of some
 * ways, which have to say the same of each delivery.
 */

type Payload = Readonly<Record<string, unknown>>;
type Down = 'store_unavailable' | 'not_durable' | undefined;

/** One receiver of one way, and what it can be made to do. */
interface Living {
  readonly way: OpenWay;
  readonly circumstances: Circumstances;
}

interface Circumstances {
  down: Down;
  /** Told once a handler holds its event; it goes on once `released`. */
  begun: Gate<void>;
  released: Gate<void>;
}

interface Caps {
  readonly edition: '3.0' | '3.2';
  readonly maxRecordsPerSender: number;
  readonly maxNoncesPerKey: number;
}

const randomCaps = (random: Random): Caps => ({
  edition: random.pick(['3.0', '3.2', '3.2']),
  maxRecordsPerSender: 8 + random.below(24),
  maxNoncesPerKey: 6 + random.below(12),
});

function optionsOf(caps: Caps, circumstances: Circumstances): Partial<ReceiverOptions> {
  const { store } = fuzzOptions('signature');
  return {
    ...caps,
    senders: LIVING_SENDERS,
    store: {
      ...store,
      clock: async () => (NOW + AHEAD_S) * 1000,
      accept: async (request) => {
        const { down } = circumstances;
        if (down) throw new Fault(down, 'the fuzzer took the store away');
        return store.accept(request);
      },
    },
    handlers: {
      other: async ({ envelope }) => {
        const { message } = envelope;
        if (message === 'fail') throw new Error('the fuzzer wants it to fail');
        if (message !== 'hold') return;
        circumstances.begun.open();
        await circumstances.released.opened;
      },
    },
  };
}

function sign(payload: Payload, random: Random, signer: Signer = random.pick(SIGNERS)): WireRequest {
  const draft = draftAt('signature', random);
  draft.payload = { ...payload };
  draft.signer = signer;
  return requestOf(draft);
}

/** Of a seller whose clock is the store's, and not the receiver's. */
function signAhead(payload: Payload, random: Random): WireRequest {
  const draft = draftAt('signature', random);
  draft.payload = { ...payload };
  Object.assign(draft.parameters, { created: String(NOW + AHEAD_S), expires: String(NOW + AHEAD_S + 300) });
  return requestOf(draft);
}

/** What was delivered before, to come back to. */
interface Past {
  readonly payloads: Payload[];
  readonly requests: { readonly request: WireRequest; readonly signer: Signer }[];
}

/** Deliveries of one step: one after the other, but for those that come while the first is held. */
interface Step {
  readonly requests: readonly WireRequest[];
  /** What each may be answered, beside the codes of the caps. */
  readonly expected: readonly (Code | 'taken')[];
  readonly down?: Down;
  readonly held?: true;
  readonly stopped?: true;
}

/** How far the store's clock is ahead of the receiver's. Seconds. */
const AHEAD_S = 400;

const CAPS: readonly Code[] = ['webhook_signature_rate_abuse', 'sender_over_limit'];

/** Of one sender, so that its keys and tasks are one keyspace's. */
const OWN = SIGNERS.slice(0, 2);

function fresh(past: Past, random: Random, members: Payload = {}): WireRequest {
  const payload = { ...payloadsOf(random).tool(random.pick(['working', 'completed'])), ...members };
  const signer = random.pick(OWN);
  const request = sign(payload, random, signer);
  past.payloads.push(payload);
  past.requests.push({ request, signer });
  return request;
}

type MakeStep = (past: Past, random: Random) => Step;

const STEPS: readonly MakeStep[] = [
  (past, random) => ({ requests: [fresh(past, random)], expected: ['taken'] }),
  (past, random) => ({
    requests: [fresh(past, random, { message: 'fail' })],
    expected: ['handler_failed'],
  }),
  (past, random) => {
    const request = fresh(past, random);
    return { requests: [request, request], expected: ['taken', 'webhook_signature_replayed'] };
  },
  (past, random) => {
    const earlier = past.requests.length === 0 ? fresh(past, random) : random.pick(past.requests).request;
    // Bytes that come again within the back-off of their failed handler: `in_flight`.
    const expected: Step['expected'] = ['taken', 'handler_failed', 'in_flight', 'webhook_signature_replayed'];
    return { requests: [earlier], expected };
  },
  (past, random) => {
    const payload =
      past.payloads.length === 0 ? payloadsOf(random).tool('working') : random.pick(past.payloads);
    return { requests: [sign(payload, random, random.pick(OWN))], expected: ['taken', 'handler_failed'] };
  },
  (_, random) => {
    const payload: Payload = { ...payloadsOf(random).tool('working'), idempotency_key: randomId(random) };
    const changed = { ...payload, result: { percentage: 41 } };
    return {
      requests: [payload, changed].map((each) => sign(each, random, random.pick(OWN))),
      expected: ['taken', 'payload_changed'],
    };
  },
  (_, random) => {
    const task = { task_id: randomId(random), timestamp: '2026-01-01T00:00:00Z' };
    const [sold, unsold] = (['completed', 'failed'] as const).map((status) => ({
      ...payloadsOf(random).tool(status),
      ...task,
      idempotency_key: randomId(random),
    }));
    return {
      requests: [sold, unsold].map((each) => sign({ ...each }, random, random.pick(OWN))),
      expected: ['taken', 'task_already_final'],
    };
  },
  (_, random) => {
    const held: Payload = { ...payloadsOf(random).tool('working'), message: 'hold' };
    const other = { ...payloadsOf(random).tool('working'), task_id: held['task_id'] };
    const requests = [held, held, other].map((each) => sign(each, random, random.pick(OWN)));
    return { requests, held: true, expected: ['taken', 'in_flight', 'task_busy'] };
  },
  (past, random) => {
    const down = random.pick<Down>(['store_unavailable', 'not_durable']) ?? 'store_unavailable';
    return { requests: [fresh(past, random)], down, expected: [down] };
  },
  (_, random) => ({
    requests: [sign(payloadsOf(random).tool('working'), random, STALE)],
    expected: ['webhook_signature_revocation_stale', 'keys_unavailable'],
  }),
  (_, random) => ({
    requests: [sign(payloadsOf(random).tool('working'), random, KEYLESS)],
    expected: ['keys_unavailable'],
  }),
  // Once a sender and second it is looked whose clock is wrong, and what was found holds until a window does.
  (_, random) => ({
    requests: [signAhead(payloadsOf(random).tool('working'), random)],
    expected: ['clock_skew', 'webhook_signature_window_invalid'],
  }),
];

const STOP: MakeStep = (past, random) => ({
  requests: [fresh(past, random)],
  stopped: true,
  expected: ['shutting_down'],
});

const STEPS_A_LIFE = 24;

async function inOrder(requests: readonly WireRequest[], way: OpenWay): Promise<FuzzedAnswer[]> {
  const verdicts: FuzzedAnswer[] = [];
  // oxlint-disable-next-line no-await-in-loop -- each depends on what the one before left
  for (const request of requests) verdicts.push(await way.deliver(request));
  return verdicts;
}

/** The first is held by its handler while the others come, unless it is answered without one. */
async function whileHeld(
  [first, ...others]: readonly WireRequest[],
  living: Living,
): Promise<FuzzedAnswer[]> {
  const { way, circumstances } = living;
  if (!first) return [];
  circumstances.begun = gate();
  circumstances.released = gate();
  const held = way.deliver(first);
  // One that no handler takes must not hold the next.
  await Promise.race([held.then(() => circumstances.released.open()), circumstances.begun.opened]);
  const between = await inOrder(others, way);
  circumstances.released.open();
  return [await held, ...between];
}

async function take(step: Step, living: Living): Promise<FuzzedAnswer[]> {
  if (step.stopped) await living.way.stop();
  living.circumstances.down = step.down;
  return step.held ? whileHeld(step.requests, living) : inOrder(step.requests, living.way);
}

async function born(way: Way, caps: Caps): Promise<Living> {
  const circumstances: Circumstances = { down: undefined, begun: gate(), released: gate() };
  return { way: await way.open('signature', optionsOf(caps, circumstances)), circumstances };
}

/** One delivery of a life: by each way, and what it may have come to. */
export interface Lived {
  readonly what: string;
  readonly answers: ReadonlyMap<string, FuzzedAnswer>;
  readonly expected: ReadonlySet<string>;
}

/** A whole life, the same for the same seed and number. */
export async function live(seed: number, number: number, ways: readonly Way[]): Promise<readonly Lived[]> {
  const random = randomOf(Math.imul(seed, 0xc2b2ae35) ^ Math.imul(number, 0x27d4eb2f));
  const caps = randomCaps(random);
  const all = await Promise.all(ways.map((way) => born(way, caps)));
  const past: Past = { payloads: [], requests: [] };
  const lived: Lived[] = [];
  for (let at = 0; at <= STEPS_A_LIFE; at += 1) {
    const step = (at === STEPS_A_LIFE ? STOP : random.pick(STEPS))(past, random);
    // oxlint-disable-next-line no-await-in-loop -- a life is lived in order
    const verdicts = await Promise.all(all.map((living) => take(step, living)));
    for (const [index] of step.requests.entries()) {
      const answers = ways.map(({ name }, way) => [name, verdicts[way]?.[index]] as const);
      lived.push({
        what: `life ${number}, step ${at}, delivery ${index}, ${JSON.stringify(caps)}`,
        answers: new Map(answers.filter((pair): pair is [string, FuzzedAnswer] => pair[1] !== undefined)),
        expected: new Set([...step.expected, ...CAPS]),
      });
    }
  }
  await Promise.all(all.map(({ way }) => way[Symbol.asyncDispose]()));
  return lived;
}
