// Refuses a delivery by its method, media type, encoding or size, before any other check (verification.md §7.23 to
// §7.26).
// Called first for every delivery by `enter`. For a streamed body, `guardBody` is also called while its bytes arrive.
// `guardAgentPush` is called later, when the URL's senders are known.

import { quoted } from '../codec/printable.ts';
import type { Config } from '../config/resolve-options.ts';
import { fieldValue, type Head, type HeaderFields } from '../shared/delivery.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';

/** A delivery whose method, content type, encoding and size are acceptable. */
export interface Guarded {
  readonly kind: 'guarded';
  readonly delivery: Head;
}

export interface GuardContext {
  readonly config: Pick<Config, 'maxBodyBytes' | 'contentTypes'>;
}

/**
 * Media type with which client libraries of the agent transport send webhooks. It is accepted from senders that have a
 * header of their own for the token, instead of `Authorization` (verification.md §6.8).
 */
export const AGENT_PUSH = 'application/a2a+json';

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"';
/** Matches the media type without its parameters (RFC 9110 §8.3.1), which are matched afterwards, one by one. */
const MEDIA_TYPE = /^[^ \t;]*/;
/**
 * Matches one parameter of a media type; empty ones are allowed (RFC 9110 §5.6.6). A single expression for all
 * parameters could split white space in exponentially many ways, on a header that anybody can send.
 */
const PARAMETER = new RegExp(`^[ \\t]*;[ \\t]*(?:(${TOKEN})=(${TOKEN}|${QUOTED}))?`);

function contentTypeProblem(
  headers: HeaderFields,
  { contentTypes }: GuardContext['config'],
): string | undefined {
  const lines = headers.get('content-type');
  if (lines?.length !== 1) return `${lines?.length ?? 0} Content-Type lines`;
  return mediaTypeProblem(lines[0] ?? '', contentTypes);
}

/** Returns the value of a parameter: a token unchanged, or a quoted string without its quotes and escapes. */
function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value;
}

/** Returns type and subtype of a `Content-Type`, in lower case. Empty if there are none. */
export function mediaName(type: string): string {
  return (MEDIA_TYPE.exec(type)?.[0] ?? '').toLowerCase();
}

function mediaTypeProblem(type: string, contentTypes: ReadonlySet<string>): string | undefined {
  if (type === 'application/json') return undefined;
  const name = mediaName(type);
  const isTaken = name === 'application/json' || name === AGENT_PUSH || contentTypes.has(name);
  return isTaken ? parametersProblem(type.slice(name.length)) : notTaken(type);
}

const notTaken = (type: string): string => `Content-Type is ${quoted(type)}`;

function parametersProblem(parameters: string): string | undefined {
  let rest = parameters;
  while (rest !== '') {
    const [whole = '', parameter = '', value = ''] = PARAMETER.exec(rest) ?? [];
    if (whole === '') return 'Content-Type is malformed';
    if (parameter.toLowerCase() === 'charset' && !/^utf-?8$/i.test(unquoted(value)))
      return 'charset is not utf-8';
    rest = rest.slice(whole.length);
  }
  return undefined;
}

/**
 * Refuses the media type of the agent transport, unless the URL's senders use it or `contentTypes` includes it
 * (verification.md §7.25). Called after `guardHeaders`.
 */
export function guardAgentPush(
  headers: HeaderFields,
  [sender]: readonly SenderEntry[],
  { config }: GuardContext,
): Refusal | undefined {
  const type = fieldValue(headers, 'content-type') ?? '';
  if (type === 'application/json' || mediaName(type) !== AGENT_PUSH) return undefined;
  if (config.contentTypes.has(AGENT_PUSH)) return undefined;
  if (sender?.auth.scheme === 'bearer' && sender.auth.header !== undefined) return undefined;
  return refused('unsupported_media_type', notTaken(type));
}

/** Performs the checks that need only the headers (verification.md §7.23 to §7.26). */
export function guardHeaders(
  method: string,
  headers: HeaderFields,
  context: GuardContext,
): Refusal | undefined {
  if (method !== 'POST') return refused('method_not_allowed', `method ${quoted(method.slice(0, 16))}`);
  const problem = contentTypeProblem(headers, context.config);
  if (problem) return refused('unsupported_media_type', problem);
  const encoding = fieldValue(headers, 'content-encoding')?.toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') {
    return refused('unsupported_content_encoding', `Content-Encoding is ${quoted(encoding)}`);
  }
  return undefined;
}

/** Returns the announced length of the body in bytes; undefined if the header holds no number. */
export function declaredLength(headers: HeaderFields): number | undefined {
  const declared = fieldValue(headers, 'content-length') ?? '';
  return /^[0-9]+$/.test(declared) ? Number(declared) : undefined;
}

/** Refuses a declared length over the limit before the body is read. Afterwards `guardBody` checks the real length. */
export function guardDeclaredLength(headers: HeaderFields, maxBodyBytes: number): Refusal | undefined {
  const declared = declaredLength(headers);
  if (declared === undefined || declared <= maxBodyBytes) return undefined;
  return refused('payload_too_large', `Content-Length is over ${maxBodyBytes} bytes`);
}

/** Refuses a body that is over the limit as read. */
export function guardBody(bytes: number, maxBodyBytes: number): Refusal | undefined {
  if (bytes <= maxBodyBytes) return undefined;
  return refused('payload_too_large', `body of ${bytes} bytes, over ${maxBodyBytes}`);
}

/**
 * Performs the checks of this file that do not depend on the sender.
 * @param rawBody the whole body, if it is available. Its real length is then checked, not the declared one.
 */
export function guard(head: Head, context: GuardContext, rawBody?: Uint8Array): Guarded | Refusal {
  const { method, headers } = head;
  const { maxBodyBytes } = context.config;
  return (
    guardHeaders(method, headers, context) ??
    (rawBody ? guardBody(rawBody.byteLength, maxBodyBytes) : guardDeclaredLength(headers, maxBodyBytes)) ?? {
      kind: 'guarded',
      delivery: head,
    }
  );
}
