import type { AdapterReceiver } from '../../../src/adapters/node.ts';
import type { Reply } from '../../../src/index.ts';

/** A request as it goes over the wire, before a protocol or a platform gives it its form. */
export interface WireRequest {
  readonly method: string;
  /** As in the request line. */
  readonly target: string;
  /** In order, repeated lines as two; without framing. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** Without a length, in pieces. */
  readonly chunked?: true;
  /** HTTP/2: `:authority`, where it is not the `Host` line. */
  readonly authority?: string;
}

/** An answer without what the transport adds. Names in lower case, sorted; values byte for byte. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

/** Set by HTTP, not by a door. */
const TRANSPORT = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

export function answerOf(
  status: number,
  headers: Iterable<readonly [string, string]>,
  body: string,
): WireAnswer {
  const kept = [...headers].map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    status,
    headers: kept.filter(([name]) => !TRANSPORT.has(name)).sort(([a], [b]) => (a < b ? -1 : 1)),
    body,
  };
}

const fromReply = ({ status, headers, body }: Reply, method: string): WireAnswer =>
  answerOf(
    status,
    [...Object.entries(headers), ['content-length', String(Buffer.byteLength(body))]],
    // RFC 9110 §9.3.2.
    method === 'HEAD' ? '' : body,
  );

/** What the receiver itself answers to these bytes: what every door has to answer. */
export async function receiverAnswer(receiver: AdapterReceiver, request: WireRequest): Promise<WireAnswer> {
  const { method, target, authority } = request;
  const pseudo = authority === undefined ? [] : [[':authority', authority] as const];
  const length = ['content-length', String(request.body.byteLength)] as const;
  const headers = [...pseudo, ...request.headers, ...(request.chunked ? [] : [length])];
  const info = { method, url: target };
  const { response } = await receiver.verifyAndDispatch(request.body, headers, info);
  return fromReply(response, method);
}

/** One message of HTTP/1.1, as bytes. */
export function message({ method, target, headers, body, chunked }: WireRequest): Buffer {
  const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.byteLength}`;
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  const head = Buffer.from(
    [`${method} ${target} HTTP/1.1`, ...lines, framing, '', ''].join('\r\n'),
    'latin1',
  );
  return Buffer.concat([head, chunked ? pieces(body) : body]);
}

/** Two chunks, where there are two bytes. */
function pieces(body: Uint8Array): Buffer {
  const middle = Math.ceil(body.byteLength / 2);
  const chunks = [body.subarray(0, middle), body.subarray(middle)].filter((part) => part.byteLength > 0);
  const framed = chunks.flatMap((part) => [Buffer.from(`${part.byteLength.toString(16)}\r\n`), part, '\r\n']);
  return Buffer.concat([...framed, '0\r\n\r\n'].map((part) => Buffer.from(part)));
}

/** The first answer in `received` (latin-1). */
export function firstAnswer(received: string): WireAnswer {
  const end = received.indexOf('\r\n\r\n');
  const [line = '', ...lines] = received.slice(0, end).split('\r\n');
  const headers = lines.map((field): [string, string] => {
    const colon = field.indexOf(':');
    return [field.slice(0, colon), field.slice(colon + 1).trim()];
  });
  return answerOf(Number(line.split(' ')[1]), headers, received.slice(end + 4));
}
