import { describe, expect, it } from 'vitest';
import { type Capture, httpText, readCapture, UsageError } from '../../../src/cli/for-tests.ts';
import type { SignedDelivery } from '../../../src/sender/sign.ts';
import { bytes, explained, signed, text, URL_GIVEN } from '../explain/captures.ts';

const read = (content: string | Uint8Array, files: Readonly<Record<string, string>> = {}): Promise<Capture> =>
  readCapture(typeof content === 'string' ? bytes(content) : content, {
    file: 'capture',
    readFile: async (name) => bytes(files[name] ?? ''),
  });

const pairs = (delivery: SignedDelivery): { name: string; value: string }[] =>
  Object.entries(delivery.headers).map(([name, value]) => ({ name, value }));

const har = (delivery: SignedDelivery, more: object = {}): string => {
  const request = {
    method: 'POST',
    url: delivery.url,
    httpVersion: 'HTTP/1.1',
    headers: pairs(delivery),
    postData: { mimeType: 'application/json', text: text(delivery.body) },
    bodySize: delivery.body.length,
    ...more,
  };
  return JSON.stringify({ startedDateTime: '2026-01-31T12:00:00.000Z', request });
};

const quote = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;
const curl = (delivery: SignedDelivery, body = quote(text(delivery.body))): string =>
  [
    `curl ${quote(delivery.url)}`,
    '-X POST',
    ...pairs(delivery).map(({ name, value }) => `-H ${quote(`${name}: ${value}`)}`),
    `--data-raw ${body}`,
  ].join(' \\\n  ');

const vector = (delivery: SignedDelivery, more: object = {}): string =>
  JSON.stringify({
    name: 'a vector',
    reference_now: Date.UTC(2026, 0, 31, 12) / 1000,
    request: { method: 'POST', url: delivery.url, headers: delivery.headers, body: text(delivery.body) },
    ...more,
  });

/** The four forms, each a writer of a delivery. */
const FORMS: Readonly<Record<Capture['form'], (delivery: SignedDelivery) => string>> = {
  'raw HTTP': httpText,
  'HAR entry': har,
  'curl command': curl,
  vector,
};

describe.each(Object.entries(FORMS))('a capture as %s', (form, write) => {
  it('verifies: not a byte of the body is changed', async () => {
    const delivery = await signed();
    const capture = await read(write(delivery));
    expect(capture.form).toBe(form);
    expect(text(capture.body)).toBe(text(delivery.body));
    expect((await explained(capture)).ok).toBe(true);
    expect(capture.url ?? `https://buyer.example${capture.target}`).toBe(URL_GIVEN);
  });

  it('shows a mistake that was made before', async () => {
    const delivery = await signed({ url: URL_GIVEN.replace('https', 'http') });
    const capture = await read(write({ ...delivery, url: URL_GIVEN }));
    expect((await explained(capture)).findings).toMatchObject([{ cause: 'scheme' }]);
  });

  it('names what is missing when it is truncated', async () => {
    const delivery = await signed();
    const whole = write(delivery);
    for (const share of [0.3, 0.6, 0.95]) {
      const cut = whole.slice(0, Math.floor(whole.length * share));
      await expect(read(cut)).rejects.toThrow(UsageError);
      await expect(read(cut)).rejects.toThrow(/^capture: .*(cut short|missing|no URL)/);
    }
  });
});

describe('a curl command', () => {
  it.each(['-d', '-H', '-X', '--data-binary', '--json', '--url'])(
    'that ends behind %s was cut short',
    async (option) => {
      const cut = `curl https://buyer.example/x --data-raw '{}' ${option}`;
      await expect(read(cut)).rejects.toThrow(
        /^capture: cut short: the option [a-z-]+ of the curl command has no value/,
      );
    },
  );
});

