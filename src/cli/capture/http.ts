// Reads a raw HTTP request with Node's own parser, from memory. `readCapture` calls `readHttp`. The adapter's hook
// `captureRefused` writes refused deliveries in this form.
import { createServer, type IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { UsageError } from '../shell.ts';
import { type Capture, cutShort } from './capture.ts';

/** An HTTP request in two parts: its head as text (Latin-1 keeps each byte), and its body. */
interface Split {
  readonly head: string;
  readonly body: Uint8Array;
}

function split(bytes: Uint8Array): Split {
  const text = Buffer.from(bytes).toString('latin1');
  const end = /\r?\n\r?\n/.exec(text);
  if (!end) {
    throw new UsageError('cut short inside the headers: the blank line after them and the body are missing');
  }
  return { head: text.slice(0, end.index), body: bytes.subarray(end.index + end[0].length) };
}

/**
 * Returns the head of a request as HTTP/1.1, because Node's parser reads no other version. In dumps of HTTP/2,
 * `:authority` becomes `Host`, and the other pseudo-headers are removed.
 */
function normalHead(head: string): string {
  const lines = head.split(/\r?\n/);
  const [start = '', ...fields] = lines;
  const kept = fields.flatMap((line) => {
    const authority = /^:authority:\s*(.*)$/i.exec(line)?.[1];
    if (authority !== undefined) return [`Host: ${authority}`];
    return line.startsWith(':') ? [] : [line];
  });
  return [
    start
      .trimStart()
      .replace(/ HTTP\/[\d.]+$/, '')
      .concat(' HTTP/1.1'),
    ...kept,
  ].join('\r\n');
}

/** Returns a stream that acts as a connection. It delivers these bytes and then ends. */
function connectionOf(bytes: Uint8Array): Duplex {
  let sent = false;
  return new Duplex({
    read() {
      if (!sent) this.push(bytes);
      this.push(null);
      sent = true;
    },
    write: (_chunk, _encoding, done) => done(),
  });
}

interface Parsed {
  readonly message: IncomingMessage;
  readonly body: Uint8Array;
  /** True if the parser reached the end of the request. */
  readonly whole: boolean;
}

/** Parses a request with a server that listens on no port. @throws UsageError with the parser's reason. */
function parse(bytes: Uint8Array): Promise<Parsed> {
  const server = createServer({ maxHeaderSize: 1 << 20, requireHostHeader: false });
  return new Promise((resolve, reject) => {
    // Called for each error of the server. Until the head was read, an error means that the input is no HTTP request.
    let end = (error: Error & { readonly reason?: string }): void => {
      reject(new UsageError(`no HTTP request (${error.reason ?? error.message})`));
    };
    let seen = false;
    const take = (message: IncomingMessage): void => {
      if (seen) return;
      seen = true;
      const chunks: Buffer[] = [];
      const finish = (): void => {
        resolve({ message, body: new Uint8Array(Buffer.concat(chunks)), whole: message.complete });
      };
      // From here on, an error means that the body is cut short; no event of `message` reports that. If the request is
      // complete, the error concerns bytes after it, which are ignored.
      end = () => {
        if (!message.complete) finish();
      };
      message.on('data', (chunk: Buffer) => chunks.push(chunk));
      for (const event of ['end', 'error', 'close']) message.on(event, finish);
    };
    for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, take);
    // For the method CONNECT, Node emits this event instead of `request`.
    server.on('connect', () => reject(new UsageError('a CONNECT request, which delivers nothing')));
    server.on('clientError', (error: Error) => end(error));
    server.emit('connection', connectionOf(bytes));
  });
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] ?? '', raw[2 * i + 1] ?? '']);
}

/**
 * Reads the header field that `captureRefused` adds: the time of receipt, the URL, and whether the body is absent.
 * Returns the facts, and the head without this field.
 */
function captured(head: string): {
  readonly head: string;
  readonly about: Pick<Capture, 'receivedAt' | 'bodyless'> & { readonly url?: string };
} {
  const field = /\r?\nProto-Webhooks-Capture: ([^\r\n]*)/.exec(head);
  if (!field) return { head, about: {} };
  const [all, value = ''] = field;
  const [, facts = value, url] = /^(.*?)(?:; url=(https?:\/\/.+))?$/.exec(value) ?? [];
  const receivedAt = Date.parse(/received=([^;]+)/.exec(facts)?.[1] ?? '');
  return {
    head: head.replace(all, ''),
    about: {
      ...(!Number.isNaN(receivedAt) && { receivedAt }),
      ...(facts.includes('body=absent') && { bodyless: true }),
      ...(url !== undefined && { url }),
    },
  };
}

/**
 * Returns a note about bytes after the declared body. White space there usually comes from an editor, and gets no note.
 */
function leftOut(rest: Uint8Array, declared: number): string[] {
  const left = rest.length - declared;
  if (left <= 0 || /^\s*$/.test(Buffer.from(rest).subarray(-left).toString('latin1'))) return [];
  return [`${left} bytes after the ${declared} of Content-Length were left out.`];
}

/** Reads a request in the form in which `tcpdump`, `nc` or a proxy's log shows it. Lines may end in LF alone. */
export async function readHttp(bytes: Uint8Array): Promise<Capture> {
  const { head: firstHead, body: rest } = split(bytes);
  const { head, about } = captured(firstHead);
  const { message, body, whole } = await parse(
    Buffer.concat([Buffer.from(`${normalHead(head)}\r\n\r\n`, 'latin1'), rest]),
  );
  const declared = message.headers['content-length'];
  const framed = declared !== undefined || message.headers['transfer-encoding'] !== undefined;
  if (framed && !whole) {
    if (declared !== undefined) throw cutShort(rest.length, Number(declared));
    throw new UsageError('cut short inside the body: the last chunks of the body are missing');
  }
  const notes: string[] = about.bodyless ? ['The body was not read: its checks are left open.'] : [];
  if (!framed) notes.push('No Content-Length: everything after the headers was taken as the body.');
  if (declared !== undefined) notes.push(...leftOut(rest, Number(declared)));
  const target = message.url ?? '/';
  const told = /^https?:\/\//i.test(target) ? target : undefined;
  return {
    form: 'raw HTTP',
    method: message.method ?? '',
    url: told,
    target,
    headers: pairs(message.rawHeaders),
    body: framed ? body : rest,
    ...about,
    notes,
  };
}
