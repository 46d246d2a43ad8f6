import { beforeAll, describe, expect, test } from 'vitest';
import { verifySignature } from '../../src/auth/rfc9421/index.ts';
import {
  type Answer,
  librarySubject,
  runVectors,
  type Subject,
  type VectorKind,
  type VectorResult,
} from '../../src/vectors/index.ts';

const library = librarySubject();

async function failures(subject: Subject): Promise<readonly VectorResult[]> {
  return (await runVectors({ subject })).filter(({ passed }) => !passed);
}

/** What the library answers to the vectors' requests: a list for each vector. */
const recorded: Answer[][] = [];

beforeAll(async () => {
  const open: Subject['open'] = async (setup) => {
    const receiver = await library.open(setup);
    const answers: Answer[] = [];
    recorded.push(answers);
    return {
      ...receiver,
      deliver: async (request, arrival) => {
        const answer = await receiver.deliver(request, arrival);
        answers.push(answer);
        return answer;
      },
    };
  };
  expect(await failures({ open })).toEqual([]);
});

/** The library's answers, changed. */
function answering(change: (answer: Answer) => Answer): Subject {
  const vectors = recorded.values();
  return {
    open: () => {
      const answers = (vectors.next().value ?? []).values();
      return {
        deliver: () => {
          const { value } = answers.next();
          if (!value) throw new Error('more requests than were recorded');
          return change(value);
        },
      };
    },
  };
}

describe('another implementation', () => {
  test('runs only the kinds that it has a function for', async () => {
    const kinds = async (subject: Subject): Promise<VectorKind[]> => {
      const results = await runVectors({ subject });
      return [...new Set(results.map(({ kind }) => kind as VectorKind))].sort();
    };
    expect(await kinds({ targetUri: library.targetUri })).toEqual(['canonicalization']);
    expect(await kinds({ extract: library.extract })).toEqual(['extraction']);
    expect(await kinds(answering((answer) => answer))).toEqual([
      'bearer',
      'envelope',
      'hmac',
      'sequence',
      'signature',
    ]);
  });

  test('may return only status and code', async () => {
    expect(await failures(answering(({ status, code }) => ({ status, ...(code && { code }) })))).toEqual([]);
  });

  test('fails with what it throws', async () => {
    const subject: Subject = {
      targetUri: library.targetUri,
      open: () => {
        throw new Error('not today');
      },
    };
    const failed = await failures(subject);
    expect(failed.length).toBeGreaterThan(300);
    expect(new Set(failed.map(({ actual }) => actual))).toEqual(new Set(['threw Error: not today']));
  });

  test('when it only verifies signatures fails what it lacks', async () => {
    const subject: Subject = {
      open: ({ senders: [sender], protocol }) => ({
        deliver: async (request, { nowMs }) => {
          const options = { protocol, now: () => nowMs, ...(sender && { edition: sender.edition }) };
          const jwk = sender?.keys[0] ?? {};
          const result = await verifySignature(request, jwk, options);
          return result.kind === 'verified' ? { status: 200 } : { status: 401, code: result.code };
        },
      }),
    };
    const failed = (await failures(subject)).filter(({ kind }) => kind === 'signature');
    const places = failed.map(({ file }) => /(positive|negative)/.exec(file)?.[0]);
    expect(places.filter((place) => place === 'positive').length).toBeLessThan(5);
    const reasons = [
      'revoked',
      'stale',
      'replayed',
      'rate-abuse',
      'duplicate-json-key',
      'mode-',
      'text-plain',
    ];
    for (const reason of reasons) expect(failed.map(({ name }) => name).join(' ')).toContain(reason);
  });
});

