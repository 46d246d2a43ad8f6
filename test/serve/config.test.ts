import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/serve/for-tests.ts';
import { folder, SECRET } from './kit.ts';

const LEGACY = 'a-legacy-secret-of-more-than-32-characters';
const env = {
  SINK_SECRET: SECRET,
  OLD_SECRET: `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
  LEGACY,
  SHORT: 'a-short-secret',
  DATABASE_URL: 'postgres://user:pass-word@127.0.0.1:5432/db',
  NO_URL: 'pass-word',
  EMPTY: '',
};

const HEAD = `publicUrl: https://buyer.example/webhooks/seller
sellers:
  - agentUrl: https://seller.example/mcp
sink: { url: http://127.0.0.1:3000/events, secrets: [{ env: SINK_SECRET }] }
`;

/** The mistakes of a file, without its name. */
function mistakes(yaml: string, files: Readonly<Record<string, string>> = {}): readonly string[] {
  const at = folder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at.path, name), text);
  const read = readConfig({ file: at.file('webhooks.yaml', yaml), cwd: at.path, env });
  return 'mistakes' in read ? read.mistakes.map((line) => line.replace(at.path, '…')) : [];
}

describe('a mistake is one line with file, line, column, path, what is wrong and what to write', () => {
  const ROWS: readonly (readonly [string, string, ...RegExp[]])[] = [
    [
      'nothing',
      '',
      /^webhooks\.yaml:1:1 publicUrl: is missing\. Write the URL/,
      /^webhooks\.yaml:1:1 sellers: is missing\. Write/,
      /^webhooks\.yaml:1:1 sink: is missing\. Write \{ url/,
    ],
    ['no mapping', 'hello', /^webhooks\.yaml:1:1 is not a mapping\. Write publicUrl, sellers and sink\.$/],
    [
      'a member that is not known',
      `${HEAD}storage: x\n`,
      /^webhooks\.yaml:5:1 storage: is not known\. Known here: publicUrl, sellers, sink,/,
    ],
    ['__proto__', `${HEAD}__proto__: { a: 1 }\n`, /^webhooks\.yaml:5:1 __proto__: is not known\./],
    [
      'one deep down',
      HEAD.replace('/mcp\n', '/mcp\n    agenturl: x\n'),
      /^webhooks\.yaml:4:5 sellers\[0\]\.agenturl: is not known\. Known here: agentUrl, path, auth/,
    ],
    ['an empty member', `${HEAD}store:\n`, /^webhooks\.yaml:5:1 store: is empty\. Write one of \{ sqlite/],
    [
      'another type',
      `${HEAD}listen: { port: '80' }\n`,
      /^webhooks\.yaml:5:11 listen\.port: is not a whole number from 0 to 65535\. Write one, e\.g\. 8080\.$/,
    ],
    [
      'out of range',
      `${HEAD}listen:\n  port: 70000\n`,
      /^webhooks\.yaml:6:3 listen\.port: is not a whole number from 0 to 65535/,
    ],
    [
      'no whole number',
      `${HEAD}limits: { maxBodyBytes: 1.5 }\n`,
      /^webhooks\.yaml:5:11 limits\.maxBodyBytes: is not a whole number/,
    ],
    [
      'a retention that the contract forbids',
      `${HEAD}limits: { retentionMs: 1000 }\n`,
      /^webhooks\.yaml:5:11 limits\.retentionMs: is not a whole number from 86400000 to 691200000/,
    ],
    ...['proto.task.completed', 'delivery_report', 'delivery-report.final', 'Task', 'task.done'].map(
      (name): (typeof ROWS)[number] => [
        `an event that none is called: ${name}`,
        `${HEAD}events: [task, ${name}]\n`,
        /^webhooks\.yaml:5:16 events\[1\]: is not the (name of an event|status of a task).*Write .*task\.completed/,
      ],
    ),
    [
      'a secret as the library takes it',
      HEAD.replace('/mcp\n', '/mcp\n    auth: { hmac: { secret: x } }\n'),
      /^webhooks\.yaml:4:13 sellers\[0\]\.auth\.hmac\.secrets: is missing\. Write \[\{ env: NAME \}\]/,
      /^webhooks\.yaml:4:21 sellers\[0\]\.auth\.hmac\.secret: is not known\. Known here: secrets\./,
    ],
    [
      'an event, beside others',
      `${HEAD}storage: x\nevents: [task.done]\nlisten: { port: x }\n`,
      /^webhooks\.yaml:5:1 storage: is not known/,
      /^webhooks\.yaml:6:10 events\[0\]: is not the status of a task/,
      /^webhooks\.yaml:7:11 listen\.port: is not a whole number/,
    ],
    [
      'two stores',
      `${HEAD}store: { sqlite: a.db, redis: { url: { env: LEGACY } } }\n`,
      /^webhooks\.yaml:5:1 store: is not one store\. Write one of/,
    ],
    ['another YAML', `%YAML 1.1\n---\n${HEAD}`, /^webhooks\.yaml:1:1 is YAML 1\.1\. Write 1\.2/],
    ['no store', `${HEAD}store: {}\n`, /^webhooks\.yaml:5:1 store: is not one store\. Write one of/],
    [
      'a store that is not known',
      `${HEAD}store: { oracle: x }\n`,
      /^webhooks\.yaml:5:1 store: is not one store\. Write one of/,
    ],
    [
      'a member of a store',
      `${HEAD}store: { postgres: { url: { env: DATABASE_URL }, shema: x } }\n`,
      /^webhooks\.yaml:5:50 store\.postgres\.shema: is not known\. Known here: url, schema, connections\./,
    ],
    [
      'a sink of two kinds',
      HEAD.replace('sink: {', 'sink: { module: ./a.js,'),
      /^webhooks\.yaml:4:1 sink: is not one sink\. Write/,
    ],
    [
      'a member of a sink',
      HEAD.replace('sink: {', 'sink: { timeoutMS: 5,'),
      /^webhooks\.yaml:4:9 sink\.timeoutMS: is not known\. Known here: url, secrets, headers, timeoutMs/,
    ],
    [
      'a sink without secrets',
      HEAD.replace(/, secrets.*/, ' }'),
      /^webhooks\.yaml:4:1 sink\.secrets: is missing\. Write \[\{ env: NAME \}\]/,
    ],
    [
      'three secrets',
      HEAD.replace('[{', '[{ env: OLD_SECRET }, { env: OLD_SECRET }, {'),
      /^webhooks\.yaml:4:44 sink\.secrets: has more than 2 items\./,
    ],
    [
      'a status that is none',
      `${HEAD}events: [task, task.complete]\n`,
      /^webhooks\.yaml:5:16 events\[1\]: is not the status of a task\. Write one of task\.submitted, .*task\.rejected\.$/,
    ],
    ['no events', `${HEAD}events: []\n`, /^webhooks\.yaml:5:1 events: is an empty list\. Write e\.g\./],
  ];

  it.each(ROWS.map(([name, yaml, ...expected]) => ({ name, yaml, expected })))(
    '$name',
    ({ yaml, expected }) => {
      expect(mistakes(yaml)).toEqual(expected.map((pattern) => expect.stringMatching(pattern) as string));
    },
  );
});

describe('what is no YAML of this file', () => {
  it.each([
    [
      'a duplicate key',
      `${HEAD}listen: {}\nlisten: {}\n`,
      /^webhooks\.yaml:6:1 the member is there twice\. Write it once\.$/,
    ],
    ['a second document', `${HEAD}---\na: 1\n`, /^webhooks\.yaml:5:1 a second document begins\./],
    ['a tag of its own', `${HEAD}store: !mine { sqlite: a }\n`, /^webhooks\.yaml:5:8 has a tag of its own\./],
    ['a tag of YAML', `${HEAD}store: { sqlite: !!str a }\n`, /^webhooks\.yaml:5:\d+ has a tag of its own\./],
    [
      'an anchor',
      HEAD.replace('publicUrl: ', 'publicUrl: &url '),
      /^webhooks\.yaml:1:\d+ has an alias or an anchor\. Write the value itself\.$/,
    ],
    [
      'a quote that is not closed',
      `${HEAD}hostCheck: "strict\n`,
      /^webhooks\.yaml:\d+:\d+ a quote, a bracket, a comma or a colon is missing\./,
    ],
    [
      'indentation',
      HEAD.replace('  - agentUrl', '  - agentUrl: x\n brandJsonUrl'),
      /^webhooks\.yaml:\d+:\d+ /,
    ],
    ['a tab', `${HEAD}listen:\n\tport: 1\n`, /^webhooks\.yaml:6:1 a tab indents\./],
  ] as const)('%s', (_, yaml, expected) => {
    expect(mistakes(yaml)[0]).toMatch(expected);
  });

  it('aliases that make much of little are refused before they are written out', () => {
    const lines = Array.from(
      { length: 30 },
      (_, n) => `a${n}: &a${n} [${n === 0 ? '1' : `*a${n - 1}, *a${n - 1}`}]`,
    );
    const found = mistakes(`${HEAD}${lines.join('\n')}\n`);
    expect(found.length).toBeGreaterThan(30);
    expect(new Set(found.map((line) => line.replace(/^\S+ /, '')))).toEqual(
      new Set(['has an alias or an anchor. Write the value itself.']),
    );
  });

  it('a file that is not there, a folder, bytes that are no UTF-8, a file without an end', () => {
    const at = folder();
    writeFileSync(join(at.path, 'latin1.yaml'), Buffer.from([0x61, 0xe9]));
    writeFileSync(join(at.path, 'long.yaml'), 'a'.repeat(1_048_577));
    const first = (file: string): unknown => readConfig({ file, cwd: at.path, env });
    const EXPECTED = 'Expected the configuration of serve, a YAML file.';
    expect(first('none.yaml')).toEqual({ mistakes: [`none.yaml: there is no such file. ${EXPECTED}`] });
    expect(first('.')).toEqual({ mistakes: [`.: it is a folder. ${EXPECTED}`] });
    expect(first('latin1.yaml')).toEqual({ mistakes: [`latin1.yaml: it is not UTF-8. ${EXPECTED}`] });
    expect(first('long.yaml')).toEqual({
      mistakes: [`long.yaml: it is longer than 1048576 bytes. ${EXPECTED}`],
    });
  });
});

