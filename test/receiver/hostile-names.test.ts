import { describe, expect, it, onTestFinished } from 'vitest';
import type { HeadersInput, Outcome, ReceiverOptions } from '../../src/index.ts';
import { loadOnDemand } from '../../src/for-tests.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { AGENT, testReceiver, payloads, sellerKey, URL_GIVEN, type TestReceiver } from './setup.ts';

/** What a terminal, a log viewer or a pager would act on, and what would fill it. */
const HOSTILE = {
  'ANSI escapes': '\u001B[2J\u001B[31mred',
  'an OSC link': '\u001B]8;;https://evil.example\u0007here',
  'line feeds': 'a\r\nlevel=error msg="paid"',
  bidi: 'a\u202Etxt.exe\u2066b',
  'line separators': 'a\u2028b\u2029c\u0085d',
  'zero width': 'a\u200Bb\uFEFF',
  'a lone surrogate': 'a\uD800b',
  NUL: 'a\u0000b',
  '10 kB': 'x'.repeat(10_240),
} as const;

const CLEAN =
  // oxlint-disable-next-line no-control-regex -- they are what must not be there
  /^[^\u0000-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]*$/u;

function strings(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > 6) return [];
  if (value instanceof Error) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...strings(member, depth + 1)]);
}

interface Heard extends TestReceiver {
  /** Every text that the owner was shown by hook or log, events apart. */
  readonly texts: () => Promise<string[]>;
}

async function heardSetup(more: Partial<ReceiverOptions> = {}): Promise<Heard> {
  const texts: string[] = [];
  const line = (fields: object, message: string): void => void texts.push(message, ...strings(fields));
  const made = await testReceiver({
    logger: { debug: line, info: line, warn: line, error: line },
    onAlarm: (alarm) => void texts.push(...strings(alarm)),
    onOutcome: ({ event: _event, ...rest }: Outcome) => {
      texts.push(...strings(rest));
    },
    ...more,
  });
  onTestFinished(() => made.receiver.stop());
  const settled = async (): Promise<string[]> => {
    await loadOnDemand();
    await new Promise((resolve) => setImmediate(resolve));
    return texts;
  };
  return { ...made, texts: settled };
}

async function expectClean(made: Heard): Promise<void> {
  const texts = await made.texts();
  expect(texts.length).toBeGreaterThan(0);
  expect(texts.filter((text) => !CLEAN.test(text))).toEqual([]);
  expect(Math.max(...texts.map((text) => text.length))).toBeLessThan(4_200);
}

const completed = (): ReturnType<typeof payloads.tool> => payloads.tool('completed');

