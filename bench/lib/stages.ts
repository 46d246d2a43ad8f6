import { boundLogger, deliveryId, finishOutcome, type ReadyContext } from '../../src/for-tests.ts';
import { checkSignatureFields, matchingHash, readSignatureFields } from '../../src/auth/for-tests.ts';
import { parseStrictObject } from '../../src/codec/for-tests.ts';
import {
  acceptRequest,
  admit,
  claimOf,
  dispatch,
  guard,
  readFrom,
  started,
  type WonDelivery,
} from '../../src/stages/for-tests.ts';
import type { AcceptRequest } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { PartName } from './breakdown.ts';
import type { Wire } from './deliveries.ts';
import type { Contestant } from './measure.ts';
import { baseOf, deliveryOf, keyOf, passed, walk, type WalkContext, type Walk } from './walk.ts';

/** Gives something, or undefined where the part did not do what it should. */
type Step = (walk: Walk) => unknown;

/** Up to check 11: a function of headers, keys and clock. */
function signatureSteps(context: WalkContext): Readonly<Partial<Record<PartName, Step>>> {
  const { parts, auth } = context;
  const { hashes, protocols } = parts;
  return {
    'headers, method, content type': (one) => passed(guard(deliveryOf(one), parts), 'guarded'),
    'signature fields: parse': ({ delivery }) => passed(readSignatureFields(delivery.headers), 'parsed'),
    'parameters, window, components': ({ fields, delivery }) =>
      passed(checkSignatureFields(fields, delivery.headers, protocols, Date.now()), 'checked'),
    'signature base and host': ({ selected, checked }) => baseOf(selected, checked, context),
    'key: find, purpose, revocation': ({ selected, checked }) => keyOf(selected, checked, context),
    verification: ({ key, base, checked }) =>
      auth.engine.verify(key, base, checked.signature) === true || undefined,
    'SHA-256 of the body': ({ checked, body }) => matchingHash(checked.digest, hashes.sha256Hex(body)),
  };
}

/** Behind it, without the store. */
function bodySteps({ parts }: WalkContext): Readonly<Partial<Record<PartName | 'strict' | 'reading', Step>>> {
  const { hashes } = parts;
  // As the strict parser has it.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return {
    'decode and JSON.parse': ({ body }) => JSON.parse(decoder.decode(body)) as unknown,
    strict: ({ body }) => parseStrictObject(body).ok || undefined,
    reading: ({ authentic: { identity }, body }) =>
      readFrom(identity.sender, body, parts, { hash: identity.bodyHash }).ok || undefined,
    'claim, delivery id, request to the store': ({ authentic: { identity }, body, reading }) => {
      const { sender, bodyHash } = identity;
      const claim = claimOf(
        body,
        reading.reading,
        { edition: sender.edition, hashes, registrations: undefined },
        bodyHash,
      );
      deliveryId(hashes, sender.agentUrl, claim.key);
      return acceptRequest(reading, parts);
    },
    'outcome and answer': ({ authentic: { identity }, reading: { deliveryId: id, reading } }) => {
      const { event } = reading;
      const trace = { who: { sender: identity.sender.agentUrl, deliveryId: id }, event };
      return finishOutcome({ kind: 'accepted', state: 'applied', event, changed: false }, trace, parts);
    },
  };
}

/** One part over all deliveries; nothing before it is counted. */
function alone(name: string, walks: readonly Walk[], step: Step): Contestant {
  return {
    name,
    run(count) {
      for (let at = 0; at < count; at += 1) {
        if (step(walks[at] as Walk) === undefined) throw new Error(`${name} gave nothing`);
      }
    },
  };
}

function accepting(walks: readonly Walk[], { parts }: WalkContext): Contestant {
  let store = memoryStore();
  let requests: readonly AcceptRequest[] = [];
  return {
    name: 'accept (memory store)' satisfies PartName,
    setUp(count) {
      store = memoryStore();
      requests = walks.slice(0, count).map(({ reading }) => acceptRequest(reading, parts));
    },
    async run() {
      for (const request of requests) passed(await store.accept(request), 'won');
    },
  };
}

/** A part behind the accept: a new store each time, with all events leased before anything is counted. */
function behindAccept(
  name: PartName,
  walks: readonly Walk[],
  { parts }: WalkContext,
  run: (won: WonDelivery, parts: ReadyContext) => Promise<void>,
): Contestant {
  let context = parts;
  let all: WonDelivery[] = [];
  return {
    name,
    async setUp(count) {
      context = { ...parts, store: memoryStore() };
      all = [];
      for (const { reading } of walks.slice(0, count)) {
        all.push(passed(await admit(reading, context, undefined), 'won'));
      }
    },
    async run() {
      for (const won of all) await run(won, context);
    },
  };
}

async function dispatchOne(won: WonDelivery, parts: ReadyContext): Promise<void> {
  const run = started(won, parts.running);
  if (!run) throw new Error('the event runs already');
  const { stop, end } = await dispatch(run, parts, boundLogger(parts.logger, {}));
  stop();
  passed(end, 'returned');
}

async function completeOne({ origin, key, lease }: WonDelivery, parts: ReadyContext): Promise<void> {
  const { retentionMs } = parts.config;
  const done = await parts.store.complete({ sender: origin.agentUrl, key, owner: lease.owner, retentionMs });
  if (done !== 'done') throw new Error(`the completion is ${done}`);
}

/**
 * Each part of a delivery alone, by the library's own functions: over all deliveries, each with what the parts before
 * it gave. `strict` is the strict parser with its `JSON.parse`, `reading` the event with its strict parser.
 */
export async function stageContestants(
  deliveries: readonly Wire[],
  context: WalkContext,
): Promise<Contestant[]> {
  const walks: Walk[] = [];
  for (const delivery of deliveries) walks.push(await walk(delivery, context));
  const steps = { ...signatureSteps(context), ...bodySteps(context) };
  return [
    ...Object.entries(steps).map(([name, step]) => alone(name, walks, step)),
    accepting(walks, context),
    behindAccept('dispatch to the handler', walks, context, dispatchOne),
    behindAccept('completion (memory store)', walks, context, completeOne),
  ];
}