describe('values that the library refuses', () => {
  const seller = (more: string): string => HEAD.replace('/mcp\n', `/mcp\n${more}\n`);
  it.each([
    [
      'a URL of ours',
      HEAD.replace('https://buyer', 'http://buyer'),
      /^webhooks\.yaml:1:1 publicUrl: "http:\/\/buyer.*is not https\..*allowLoopback: true\.$/,
    ],
    [
      'a router’s pattern',
      HEAD.replace('webhooks/seller', 'webhooks/:id'),
      /^webhooks\.yaml:1:1 publicUrl: .*has the parameter :id/,
    ],
    [
      'an agent URL',
      HEAD.replace('https://seller.example', 'http://user:pass/word@seller.example'),
      /^webhooks\.yaml:3:5 sellers\[0\]\.agentUrl: "http:\/\/…@seller\.example\/mcp" is not an absolute URL/,
    ],
    [
      'a domain',
      seller('    publishers: ["https://x/"]'),
      /^webhooks\.yaml:4:5 sellers\[0\]\.publishers: .* is not a domain/,
    ],
    ['an edition', seller('    edition: "9"'), /^webhooks\.yaml:4:5 sellers\[0\]\.edition: /],
    [
      'a short secret',
      seller('    auth:\n      hmac:\n        secrets: [{ env: SHORT }]'),
      /^webhooks\.yaml:5:7 sellers\[0\]\.auth\.hmac: must be a string of at least 32 characters\.$/,
    ],
    [
      'two kinds of auth on one URL',
      HEAD.replace(
        'sink:',
        '  - agentUrl: https://other.example/mcp\n    auth: { hmac: { secrets: [{ env: LEGACY }] } }\nsink:',
      ),
      /^webhooks\.yaml:5:5 sellers\[1\]\.auth: another seller of the same URL has another kind of auth \(signatures\)\. Let publicUrl end in \/\*/,
    ],
    [
      'one seller twice',
      HEAD.replace('sink:', '  - agentUrl: https://seller.example/mcp\nsink:'),
      /^webhooks\.yaml:2:1 sellers: https:\/\/seller\.example\/mcp is listed twice/,
    ],
    [
      'a path for one alone',
      HEAD.replace('sink:', '  - agentUrl: https://other.example/mcp\n    path: /webhooks/other\nsink:'),
      /^webhooks\.yaml:3:5 sellers\[0\]: has no path/,
    ],
    [
      'a path that is not below',
      seller('    path: /hooks').replace('/webhooks/seller', '/webhooks/*'),
      /^webhooks\.yaml:4:5 sellers\[0\]\.path: is not under publicUrl/,
    ],
    [
      'paths without a prefix',
      seller('    path: /hooks'),
      /^webhooks\.yaml:2:1 sellers: has paths, but publicUrl is one URL/,
    ],
    [
      'a URL of the sink',
      HEAD.replace('http://127', 'ftp://127'),
      /^webhooks\.yaml:4:9 sink\.url: is ftp: Give one/,
    ],
    [
      'a field of the sink',
      HEAD.replace('sink: {', 'sink: { headers: { webhook-id: { env: SHORT } },'),
      /^webhooks\.yaml:4:9 sink\.headers: webhook-id is set by the sink itself/,
    ],
    [
      'a module that is not there',
      HEAD.replace(/sink:.*/, 'sink: ./mine.js'),
      /^webhooks\.yaml:4:1 sink: the module …\/mine\.js is not there\./,
    ],
    [
      'a folder that is not there',
      `${HEAD}store: { sqlite: away/webhooks.db }\n`,
      /^webhooks\.yaml:5:10 store\.sqlite: the folder …\/away is not there\. Mount it, or run: mkdir -p /,
    ],
  ])('%s', (_, yaml, expected) => {
    const found = mistakes(yaml);
    expect(found).toEqual([expect.stringMatching(expected)]);
  });
});