describe.each(Object.entries(HOSTILE))('names from outside are escaped in logs: %s', (_, bad) => {
  it('in the head of a request', async () => {
    const made = await heardSetup();
    const prefixed = await heardSetup({
      publicUrl: 'https://buyer.example/hooks/*',
      senders: () => [],
    });
    const { body, headers } = await made.sign(completed());
    const variants: [HeadersInput, { readonly url?: string; readonly method?: string }][] = [
      [headers, { method: bad }],
      [{ ...headers, 'Content-Type': bad }, {}],
      [{ ...headers, 'Content-Type': `application/${bad}+json` }, {}],
      [{ ...headers, 'Content-Encoding': bad }, {}],
      [{ ...headers, Host: bad }, { url: `/${bad}` }],
      [{ ...headers, Host: `${bad}.example` }, { url: `https://${bad}/` }],
      [{ ...headers, Signature: bad }, {}],
      [{ ...headers, 'Signature-Input': bad }, {}],
      [{ ...headers, 'Content-Digest': bad }, {}],
      [{ ...headers, Authorization: `Bearer ${bad}` }, {}],
      ...['keyid', 'tag', 'alg', 'nonce'].map((name): [HeadersInput, object] => [
        {
          ...headers,
          'Signature-Input': (headers['Signature-Input'] ?? '').replace(
            new RegExp(`;${name}="[^"]*"`),
            () => `;${name}="${bad}"`,
          ),
        },
        {},
      ]),
      [
        {
          ...headers,
          'Signature-Input': (headers['Signature-Input'] ?? '').replace('"@method"', () => `"${bad}"`),
        },
        {},
      ],
    ];
    for (const [given, request] of variants) {
      await made.receiver.verifyAndDispatch(body, given, request);
      const opened = await made.receiver.open(given, request);
      if (opened.kind === 'ticket') opened.abort();
      for (const url of [`/hooks/${bad}`, `/${bad}`, bad]) {
        await prefixed.receiver.verifyAndDispatch(body, given, { ...request, url });
      }
    }
    await expectClean(made);
    await expectClean(prefixed);
  });

  it('in an authentic body', async () => {
    const made = await heardSetup();
    const base = completed();
    const bodies = [
      { ...base, status: bad },
      { ...base, idempotency_key: bad },
      { ...base, task_id: bad, notification_id: bad },
      { ...base, task_type: bad, result: { [bad]: bad } },
      { ...base, timestamp: bad },
      { ...base, notification_type: bad },
      { ...base, type: bad, event: bad },
      { [bad]: bad },
    ];
    for (const [index, payload] of bodies.entries()) {
      const key = `${'k'.repeat(16)}-${index}`;
      await made.deliver({ idempotency_key: key, ...payload });
    }
    const twice = `{${JSON.stringify(bad)}:1,${JSON.stringify(bad)}:2}`;
    const { body, headers } = await made.sign(twice, { allowMalformed: true });
    await made.receiver.verifyAndDispatch(body, headers);
    await expectClean(made);
  });

  it('in a seller’s documents', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    const documents: readonly (readonly [string, unknown])[] = [
      ['/.well-known/brand.json', { agents: [{ url: `${seller.agentUrl}/`, type: bad }, { url: bad }] }],
      ['/.well-known/brand.json', { agents: [{ url: seller.agentUrl, jwks_uri: `https://${bad}/keys` }] }],
      ['/.well-known/brand.json', { authoritative_location: `https://${bad}/` }],
      ['/.well-known/brand.json', { setup: bad }],
      [
        '/.well-known/jwks.json',
        {
          keys: [
            { kid: bad, kty: bad },
            { kid: bad, kty: bad },
          ],
        },
      ],
      ['/.well-known/jwks.json', { keys: [{ ...seller.keys.ed25519.publicJwk, proto_use: bad, alg: bad }] }],
      ['/.well-known/jwks.json', { [bad]: 1, keys: bad }],
      [
        '/.well-known/proto-revocations.json',
        { issuer: bad, version: bad, updated: bad, revoked_kids: [bad] },
      ],
    ];
    for (const [path, document] of documents) {
      const kept = seller.documents.get(path);
      seller.documents.set(path, document);
      const made = await heardSetup({ senders: [seller.sender], allowLoopback: true });
      const { body, headers } = await seller.sign(completed());
      await made.receiver.verifyAndDispatch(body, headers);
      await expectClean(made);
      if (kept === undefined) seller.documents.delete(path);
      else seller.documents.set(path, kept);
    }
    const text = bad.replace(/[^\x20-\x7E]/g, '');
    for (const header of ['Content-Type', 'Content-Encoding', 'Location', 'Cache-Control']) {
      seller.faults.set('*', {
        answer: (_request, response) => response.writeHead(301, { [header]: text }).end(bad),
      });
      const made = await heardSetup({ senders: [seller.sender], allowLoopback: true });
      const { body, headers } = await seller.sign(completed());
      await made.receiver.verifyAndDispatch(body, headers);
      await expectClean(made);
    }
  });

  it('in errors of a senders function or a handler', async () => {
    const { publicJwk } = await sellerKey();
    const failing = await heardSetup({
      senders: () => {
        throw new Error(bad);
      },
    });
    await failing.deliver(completed());
    await expectClean(failing);
    const made = await heardSetup({
      senders: [{ agentUrl: AGENT, pins: [publicJwk] }],
      handlers: { other: () => Promise.reject(new Error(bad)) },
    });
    await made.deliver(completed());
    await expectClean(made);
  });
});