describe('mistakes that vectors catch', () => {
  test('everything is accepted: no refusal is missed', async () => {
    const results = await runVectors({ subject: { open: () => ({ deliver: () => ({ status: 200 }) }) } });
    const failed = results.filter(({ passed }) => !passed);
    const negative = results.filter(({ kind, file }) => kind === 'signature' && file.includes('negative'));
    expect(failed.filter(({ kind }) => kind === 'signature')).toHaveLength(negative.length);
  });

  test('everything is refused: no positive is missed', async () => {
    const refuse = (): Answer => ({ status: 401, code: 'webhook_signature_invalid' });
    const results = await runVectors({ subject: { open: () => ({ deliver: refuse }) } });
    const failed = results.filter(({ passed }) => !passed);
    const positive = results.filter(({ file }) => file.includes('positive'));
    expect(failed.filter(({ file }) => file.includes('positive'))).toHaveLength(positive.length);
  });

  test('a fault for everything: nothing is met by it but what must be a fault', async () => {
    const results = await runVectors({ subject: { open: () => ({ deliver: () => ({ status: 503 }) }) } });
    expect(results.filter(({ passed }) => passed).map(({ name }) => name)).toEqual([]);
  });

  test('HMAC: a body that is not JSON, refused with another code or challenge', async () => {
    const names = async (answer: Answer): Promise<readonly string[]> => {
      const results = await runVectors({ subject: { open: () => ({ deliver: () => answer }) } });
      return results.flatMap(({ kind, name, passed }) => (kind === 'hmac' && passed ? [name] : []));
    };
    const malformed = ['duplicate-key', 'duplicate-key-escaped', 'empty-body'];
    const code = 'webhook_body_malformed';
    const wwwAuthenticate = `Signature error="${code}"`;
    expect(await names({ status: 401, code, wwwAuthenticate })).toEqual(expect.arrayContaining(malformed));
    const others: Answer[] = [
      { status: 401, code: 'webhook_signature_invalid' },
      { status: 403, code },
      { status: 401, code, wwwAuthenticate: null },
    ];
    for (const other of others) {
      const passed = await names(other);
      expect(malformed.filter((name) => passed.includes(name))).toEqual([]);
    }
  });

  test.each([
    [
      '409 for a duplicate',
      ({ kind, ...answer }: Answer) => (kind === 'duplicate' ? { status: 409 } : answer),
    ],
    ['401 for a fault', (answer: Answer) => (answer.status === 503 ? { ...answer, status: 401 } : answer)],
    [
      'a realm in the challenge',
      (answer: Answer) => ({
        ...answer,
        wwwAuthenticate: answer.wwwAuthenticate && `${answer.wwwAuthenticate}, realm="x"`,
      }),
    ],
    [
      'one code for all',
      (answer: Answer) => ({ ...answer, code: answer.code && 'webhook_signature_invalid' }),
    ],
    [
      'the handler run twice',
      (answer: Answer) => ({ ...answer, handled: answer.handled || answer.kind === 'duplicate' }),
    ],
    [
      'a stale status applied',
      (answer: Answer) => ({ ...answer, handled: answer.handled || answer.kind === 'stale' }),
    ],
    ['no mark on a re-emission', (answer: Answer) => ({ ...answer, reemission: false })],
  ])('%s', async (_, change) => {
    expect((await failures(answering(change))).length).toBeGreaterThan(0);
  });

  test('a check’s number that is another: noted, and no failure', async () => {
    const change = (answer: Answer): Answer => (answer.check === 11 ? { ...answer, check: 10 } : answer);
    const results = await runVectors({ subject: answering(change) });
    expect(results.filter(({ passed }) => !passed)).toEqual([]);
    const notes = results.flatMap((result) => result.notes ?? []);
    expect(notes.length).toBeGreaterThan(0);
    expect(notes.filter((note) => !/(?:^|: )check: expected 11, got 10$/.test(note))).toEqual([]);
  });

  test('URL for canonicalization', async () => {
    const targetUri = (url: string) => {
      const { href, host } = new URL(url);
      return { targetUri: href, authority: host };
    };
    expect((await failures({ targetUri })).length).toBeGreaterThan(10);
  });

  test('the first data part where the last one counts', async () => {
    const extract: Subject['extract'] = (payload) => {
      const { artifacts } = Object(payload) as { artifacts?: { parts: { data?: unknown }[] }[] };
      const data = artifacts?.[0]?.parts.find((part) => part.data !== undefined)?.data;
      return { ...library.extract(payload), ...(data !== undefined && { data }) };
    };
    expect((await failures({ extract })).length).toBeGreaterThan(3);
  });

  test('a base with another line', async () => {
    const signatureBase: Subject['signatureBase'] = (request) =>
      library.signatureBase(request)?.replace('"@authority"', '"host"');
    const failed = await failures({ ...answering((answer) => answer), signatureBase });
    expect(failed.length).toBeGreaterThan(50);
    expect(failed[0]?.detail).toMatch(/first difference at byte \d+ \(line 3, column 2\)/);
  });
});