describe('secrets', () => {
  const sink = (place: string): string => HEAD.replace('{ env: SINK_SECRET }', place);
  const files = { good: `${SECRET}\n`, windows: `${SECRET}\r\n`, two: `${SECRET}\n\n`, none: '\n' };
  it.each([
    [
      'in the file',
      `'${SECRET}'`,
      /^webhooks\.yaml:4:54 sink\.secrets\[0\]: is not the place of a secret\. Write \{ env: NAME \} or \{ file: path \}/,
    ],
    [
      'two places',
      '{ env: A, file: b }',
      /^webhooks\.yaml:4:54 sink\.secrets\[0\]: is not the place of a secret\./,
    ],
    [
      'a variable that is not set',
      '{ env: AWAY }',
      /^webhooks\.yaml:4:56 sink\.secrets\[0\]\.env: the environment variable AWAY is not set\./,
    ],
    [
      'an empty one',
      '{ env: EMPTY }',
      /^webhooks\.yaml:4:56 sink\.secrets\[0\]\.env: the environment variable EMPTY is not set\./,
    ],
    [
      'one that is no whsec_',
      '{ env: SHORT }',
      /^webhooks\.yaml:4:54 sink\.secrets\[0\]: does not begin with "whsec_"/,
    ],
    [
      'a file that is not there',
      '{ file: away }',
      /^webhooks\.yaml:4:56 sink\.secrets\[0\]\.file: the file away cannot be read: there is no such file\./,
    ],
    [
      'a secret for the name of its variable',
      `{ env: ${SECRET} }`,
      /^webhooks\.yaml:4:56 sink\.secrets\[0\]\.env: the environment variable is not set\. Set it to the secret\.$/,
    ],
    [
      'a URL for the path of a file',
      "{ file: 'postgres://user:pass-word@host/db' }",
      /^webhooks\.yaml:4:56 sink\.secrets\[0\]\.file: the file cannot be read: there is no such file\. Write/,
    ],
    ['a folder', '{ file: . }', /sink\.secrets\[0\]\.file: the file \. cannot be read: it is a folder\./],
    ['an empty file', '{ file: none }', /sink\.secrets\[0\]\.file: the file none is empty\./],
    ['two line ends', '{ file: two }', /^webhooks\.yaml:4:54 sink\.secrets\[0\]: is not base64/],
  ])('%s', (_, place, expected) => {
    expect(mistakes(sink(place), files)).toEqual([expect.stringMatching(expected)]);
  });

  it.each(['good', 'windows'])('one line end at the end of a file is no part of it: %s', (name) => {
    expect(mistakes(sink(`{ file: ${name} }`), files)).toEqual([]);
  });

  it('the URL of a server is one', () => {
    const store = (place: string): readonly string[] =>
      mistakes(`${HEAD}store: { postgres: { url: ${place} } }\n`);
    expect(store('postgres://user:pass-word@h/db')[0]).toMatch(
      /^webhooks\.yaml:5:22 store\.postgres\.url: is not the place of a secret\./,
    );
    expect(store('{ env: NO_URL }')[0]).toMatch(
      /^webhooks\.yaml:5:22 store\.postgres\.url: the secret is not a URL of postgres\./,
    );
    expect(store('{ env: DATABASE_URL }')).toEqual([]);
  });
});

