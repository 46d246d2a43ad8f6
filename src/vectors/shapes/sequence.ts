import type { DeliveryCase, Step, VectorCase } from '../case.ts';
import { readEach } from './each.ts';
import { VectorError } from '../errors.ts';
import type { Setup, VectorLimits } from '../subject.ts';
import { someExpectation } from './expectation.ts';
import { mostMembers, onlyMembers } from './known.ts';
import { type JsonObject, type ShapeContext, objectOf, objectsOf, optionalNumber } from './members.ts';
import { optionalObject, optionalText, plainSetup, requestOf, textsOf, timeOf } from './members.ts';
import { harnessState, SENDER, sendersOf } from './senders.ts';

const LIMITS: Readonly<Record<keyof VectorLimits, string>> = {
  maxNoncesPerKey: 'max_nonces_per_key',
  maxRecordsPerSender: 'max_records_per_sender',
  maxBodyBytes: 'max_body_bytes',
};

/** `receiver`: how it is configured. */
function receiverOf(
  json: JsonObject,
  context: ShapeContext,
): Pick<Setup, 'limits' | 'contentTypes' | 'challenge'> {
  const given = optionalObject(json, 'receiver');
  onlyMembers(given, 'receiver', [...Object.values(LIMITS), 'content_types', 'challenge'], context);
  const limits = Object.entries(LIMITS).map(([name, member]) => [name, optionalNumber(given, member)]);
  const contentTypes = textsOf(given, 'content_types');
  const challenge = optionalText(given, 'challenge');
  if (challenge !== undefined && challenge !== 'accept' && challenge !== 'refuse') {
    throw new VectorError('receiver.challenge is wrong: expected "accept" or "refuse"');
  }
  return {
    limits: Object.fromEntries(limits.filter(([, value]) => value !== undefined)) as VectorLimits,
    ...(contentTypes && { contentTypes }),
    ...(challenge !== undefined && { challenge }),
  };
}

const STEP = ['at', 'request', 'handler', 'expected'] as const;

/** `at`: seconds after `reference_now`. */
function stepOf(json: JsonObject, index: number, startMs: number, context: ShapeContext): Step {
  const where = `steps[${index}]`;
  onlyMembers(json, where, STEP, context);
  const handler = optionalText(json, 'handler') ?? 'succeeds';
  if (handler !== 'succeeds' && handler !== 'fails') {
    throw new VectorError(`${where}.handler is wrong: expected "succeeds" or "fails"`);
  }
  return {
    name: optionalText(json, 'name') ?? `step ${index + 1}`,
    request: requestOf(objectOf(json, 'request'), `${where}.request`, context),
    nowMs: startMs + (optionalNumber(json, 'at') ?? 0) * 1000,
    handlerFails: handler === 'fails',
    expected: someExpectation(json['expected'], `${where}.expected`, context),
  };
}

const SEQUENCE = [...SENDER, 'senders', 'reference_now', 'receiver', 'test_harness_state', 'steps'] as const;

function sequenceOf(json: JsonObject, name: string, context: ShapeContext): DeliveryCase {
  mostMembers(json, '', SEQUENCE, context);
  const nowMs = timeOf(json, 'reference_now');
  const steps = objectsOf(json, 'steps').map((step, at) => stepOf(step, at, nowMs, context));
  const [first] = steps;
  if (!first) throw new VectorError('steps is empty: expected at least one');
  const setup = plainSetup(context, { url: first.request.url, nowMs, senders: sendersOf(json, context) });
  return {
    kind: 'sequence',
    name,
    file: context.file,
    setup: { ...setup, ...harnessState(json, context), ...receiverOf(json, context) },
    steps,
  };
}

/** `{sequences: [{name, reference_now, edition?, receiver?, jwks_ref?, steps: [{at, request, handler?, expected}]}]}`. */
export function readSequences(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readEach(objectsOf(json, 'sequences'), 'sequence', context, (sequence, name) =>
    sequenceOf(sequence, name, context),
  );
}
