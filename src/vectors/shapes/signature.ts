import type { DeliveryCase, VectorCase } from '../case.ts';
import { readEach } from './each.ts';
import { outcomeExpectation } from './expectation.ts';
import { mostMembers } from './known.ts';
import { type JsonObject, type ShapeContext, aliasOf, objectOf, objectsOf } from './members.ts';
import { optionalText, plainSetup, requestOf, timeOf } from './members.ts';
import { harnessState, SENDER, sendersOf } from './senders.ts';

const OUTCOME = ['expected_outcome', 'expected'] as const;
/** What vectors of one file may have in common. */
const SHARED = [...SENDER, 'senders', 'reference_now', 'test_harness_state'] as const;
const VECTOR = [...SHARED, ...OUTCOME, 'request', 'expected_signature_base'] as const;

/** What the folder says of the outcome. */
function placedIn(file: string): boolean | undefined {
  const place = /(?:^|[/\\])(positive|negative)[/\\][^/\\]*$/.exec(file)?.[1];
  return place === undefined ? undefined : place === 'positive';
}

function signatureCase(json: JsonObject, name: string, context: ShapeContext): DeliveryCase {
  mostMembers(json, '', VECTOR, context);
  const { file } = context;
  const request = requestOf(objectOf(json, 'request'), 'request', context);
  const nowMs = timeOf(json, 'reference_now');
  const outcome = aliasOf(json, name, OUTCOME) ?? OUTCOME[0];
  const expected = outcomeExpectation(json[outcome] ?? {}, outcome, placedIn(file), context);
  const senders = sendersOf(json, context, expected.authentic === true ? 'mistake' : 'not published');
  const setup = {
    ...plainSetup(context, { url: request.url, nowMs, senders }),
    ...harnessState(json, context),
  };
  const signatureBase = optionalText(json, 'expected_signature_base');
  return {
    kind: 'signature',
    name,
    file,
    setup,
    steps: [{ request, nowMs, handlerFails: false, expected }],
    // Published for a request that has no base, it is empty.
    ...(signatureBase !== undefined && signatureBase !== '' && { signatureBase }),
  };
}

/** One signature vector a file. */
export function readSignature(json: JsonObject, context: ShapeContext): readonly DeliveryCase[] {
  return [signatureCase(json, optionalText(json, 'name') ?? context.stem, context)];
}

/** Members of a file of several. */
export const SIGNATURES: readonly string[] = [...SHARED, 'vectors'];

/** `{vectors: [{id, request, …}]}`; what they have in common may stand beside `vectors`. */
export function readSignatures(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  const shared = Object.fromEntries(
    SHARED.filter((name) => Object.hasOwn(json, name)).map((name) => [name, json[name]]),
  );
  return readEach(objectsOf(json, 'vectors'), 'vector', context, (vector, name) =>
    signatureCase({ ...shared, ...vector }, name, context),
  );
}