it('every mistake is told at once, in the order of the file, and none has a secret in it', () => {
  const found = mistakes(`publicUrl: http://user:pass-word@buyer.example/x
sellers:
  - agentUrl: 5
  - agentUrl: https://legacy.example/mcp
    auth: { hmac: { secrets: [{ env: SHORT }] } }
  - agentUrl: https://other.example/mcp
    auth: { bearer: { tokens: ['${LEGACY}'] } }
  - agentUrl: https://third.example/mcp
    notificationToken: { tokens: [{ file: away }] }
sink:
  url: nowhere
  secrets: [{ env: SHORT }, { env: AWAY }, ]
store: { postgres: { url: { env: NO_URL } } }
listen: { port: x }
hostcheck: off
`);
  expect(found.map((line) => line.split(': ')[0])).toEqual([
    'webhooks.yaml:1:1 publicUrl',
    'webhooks.yaml:3:5 sellers[0].agentUrl',
    'webhooks.yaml:5:13 sellers[1].auth.hmac',
    'webhooks.yaml:7:32 sellers[2].auth.bearer.tokens[0]',
    'webhooks.yaml:9:37 sellers[3].notificationToken.tokens[0].file',
    'webhooks.yaml:11:3 sink.url',
    'webhooks.yaml:12:13 sink.secrets[0]',
    'webhooks.yaml:12:31 sink.secrets[1].env',
    'webhooks.yaml:13:22 store.postgres.url',
    'webhooks.yaml:14:11 listen.port',
    'webhooks.yaml:15:1 hostcheck',
  ]);
  const all = found.join('\n');
  for (const secret of [...Object.values(env).filter((text) => text !== ''), 'pass-word'])
    expect(all).not.toContain(secret);
});

