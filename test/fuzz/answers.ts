import { deflateSync, gzipSync } from 'node:zlib';
import { type Random, randomOf } from '../reliability/processes/random.ts';

/** An answer as a hostile seller sends it. */
export interface FuzzedAnswer {
  readonly kind: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Ends the connection in the place of the end. */
  readonly breaks: boolean;
}

/** The JSON-RPC answer that a result stands in. */
const answer = (id: number, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;

const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'text/event-stream' };
const whole = (body: string | Buffer, headers: Record<string, string> = json, status = 200) => ({
  status,
  headers,
  body: Buffer.from(body),
  breaks: false,
});

const bytes = (random: Random, most: number): Buffer =>
  Buffer.from(Array.from({ length: random.below(most) }, () => random.below(256)));

/** Any value of JSON, a little one, with what is odd about names and statuses. */
function value(random: Random, levels = 4): unknown {
  const scalars = [
    null,
    true,
    0,
    -1,
    1e308,
    '',
    'x',
    '\u001b[31m\n',
    '\u202e',
    'completed',
    'task-1',
    'INVALID_REQUEST',
  ];
  const names = [
    'status',
    'task_id',
    'result',
    'error',
    'errors',
    'adcp_error',
    'code',
    'message',
    'state',
    'id',
    'kind',
    '__proto__',
    'constructor',
    'toString',
    'parts',
    'artifacts',
    'data',
    'structuredContent',
    'content',
    'isError',
    'retry_after',
    'media_buy_id',
    'updated_at',
    'progress',
    'context',
    'task',
    'messageId',
    'text',
    'type',
    '_meta',
  ];
  const which = random.below(levels > 0 ? 4 : 2);
  if (which < 2) return random.pick(scalars);
  const length = random.below(6);
  if (which === 2) return Array.from({ length }, () => value(random, levels - 1));
  const members = Array.from({ length }, () => [random.pick(names), value(random, levels - 1)] as const);
  return Object.fromEntries(members);
}

/** A task as either transport tells of it, with odd members in the place of some. */
function task(random: Random): unknown {
  const state = random.pick([
    'submitted',
    'working',
    'completed',
    'failed',
    'TASK_STATE_COMPLETED',
    'nonsense',
    '',
  ]);
  const inner = { status: state, task_id: 'task-1', result: value(random), progress: value(random) };
  const agent = {
    id: 'task-1',
    contextId: 'c',
    status: { state, timestamp: value(random), message: value(random) },
    artifacts: value(random),
  };
  return random.pick([
    { structuredContent: inner, content: [] },
    agent,
    { task: agent },
    { content: [{ type: 'text', text: JSON.stringify(inner) }] },
    { isError: true, content: [{ type: 'text', text: JSON.stringify(value(random)) }] },
  ]);
}

const plain = (text: string, _options?: object): Buffer => Buffer.from(text);

const nested = (levels: number, [open, close]: readonly [string, string]): string =>
  open.repeat(levels) + '1' + close.repeat(levels);

/** Kinds of answers: what a seller may send in the place of a good one. `size` is 1 in the long form. */
export const KINDS: Readonly<
  Record<string, (random: Random, id: number, size: number) => Omit<FuzzedAnswer, 'kind'>>