describe('raw HTTP', () => {
  it('may have LF line ends, a version 2, pseudo-headers, and a line feed behind the body', async () => {
    const delivery = await signed();
    const { method, headers } = await read(httpText(delivery));
    const lines = headers.map(([name, value]) => `${name}: ${value}`);
    const target = URL_GIVEN.slice('https://buyer.example'.length);
    const dump = [
      `${method} ${target} HTTP/2`,
      ':authority: buyer.example',
      ':method: POST',
      ...lines.slice(1),
      '',
      text(delivery.body),
      '',
    ].join('\n');
    const capture = await read(dump);
    expect(capture.headers.filter(([name]) => name === 'Host')).toEqual([['Host', 'buyer.example']]);
    expect(capture.notes).toEqual([]);
    expect((await explained(capture)).ok).toBe(true);
  });

  it('reads chunks, and takes everything as the body without a length', async () => {
    const delivery = await signed();
    const { ['Content-Type']: type, ...rest } = delivery.headers;
    const fields = Object.entries({ 'Content-Type': type, ...rest }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    const head = ['POST /webhooks/proto?tenant=a%2Cb&n=1 HTTP/1.1', 'Host: buyer.example', ...fields].join(
      '\r\n',
    );
    const size = delivery.body.length.toString(16);
    const chunked = await read(
      `${head}\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${text(delivery.body)}\r\n0\r\n\r\n`,
    );
    expect((await explained(chunked)).ok).toBe(true);
    await expect(
      read(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${text(delivery.body)}`),
    ).rejects.toThrow('the last chunks of the body are missing');
    const bare = await read(`${head}\r\n\r\n${text(delivery.body)}`);
    expect(bare.notes.join()).toContain('No Content-Length');
    expect((await explained(bare)).ok).toBe(true);
  });

  it('says how much of the body is missing, and where the headers end too soon', async () => {
    await expect(read('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"a"')).rejects.toThrow(
      'capture: cut short inside the body: 6 of its 10 bytes are missing.',
    );
    await expect(read('POST / HTTP/1.1\r\nHost: a\r\nContent-')).rejects.toThrow(
      'cut short inside the headers',
    );
    await expect(read('POST / HTTP/1.1\r\nno colon\r\n\r\n')).rejects.toThrow('no HTTP request');
  });

  it('ignores what follows the request', async () => {
    const delivery = await signed();
    const capture = await read(`${httpText(delivery)}\r\n-- end of the log --\r\n`);
    expect(text(capture.body)).toBe(text(delivery.body));
    expect(capture.notes.join()).toContain('were left out');
    expect((await explained(capture)).ok).toBe(true);
  });

  it('keeps repeated headers apart', async () => {
    const { headers } = await read('POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}');
    expect(headers.slice(0, 2)).toEqual([
      ['Host', 'a'],
      ['Host', 'b'],
    ]);
  });
});

describe('curl', () => {
  it('reads quotes of every kind, continued lines, and bodies in several parts', async () => {
    const command = String.raw`$ curl --compressed -sS -m 10 "https://a.example/x?y=\"1\"" \
      -H 'A: it'\''s' -H "B: \$x" --data-raw $'{"caf\u00e9":"it\'s\n"}'`;
    const capture = await read(command);
    expect(capture.url).toBe('https://a.example/x?y="1"');
    expect(capture.headers).toEqual([
      ['A', "it's"],
      ['B', '$x'],
    ]);
    expect(text(capture.body)).toBe('{"caf\u00e9":"it\'s\n"}');
    expect(capture.method).toBe('POST');
    expect(text((await read("curl http://a.example -d a=1 -d 'b=2'")).body)).toBe('a=1&b=2');
  });

  it('names what is missing when Content-Length is more than the data, or absent', async () => {
    await expect(read(`curl https://a.example/ -H 'content-length: 10' --data-raw '{"a"'`)).rejects.toThrow(
      'capture: cut short inside the body: 6 of its 10 bytes are missing.',
    );
    await expect(read("curl https://a.example/ -H 'Content-Length: 10'")).rejects.toThrow(
      '10 of its 10 bytes are missing',
    );
    await expect(read('curl -X POST https://a.example/')).rejects.toThrow('the curl command has no body');
    expect((await read("curl https://a.example/ --data-raw ''")).body).toHaveLength(0);
    expect(text((await read("curl https://a.example/ -H 'Content-Length: 2' -d '{}'")).body)).toBe('{}');
  });

  it('refuses a command that would keep the process busy', async () => {
    const refusal = 'the curl command has more than 2000 words, or more than 64 options in one word';
    await expect(read(`curl http://x/y${' -da'.repeat(150_000)}`)).rejects.toThrow(refusal);
    await expect(read(`curl http://x/y -${'a'.repeat(1_000_000)}`)).rejects.toThrow(refusal);
    const joined = await read(`curl http://x/y -d'${'a'.repeat(1_000_000)}'`);
    expect(joined.body).toHaveLength(1_000_000);
  });

  it('reads the file that --data-binary names, byte for byte, and --data without its line ends', async () => {
    const files = { 'body.json': '{\n"a":1}\n' };
    expect(text((await read('curl http://a.example --data-binary @body.json', files)).body)).toBe(
      '{\n"a":1}\n',
    );
    expect(text((await read('curl http://a.example -d @body.json', files)).body)).toBe('{"a":1}');
    const json = await read("curl http://a.example --json '{}'");
    expect(json.headers).toEqual([['Content-Type', 'application/json']]);
  });
});

describe('HAR and vectors', () => {
  it('takes the only signed entry of a file, and asks which of several', async () => {
    const entry = JSON.parse(har(await signed())) as object;
    const unsigned = { request: { method: 'GET', url: 'https://buyer.example/', headers: [], postData: {} } };
    const whole = await read(JSON.stringify({ log: { entries: [unsigned, entry] } }));
    expect((await explained(whole)).ok).toBe(true);
    expect(whole.receivedAt).toBe(Date.UTC(2026, 0, 31, 12));
    await expect(read(JSON.stringify({ log: { entries: [entry, entry] } }))).rejects.toThrow(
      '2 signed requests: choose one by --entry, from 0 to 1',
    );
  });

  it('says that a HAR was exported without its bodies', async () => {
    const { postData: _, ...request } = (
      JSON.parse(har(await signed())) as { request: Record<string, unknown> }
    ).request;
    await expect(read(JSON.stringify({ startedDateTime: '', request }))).rejects.toThrow(
      /no body \(request\.postData\) though it says \d+ bytes, which are missing/,
    );
  });

  it.each<[string, { readonly cut?: number; readonly postData?: undefined; readonly bodySize?: number }]>([
    ['40 characters of text', { cut: 40 }],
    ['no postData, bodySize unknown', { postData: undefined, bodySize: -1 }],
    ['an empty text', { cut: 0 }],
    ['an empty text, bodySize unknown', { cut: 0, bodySize: -1 }],
    ['text that only Content-Length says is cut', { cut: 40, bodySize: 40 }],
  ])('says that a HAR was cut short: %s', async (_, { cut, ...more }) => {
    const delivery = await signed();
    const length = delivery.body.length;
    const postData = { mimeType: 'application/json', text: text(delivery.body).slice(0, cut) };
    const whole = { ...delivery, headers: { ...delivery.headers, 'Content-Length': String(length) } };
    await expect(read(har(whole, { postData, ...more }))).rejects.toThrow(
      new RegExp(`${length - 40} of its ${length} bytes are missing|${length} bytes, which are missing`),
    );
  });

  it('takes an empty body of a HAR only when it says so, and more bytes than it says', async () => {
    const delivery = await signed();
    const bare = (bodySize: number): string => har(delivery, { postData: undefined, bodySize });
    await expect(read(bare(-1))).rejects.toThrow('no body (request.postData): export it with content');
    expect((await read(bare(0))).body).toHaveLength(0);
    expect(text((await read(har(delivery, { bodySize: 12 }))).body)).toBe(text(delivery.body));
  });

  it('needs a body in a vector, and keeps its other members', async () => {
    const capture = await read(vector(await signed(), { jwks_override: { k: { kty: 'OKP' } } }));
    expect(capture.vector).toMatchObject({ jwks_override: { k: { kty: 'OKP' } } });
    await expect(read('{"request":{"url":"https://a.example/","headers":{}}}')).rejects.toThrow(
      'capture: the vector has no request.body (or body_base64).',
    );
  });
});

describe('a capture that is made to break the reader', () => {
  const url = 'https://a.example/';
  const twisted = { toString: 1 };
  const request = { url, headers: {}, body: '{}' };
  it.each([
    ['a time past all dates', JSON.stringify({ request, reference_now: 1e300 }), 'reference_now'],
    [
      'a header that is an object',
      JSON.stringify({ request: { ...request, headers: { a: twisted } } }),
      'a header that is not text',
    ],
    [
      'a pair with an object',
      JSON.stringify({ request: { ...request, headers: [['a', twisted]] } }),
      'no request.headers',
    ],
    ['a character past Unicode', String.raw`curl ${url} -d $'\UFFFFFFFF'`, 'is not a character'],
    ['a quote of many escapes that does not end', `curl ${url} -d $'${'\\n'.repeat(1e7)}`, 'does not end'],
    ['CONNECT', 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n', 'a CONNECT request'],
  ])('%s', async (_, content, message) => {
    await expect(read(content)).rejects.toThrow(UsageError);
    await expect(read(content)).rejects.toThrow(message);
  });

  it('is a HAR with objects in place of text', async () => {
    const entry = {
      startedDateTime: twisted,
      request: { url, headers: [{ name: 'A', value: twisted }], bodySize: twisted, postData: { text: '{}' } },
    };
    const capture = await read(JSON.stringify({ log: { entries: [entry] } }));
    expect(capture.receivedAt).toBeUndefined();
    expect(capture.headers).toEqual([['A', '']]);
    const named = { ...entry, request: { ...entry.request, headers: [{ name: twisted }] } };
    await expect(read(JSON.stringify({ log: { entries: [named] } }))).rejects.toThrow(UsageError);
  });

  it('a quoted body of 20 MB', async () => {
    const body = String.raw`it\'s `.repeat(3e6);
    expect((await read(`curl ${url} -d $'${body}'`)).body.length).toBe(5 * 3e6);
  });
});

it.each([
  ['nothing', '', 'it is empty'],
  ['prose', 'hello', 'unknown shape. Expected a raw HTTP request'],
  ['JSON of another kind', '{"a":1}', 'the JSON has no request'],
])('an unknown shape: %s', async (_, content, message) => {
  await expect(read(content)).rejects.toThrow(message);
});