it('all of the file with every default, paths relative to it, and sellers by path', () => {
  const at = folder();
  const yaml = HEAD.replace('/webhooks/seller', '/webhooks/*').replace(
    /sellers:\n.*\n/,
    `sellers:
  - { agentUrl: https://seller.example/mcp, path: /webhooks/seller }
  - { agentUrl: https://legacy.example/mcp, path: /webhooks/legacy, auth: { hmac: { secrets: [{ env: LEGACY }] } } }
`,
  );
  const read = readConfig({ file: join(at.path, at.file('webhooks.yaml', yaml)), cwd: '/', env });
  expect(read).toEqual({
    config: {
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: {
        '/webhooks/seller': [{ agentUrl: 'https://seller.example/mcp' }],
        '/webhooks/legacy': [{ agentUrl: 'https://legacy.example/mcp', auth: { hmac: { secret: LEGACY } } }],
      },
      sink: {
        kind: 'http',
        url: 'http://127.0.0.1:3000/events',
        secrets: [SECRET],
        headers: {},
        timeoutMs: 15_000,
        concurrency: 16,
        attempts: 20,
      },
      store: { kind: 'sqlite', path: join(at.path, 'data/webhooks.db'), isDefault: true },
      listen: { host: '127.0.0.1', port: 8080 },
      health: { host: '127.0.0.1', port: 8081, metrics: false },
      limits: {
        maxBodyBytes: 1_048_576,
        maxRecordsPerSender: 1_000_000,
        maxPendingBytesPerSender: 268_435_456,
        retentionMs: 86_400_000,
      },
      hostCheck: 'strict',
      allowLoopback: false,
      folder: at.path,
    },
  });
});