> = {
  'odd results': (random, id) => whole(answer(id, JSON.stringify(value(random)))),
  'odd tasks': (random, id) => whole(answer(id, JSON.stringify(task(random)))),
  'odd messages': (random) => whole(JSON.stringify(value(random))),
  'odd errors': (random, id) =>
    whole(
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        error: random.pick([
          {
            code: random.pick([-32_603, -32_601, 1.5, 'x', null]),
            message: value(random),
            data: value(random),
          },
          value(random),
        ]),
      }),
      json,
      random.pick([200, 400, 404, 500]),
    ),
  noise: (random, id) => {
    const text = Buffer.from(answer(id, JSON.stringify(task(random))));
    for (let times = 1 + random.below(4); times > 0; times -= 1)
      text[random.below(text.length)] = random.below(256);
    return whole(text.subarray(0, random.next() < 0.5 ? text.length : random.below(text.length)));
  },
  deep: (random, id, size) =>
    whole(
      answer(
        id,
        `{"structuredContent":{"status":"working","task_id":"task-1","a":${nested(
          random.below(20_000 * size),
          random.pick([
            ['[', ']'],
            ['{"a":', '}'],
          ] as const),
        )}},"content":[]}`,
      ),
    ),
  wide: (random, id, size) => {
    const item = random.pick(['1', '{}', '[]', '""', '{"a":1}', '"a,b"']);
    return whole(
      answer(
        id,
        `{"structuredContent":{"status":"working","task_id":"task-1","progress":[${`${item},`.repeat(random.below(700_000 * size))}1]},"content":[]}`,
      ),
    );
  },
  long: (random, id, size) =>
    whole(
      answer(
        id,
        `{"structuredContent":{"status":"completed","task_id":"task-1","result":{"a":"${random.pick(['x', 'é', '\\u0000', '\\ud800']).repeat(random.below(5_000_000 * size))}"}},"content":[]}`,
      ),
    ),
  'double names': (random, id) =>
    whole(answer(id, `{"structuredContent":{"n":1,"${random.pick(['n', '\\u006e', 'm'])}":2},"content":[]}`)),
  encoded: (random, id, size) => {
    const text = answer(
      id,
      `{"structuredContent":{"a":"${' '.repeat(random.below(30_000_000 * size))}"},"content":[]}`,
    );
    const [encoding, encode] = random.pick([
      ['gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', plain],
      ['gzip', plain],
      ['gzip, gzip', gzipSync],
    ] as const);
    const body = encode(text, { level: 1 });
    return {
      ...whole(random.next() < 0.7 ? body : body.subarray(0, random.below(body.length)), {
        ...json,
        'content-encoding': encoding,
      }),
      breaks: random.next() < 0.2,
    };
  },
  streams: (random, id, size) => {
    const event = (): string =>
      random.pick([
        () => `data: ${answer(id, JSON.stringify(task(random)))}\n\n`,
        () => `data: ${JSON.stringify(value(random))}\r\n\r\n`,
        () => ':\n'.repeat(random.below(2_000 * size)),
        () => (random.below(8) === 0 ? `id: ${random.below(9)}\n\n` : '\n'),
        () => `event: x\rdata\r\r`,
        () => `data: {"jsonrpc":"2.0","id":${random.below(9)},"method":"ping"}\n\n`,
        () => 'data:\n'.repeat(random.below(2_000 * size)),
        () => bytes(random, 64).toString('latin1'),
        () => 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n',
      ])();
    return {
      ...whole(Array.from({ length: random.below(12) }, event).join(''), stream),
      breaks: random.next() < 0.3,
    };
  },
  statuses: (random) =>
    whole(
      bytes(random, 2_000),
      random.pick([
        {},
        json,
        { 'content-type': 'text/html' },
        { 'retry-after': random.pick(['-1', '9'.repeat(40), 'x']) },
      ]),
      random.pick([201, 202, 204, 300, 304, 400, 401, 403, 404, 405, 418, 429, 500, 502, 503, 599]),
    ),
  redirects: (random) =>
    whole(
      '',
      {
        location: random.pick([
          '/mcp',
          '/a',
          'http://127.0.0.1:1/',
          'https://10.0.0.1/',
          '//[',
          '',
          'javascript:1',
          `/${'x'.repeat(random.below(8_000))}`,
          'http://a:b@127.0.0.1/',
        ]),
      },
      random.pick([301, 302, 303, 307, 308]),
    ),
  headers: (random, id) =>
    whole(answer(id, JSON.stringify(task(random))), {
      'content-type': random.pick([
        'application/json; charset=x',
        'text/plain',
        'APPLICATION/JSON',
        'application/x+json',
        ';',
        'text/event-stream',
      ]),
      'mcp-session-id': random.pick(['x', 'é', 'x'.repeat(4_000)]),
      'content-encoding': random.pick(['', 'identity', ' ']),
    }),
  breaks: (random, id) => ({
    ...whole(Buffer.from(answer(id, JSON.stringify(task(random)))).subarray(0, random.below(40))),
    breaks: true,
  }),
};

export const fuzzedAnswer = (kind: string, seed: number, id: number, size: number): FuzzedAnswer => ({
  kind,
  ...(KINDS[kind] as (typeof KINDS)[string])(randomOf(seed), id, size),
});
