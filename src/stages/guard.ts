import { fieldValue, type Delivery, type HeaderFields } from '../delivery.ts';
import type { Refusal, RefusedCode } from '../outcome.ts';

/** A delivery whose method, content type, encoding and size may be looked at further. Touches nothing. */
export interface Guarded {
  readonly kind: 'guarded';
  readonly delivery: Delivery;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"';
/** RFC 9110 §8.3.1: the type; its parameters are read one by one behind it. */
const JSON_TYPE = /^application\/json(?=[ \t;]|$)/i;
/**
 * The next parameter; empty ones are tolerated as RFC 9110 §5.6.6 says. One at a time: an expression for all of them
 * could share out the white space between semicolons in exponentially many ways, on a header that anybody can send.
 */
const PARAMETER = new RegExp(`^[ \\t]*;[ \\t]*(?:(${TOKEN})=(${TOKEN}|${QUOTED}))?`);

const refuse = (code: RefusedCode, detail: string): Refusal => ({ kind: 'refused', code, detail });

function contentTypeProblem(headers: HeaderFields): string | undefined {
  const lines = headers.get('content-type');
  if (lines?.length !== 1) return `${lines?.length ?? 0} Content-Type lines`;
  return mediaTypeProblem(lines[0] ?? '');
}

/** A parameter's value: a token as it is, a quoted string without quotes and escapes. */
function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/gs, '$1') : value;
}

function mediaTypeProblem(type: string): string | undefined {
  if (type === 'application/json') return undefined;
  let rest = type.replace(JSON_TYPE, '');
  if (rest === type) return 'Content-Type is not application/json';
  while (rest !== '') {
    const [whole = '', name = '', value = ''] = PARAMETER.exec(rest) ?? [];
    if (whole === '') return 'Content-Type is malformed';
    if (name.toLowerCase() === 'charset' && unquoted(value).toLowerCase() !== 'utf-8')
      return 'charset is not utf-8';
    rest = rest.slice(whole.length);
  }
  return undefined;
}

/** What headers alone decide (verification.md §7.23, §7.24, §7.26). */
export function guardHeaders(method: string, headers: HeaderFields): Refusal | undefined {
  if (method !== 'POST') return refuse('method_not_allowed', `method ${JSON.stringify(method.slice(0, 16))}`);
  const problem = contentTypeProblem(headers);
  if (problem) return refuse('unsupported_media_type', problem);
  const encoding = fieldValue(headers, 'content-encoding')?.toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') {
    return refuse('unsupported_content_encoding', 'Content-Encoding is not identity');
  }
  return undefined;
}

/** Bytes of the body as announced; undefined where nothing that is a length was. */
export function declaredLength(headers: HeaderFields): number | undefined {
  const declared = fieldValue(headers, 'content-length') ?? '';
  return /^[0-9]+$/.test(declared) ? Number(declared) : undefined;
}

/** A declared length over the limit, before a byte is read. The body is counted all the same. */
export function guardDeclaredLength(headers: HeaderFields, maxBodyBytes: number): Refusal | undefined {
  const declared = declaredLength(headers);
  if (declared === undefined || declared <= maxBodyBytes) return undefined;
  return refuse('payload_too_large', `Content-Length is over ${maxBodyBytes} bytes`);
}

export function guard(delivery: Delivery, maxBodyBytes: number): Guarded | Refusal {
  const refusal = guardHeaders(delivery.method, delivery.headers);
  if (refusal) return refusal;
  if (delivery.rawBody.byteLength > maxBodyBytes) {
    return refuse('payload_too_large', `body of ${delivery.rawBody.byteLength} bytes, over ${maxBodyBytes}`);
  }
  return { kind: 'guarded', delivery };
}
