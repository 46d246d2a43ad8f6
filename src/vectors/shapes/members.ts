import { decodeBase64 } from '../../codec/base64.ts';
import type { Jwk } from '../../crypto/engine.ts';
import type { HeadersInput } from '../../delivery.ts';
import { headerFields } from '../../delivery.ts';
import type { EditionName } from '../../edition.ts';
import { editionFor } from '../../edition.ts';
import { type JsonObject, isJsonObject, present } from '../../codec/members.ts';
import { VectorError } from '../errors.ts';
import type { Setup, VectorRequest, VectorSender } from '../subject.ts';
import { onlyMembers } from './known.ts';

export { type JsonObject, isJsonObject, present } from '../../codec/members.ts';

/** What a file is read with. */
export interface ShapeContext {
  /** For messages and results. */
  readonly file: string;
  /** The case's name where the file itself has none. */
  readonly stem: string;
  readonly protocol: string;
  /** For vectors that name none. */
  readonly edition: EditionName;
  /** The `keys.json` beside the file; empty where there is none. */
  readonly keys: () => readonly Jwk[];
  /** Translates an expected code of the file. */
  readonly codeOf: (code: string) => string;
  /** Members that the caller declares to be comments. */
  readonly ignore?: ReadonlySet<string>;
  /** Is told of each member that is not looked at and may be none. */
  readonly passOver?: (member: string, why: string) => void;
}

/** Where a request of no URL of its own goes, and who sends it. */
export const DEFAULT_URL = 'https://buyer.example/webhooks/proto';
export const DEFAULT_AGENT = 'https://seller.example/mcp';
/** Unix ms, where nothing depends on the time. */
export const DEFAULT_NOW_MS = 1_790_000_000_000;

/** @throws VectorError unless the member has the type: `expected` says in words which. */
export function fail(name: string, expected: string): never {
  throw new VectorError(`${name} is missing or wrong: expected ${expected}`);
}

export function textOf(json: JsonObject, name: string): string {
  const value = present(json, name);
  return typeof value === 'string' ? value : fail(name, 'a string');
}

export function optionalText(json: JsonObject, name: string): string | undefined {
  return present(json, name) === undefined ? undefined : textOf(json, name);
}

export function objectOf(json: JsonObject, name: string): JsonObject {
  const value = present(json, name);
  return isJsonObject(value) ? value : fail(name, 'an object');
}

export function optionalObject(json: JsonObject, name: string): JsonObject {
  return present(json, name) === undefined ? {} : objectOf(json, name);
}

/** The objects of an array; none where the member is absent. */
export function objectsOf(json: JsonObject, name: string): readonly JsonObject[] {
  const value = present(json, name) ?? [];
  if (!Array.isArray(value) || !value.every(isJsonObject)) return fail(name, 'an array of objects');
  return value;
}

export function textsOf(json: JsonObject, name: string): readonly string[] | undefined {
  const value = present(json, name);
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    return fail(name, 'an array of strings');
  }
  return value;
}

export function optionalNumber(json: JsonObject, name: string): number | undefined {
  const value = present(json, name);
  if (value === undefined) return undefined;
  return typeof value === 'number' && Number.isFinite(value) ? value : fail(name, 'a number');
}

export function optionalFlag(json: JsonObject, name: string): boolean | undefined {
  const value = present(json, name);
  if (value === undefined) return undefined;
  return typeof value === 'boolean' ? value : fail(name, 'true or false');
}

/** A time in Unix seconds, as Unix ms. */
export function timeOf(json: JsonObject, name: string): number {
  const seconds = optionalNumber(json, name);
  return seconds === undefined ? fail(name, 'a number of Unix seconds') : Math.round(seconds * 1000);
}

/** A body as text (`<name>`) or as `<name>_base64`; none where both are absent. */
export function bodyOf(json: JsonObject, name: string): Uint8Array {
  const base64 = optionalText(json, `${name}_base64`);
  if (base64 === undefined) return new TextEncoder().encode(optionalText(json, name) ?? '');
  return decodeBase64(base64) ?? fail(`${name}_base64`, 'base64');
}

/** Headers as an object of strings or arrays of strings, or as pairs. */
function headersOf(json: JsonObject): HeadersInput {
  const headers = present(json, 'headers') ?? {};
  try {
    headerFields(headers);
  } catch {
    return fail('request.headers', 'an object of strings or arrays of strings, or [name, value] pairs');
  }
  return headers as HeadersInput;
}

/**
 * The member that is there of several names for one thing.
 * @throws VectorError where two are, and differ.
 */
export function aliasOf(json: JsonObject, where: string, names: readonly string[]): string | undefined {
  const [first, ...others] = names.filter((name) => present(json, name) !== undefined);
  for (const other of others) {
    if (first !== undefined && json[other] !== json[first]) {
      throw new VectorError(`${where}: ${first} and ${other} differ`);
    }
  }
  return first;
}

const REQUEST = ['method', 'url', 'headers', 'body', 'body_base64', 'raw_body', 'raw_body_base64'] as const;

export function requestOf(json: JsonObject, where: string, context: ShapeContext): VectorRequest {
  onlyMembers(json, where, REQUEST, context);
  const raw = aliasOf(json, where, ['raw_body', 'raw_body_base64']) !== undefined;
  return {
    method: (optionalText(json, 'method') ?? 'POST').toUpperCase(),
    url: textOf(json, 'url'),
    headers: headersOf(json),
    body: bodyOf(json, raw ? 'raw_body' : 'body'),
  };
}

export function editionOf(json: JsonObject, context: ShapeContext): EditionName {
  const edition = optionalText(json, 'edition');
  return edition === undefined ? context.edition : editionFor(edition as EditionName).name;
}

/** A setup in which nothing is out of the ordinary. */
export function plainSetup(
  context: ShapeContext,
  setup: Pick<Setup, 'url' | 'nowMs'> & { readonly senders: readonly VectorSender[] },
): Setup {
  return {
    protocol: context.protocol,
    usedNonces: [],
    fullKids: [],
    revokedKids: [],
    limits: {},
    ...setup,
  };
}
