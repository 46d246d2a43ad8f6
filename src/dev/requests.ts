// Checks request bodies of the API, and adds defaults (dev.md §4.2). The API calls it. Unknown members are refused with
// ApiError, because a misspelt member would silently have no effect.
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { STATUSES } from '../cli/send/send-verb.ts';
import { REPORT_TYPES } from '../events/schemas.ts';
import { EDITION_NAMES } from '../shared/editions.ts';
import { MISTAKES } from '../testing/mistakes.ts';
import { SAMPLE_FAMILIES } from '../testing/payloads.ts';
import { ApiError, badRequest } from './api-error.ts';
import { canMake } from './choices.ts';
import { DEFAULT_EDITION } from './payloads.ts';
import { SCHEMES } from './sellers.ts';
import type {
  CaptureRequest,
  DevPayload,
  ResendRequest,
  ScenarioRequest,
  SendRequest,
  Told,
} from './wire.ts';

function only(members: JsonObject, known: readonly string[]): void {
  const unknown = Object.keys(members).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw badRequest(`${JSON.stringify(unknown)} is not a member. Expected ${known.join(', ')}.`);
}

/** Reads a member whose value is one of `names`. @throws ApiError for any other value */
function named<T extends string>(members: JsonObject, name: string, names: readonly T[]): T {
  const value = members[name];
  const found = names.find((known) => known === value);
  if (found !== undefined) return found;
  throw badRequest(`${name}: expected one of ${names.join(', ')}.`);
}

/** Reads a member whose value is one of `names`. Returns `fallback` if the member is absent. */
const namedOr = <T extends string>(members: JsonObject, name: string, names: readonly T[], fallback: T): T =>
  members[name] === undefined ? fallback : named(members, name, names);

function text(members: JsonObject, name: string): string {
  const value = members[name];
  if (typeof value === 'string') return value;
  throw badRequest(`${name}: expected text.`);
}

/** Reads a member that may be absent. Returns an object with this member alone, or an empty object. */
const optional = <K extends string, T>(
  members: JsonObject,
  name: K,
  read: (members: JsonObject, name: string) => T,
): { readonly [N in K]?: T } =>
  (members[name] === undefined ? {} : { [name]: read(members, name) }) as { readonly [N in K]?: T };

const KINDS = ['task', 'report', 'family', 'challenge', 'body'] as const;

const PAYLOADS: Readonly<Record<DevPayload['kind'], (members: JsonObject) => DevPayload>> = {
  task: (members) => {
    only(members, ['kind', 'transport', 'status', 'taskId']);
    return {
      kind: 'task',
      transport: named(members, 'transport', ['tool', 'agent']),
      status: named(members, 'status', STATUSES),
      ...optional(members, 'taskId', text),
    };
  },
  report: (members) => {
    only(members, ['kind', 'type']);
    return { kind: 'report', type: named(members, 'type', REPORT_TYPES) };
  },
  family: (members) => {
    only(members, ['kind', 'name']);
    return { kind: 'family', name: named(members, 'name', SAMPLE_FAMILIES) };
  },
  challenge: (members) => {
    only(members, ['kind']);
    return { kind: 'challenge' };
  },
  body: (members) => {
    only(members, ['kind', 'text']);
    return { kind: 'body', text: text(members, 'text') };
  },
};

function payloadIn(body: JsonObject): DevPayload {
  const { payload } = body;
  if (!isJsonObject(payload)) throw badRequest(`payload: expected an object with kind: ${KINDS.join(', ')}.`);
  return PAYLOADS[named(payload, 'kind', KINDS)](payload);
}

/** A checked `SendRequest` with all defaults. */
export type SendOrder = Omit<SendRequest, 'mistake'> &
  Required<Pick<SendRequest, 'scheme' | 'key' | 'edition'>> & { readonly mistake: string | undefined };

export function sendOrder(body: JsonObject): SendOrder {
  only(body, ['payload', 'scheme', 'key', 'edition', 'mistake']);
  const scheme = namedOr(body, 'scheme', SCHEMES, 'signature');
  const { mistake } = optional(body, 'mistake', text);
  if (mistake !== undefined && !Object.hasOwn(MISTAKES, mistake)) {
    throw new ApiError(
      'unknown_mistake',
      'mistake: not a name of the table. GET /api/state has all of them.',
    );
  }
  const payload = payloadIn(body);
  if (mistake !== undefined && !canMake(mistake, payload.kind === 'challenge' ? 'signature' : scheme)) {
    throw new ApiError(
      'mistake_needs_signature',
      `mistake: ${mistake} needs a signature, which the seller ${scheme} does not make. Expected one in the body, e.g. not-json.`,
    );
  }
  return {
    payload,
    scheme,
    key: namedOr(body, 'key', ['ed25519', 'p256'], 'ed25519'),
    edition: namedOr(body, 'edition', EDITION_NAMES, DEFAULT_EDITION),
    mistake,
  };
}

export function scenarioOrder(body: JsonObject): Required<ScenarioRequest> {
  only(body, ['scheme', 'edition']);
  return {
    scheme: namedOr(body, 'scheme', SCHEMES, 'signature'),
    edition: namedOr(body, 'edition', EDITION_NAMES, DEFAULT_EDITION),
  };
}

export function resendOrder(body: JsonObject): ResendRequest {
  only(body, ['how']);
  return { how: named(body, 'how', ['same', 'anew']) };
}

export function captureOrder(body: JsonObject): CaptureRequest {
  if (body['file'] !== undefined) {
    only(body, ['file']);
    return { file: text(body, 'file') };
  }
  only(body, ['text', 'keys']);
  return { text: text(body, 'text'), ...optional(body, 'keys', text) };
}

function number(members: JsonObject, name: string): number {
  const value = members[name];
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw badRequest(`${name}: expected a number.`);
}

const TOLD: Readonly<Record<Told['hook'], (members: JsonObject) => Told>> = {
  outcome: (members) => ({
    hook: 'outcome',
    kind: text(members, 'kind'),
    status: number(members, 'status'),
    ...optional(members, 'sender', text),
    ...optional(members, 'state', text),
    ...optional(members, 'code', text),
    ...optional(members, 'detail', text),
    ...optional(members, 'key', text),
    ...optional(members, 'deliveryId', text),
    ...(members['event'] !== undefined && { event: members['event'] }),
  }),
  refused: (members) => ({
    hook: 'refused',
    status: number(members, 'status'),
    code: text(members, 'code'),
    detail: text(members, 'detail'),
    ...optional(members, 'sender', text),
    ...optional(members, 'proof', text),
  }),
  handled: (members) => ({
    hook: 'handled',
    sender: text(members, 'sender'),
    key: text(members, 'key'),
    deliveryId: text(members, 'deliveryId'),
    state: text(members, 'state'),
    run: number(members, 'run'),
    durationMs: number(members, 'durationMs'),
    waitedMs: number(members, 'waitedMs'),
    ...optional(members, 'taskId', text),
    ...optional(members, 'status', text),
    ...optional(members, 'error', text),
  }),
  alarm: (members) => ({
    hook: 'alarm',
    code: text(members, 'code'),
    message: text(members, 'message'),
    ...optional(members, 'sender', text),
  }),
};

/**
 * Reads a report of the receiver's hooks. Unknown members are dropped, because `devHooks` of another version may send
 * more.
 */
export function toldOrder(body: JsonObject): Told {
  return TOLD[named(body, 'hook', ['outcome', 'refused', 'handled', 'alarm'])](body);
}
