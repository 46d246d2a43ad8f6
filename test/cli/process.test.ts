import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { httpText } from '../../src/cli/for-tests.ts';
import { signHmac } from '../../src/sender/sign.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { freePort } from '../support/free-port.ts';
import { keys, signed, URL_GIVEN, withHeaders } from './explain/captures.ts';
import { bench, probeKeys, probeKit } from './probe/bench.ts';
import { CLI, cli, cliApart, cliOnTerminal } from './run-cli.ts';
import { tempFolder } from './temp-folder.ts';

const VERBS = [
  'explain',
  'send',
  'vectors probe',
  'vectors run',
  'keys check',
  'keys generate',
  'inbox list',
  'inbox show',
  'inbox redrive',
  'inbox discard',
  'tasks',
  'owed',
  'state',
  'serve',
];

// oxlint-disable-next-line no-control-regex
const ESCAPE = /\u001b\[/;

async function keyFiles(folder: {
  file: (name: string) => string;
}): Promise<{ jwks: string; probe: string }> {
  const { ed25519, p256, other } = await keys();
  writeFileSync(
    folder.file('jwks.json'),
    JSON.stringify({ keys: [ed25519.publicJwk, p256.publicJwk, other.publicJwk] }),
  );
  writeFileSync(
    folder.file('probe.json'),
    JSON.stringify({ keys: (await probeKeys()).map(({ privateJwk }) => privateJwk) }),
  );
  return { jwks: folder.file('jwks.json'), probe: folder.file('probe.json') };
}

it('--version: the package’s version', async () => {
  const own = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  expect(await cliApart(['--version'])).toMatchObject({ code: 0, stdout: `${own.version}\n`, stderr: '' });
});

it('without arguments the command line says in one line what there is', async () => {
  const { code, stdout, stderr } = await cli([]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(
    /^proto-webhooks: name a command: explain, send, .*\. --help says what each does\.\n$/,
  );
});

describe('--help', () => {
  it.concurrent.each(VERBS)('%s: with examples that begin with it', async (verb) => {
    const { code, stdout, stderr } = await cli([...verb.split(' '), '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('--json');
    expect(stdout.split('Examples:')[1]).toContain(`$ proto-webhooks ${verb}`);
  });

  it('of the program: every group, and the exit codes', async () => {
    const { code, stdout } = await cli(['--help']);
    expect(code).toBe(0);
    for (const word of ['explain', 'send', 'vectors', 'keys', 'inbox', 'Exit codes: 0 pass, 1 fail, 2 usage'])
      expect(stdout).toContain(word);
  });
});

describe('bad input ends with 2 and one line on stderr with what was expected', () => {
  const URL = 'http://127.0.0.1:9/hook';
  it.concurrent.each([
    [
      'no file',
      ['explain', 'nowhere.http', '--keys', 'k'],
      /nowhere.http: there is no such file. Expected a captured delivery/,
    ],
    [
      'a directory',
      ['explain', '.', '--keys', 'k'],
      /^proto-webhooks: \.: it is a directory\. Expected a captured delivery \(a folder of them: --dir\), or - for standard input\.$/m,
    ],
    [
      'an unknown shape',
      ['explain', 'prose.txt', '--keys', 'jwks.json'],
      /prose.txt: unknown shape. Expected a raw HTTP request/,
    ],
    [
      'a truncated capture',
      ['explain', 'cut.http', '--keys', 'jwks.json'],
      /cut.http: cut short inside the body: 8 of its 10 bytes are missing/,
    ],
    ['no keys', ['explain', 'good.http'], /no key to verify with. Give --keys FILE/],
    ['keys that are none', ['explain', 'good.http', '--keys', 'prose.txt'], /prose.txt: no JSON object/],
    [
      'a URL that is none',
      ['vectors', 'probe', 'buyer', '--keys', 'probe.json'],
      /"buyer" is not a URL. Expected an absolute one/,
    ],
    [
      'an unreachable receiver',
      ['vectors', 'probe', URL, '--keys', 'probe.json'],
      /nothing answers there \(connection error\). Expected a running receiver/,
    ],
    ['an unreachable URL to send to', ['send', URL, '--keys', 'probe.json'], /nothing answers there/],
    ['public keys to probe with', ['vectors', 'probe', URL, '--keys', 'jwks.json'], /no private part/],
    [
      'a case that is none',
      ['vectors', 'probe', URL, '--keys', 'probe.json', '--only', 'nonsense'],
      /--only nonsense: no such case/,
    ],
    [
      'a mistake that is none',
      ['send', URL, '--keys', 'probe.json', '--mistake', 'nonsense'],
      /Allowed choices are unsigned, .*tampered-body/,
    ],
    [
      'an unreachable agent',
      ['keys', 'check', 'http://127.0.0.1:9/mcp', '--allow-loopback'],
      /cannot be reached .*Expected the brand.json of/,
    ],
    [
      'a secret that is not set',
      ['send', URL, '--hmac-secret-env', 'NOT_SET_AT_ALL'],
      /NOT_SET_AT_ALL: not set/,
    ],
    [
      'no store',
      ['inbox', 'list'],
      /Expected one of --sqlite FILE, --postgres \[URL\], --mysql \[URL\], --redis \[URL\]/,
    ],
    [
      'a database that is not there',
      ['inbox', 'list', '--sqlite', 'none.db'],
      /none.db: there is no such file/,
    ],
    [
      'an unreachable database',
      ['inbox', 'list', '--postgres', 'postgres://127.0.0.1:9/x'],
      /proto-webhooks: ./,
    ],
    [
      'a state that is none',
      ['inbox', 'list', '--state', 'lost', '--sqlite', 'x'],
      /Allowed choices are dead, queued, leased/,
    ],
    ...[
      ['--stale', '--replay'],
      ['--stale', '--tamper'],
      ['--stale', '--report', 'final'],
      ['--tamper', '--replay'],
      ['--tamper', '--duplicate'],
      ['--tamper', '--expired'],
      ['--mistake', 'not-json', '--replay'],
      ['--report', 'delayed', '--transport', 'agent'],
      ['--report', 'delayed', '--family', 'impairment'],
      ['--family', 'impairment', '--status', 'completed'],
      ['--body', 'x.json', '--status', 'working'],
      ['--hmac-secret-env', 'PATH', '--expired'],
      ['--bearer-token-file', 'x', '--mistake', 'wrong-tag'],
    ].map((flags): [string, string[], RegExp] => [
      `send: ${flags.join(' ')}`,
      ['send', 'http://127.0.0.1:9/', '--keys', 'probe.json', ...flags],
      /--[-a-z]+ and --[-a-z ]+: .*Expected one of them/,
    ]),
    [
      'a file without an end',
      ['explain', '/dev/zero', '--keys', 'jwks.json'],
      /\/dev\/zero: longer than 67108864 bytes. Expected a captured delivery/,
    ],
    [
      'a body of anywhere on this machine',
      ['explain', 'endless.sh', '--keys', 'jwks.json'],
      /names the file "\/dev\/zero", which is not read: .* Put the body into the command/,
    ],
    [
      'an instant past all dates',
      ['explain', 'good.http', '--keys', 'jwks.json', '--received-at', '9999999999999999'],
      /is not an instant. Expected Unix seconds/,
    ],
    ['an unknown verb', ['nonsense'], /^proto-webhooks: unknown command 'nonsense'/],
    ['an unknown option', ['explain', 'x', '--nonsense'], /^proto-webhooks: unknown option '--nonsense'/],
    ['a missing argument', ['send'], /^proto-webhooks: missing required argument 'url'/],
    ...(
      [
        [['http://127.0.0.1:9/mcp'], /^proto-webhooks: agent URL: .* give --allow-loopback\./],
        [['https://s.example/mcp', '--brand-json', 'ftp://x'], /^proto-webhooks: --brand-json: "ftp:/],
        [['https://s.example/mcp', '--publisher', 'https://x/'], /^proto-webhooks: --publisher: "https:/],
        [['https://s.example/mcp', '--revocations', 'x'], /^proto-webhooks: --revocations: "x" is not/],
        [
          ['https://s.example/mcp', '--protocol', 'A_b'],
          /^proto-webhooks: --protocol: .* --protocol proto\./,
        ],
      ] as const
    ).map(([args, message]): [string, string[], RegExp] => [
      `keys check ${args.join(' ')}: by the names of the command line`,
      ['keys', 'check', ...args],
      message,
    ]),
  ])('%s', async (_, args, message) => {
    using folder = tempFolder();
    await keyFiles(folder);
    writeFileSync(folder.file('prose.txt'), 'hello');
    writeFileSync(folder.file('endless.sh'), 'curl https://buyer.example/hook --data-binary @/dev/zero');
    writeFileSync(folder.file('cut.http'), 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{}');
    writeFileSync(folder.file('good.http'), httpText(await signed()));
    const { code, stdout, stderr } = await cli(args, { cwd: folder.path });
    expect(stderr).toMatch(message);
    expect({ code, stdout, lines: stderr.trim().split('\n').length }).toEqual({
      code: 2,
      stdout: '',
      lines: 1,
    });
  });
});

describe('bad input with --json', () => {
  it.concurrent.each([
    ['a missing argument', ['send', '--json'], 'usage', /missing required argument 'url'/],
    [
      'no such file',
      ['explain', 'nowhere.http', '--json', '--keys', 'k'],
      'usage',
      /nowhere.http: there is no/,
    ],
    [
      'an option that the package refuses',
      ['keys', 'generate', '--json', '--protocol', 'A_b'],
      'config_error',
      /is not a protocol name/,
    ],
    [
      'an unreachable database',
      ['inbox', 'list', '--json', '--postgres', 'postgres://127.0.0.1:9/x'],
      'store_unavailable',
      /./,
    ],
  ])('%s: 2, the code and the message as JSON, and the line on stderr', async (_, args, code, message) => {
    const ended = await cli(args);
    const { error } = JSON.parse(ended.stdout) as { error: { code: string; message: string } };
    expect(ended.code).toBe(2);
    expect(error).toEqual({ code, message: expect.stringMatching(message) as string });
    expect(ended.stderr).toBe(`proto-webhooks: ${error.message}\n`);
  });
});

describe('explain', () => {
  it('passes a good capture with 0, and one from standard input', async () => {
    using folder = tempFolder();
    const { jwks } = await keyFiles(folder);
    const capture = httpText(await signed());
    const { code, stdout, stderr } = await cli(['explain', '-', '--keys', jwks, '--url', URL_GIVEN], {
      input: capture,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('A receiver would accept this delivery');
    expect(stdout).not.toMatch(ESCAPE);
  });

  it('fails with 1, names cause and fix, and says the same as JSON', async () => {
    using folder = tempFolder();
    const { jwks } = await keyFiles(folder);
    writeFileSync(folder.file('a.http'), httpText(await signed({ url: URL_GIVEN.replace('https', 'http') })));
    const args = ['explain', folder.file('a.http'), '--keys', jwks, '--url', URL_GIVEN];
    const text = await cli(args);
    expect(text.code).toBe(1);
    expect(text.stdout).toMatch(/FAIL {2}10 .*webhook_signature_invalid/);
    expect(text.stdout).toContain(
      'Cause (scheme, step 10): The seller signed an http URL, and the configured one says https.',
    );
    const json = await cli([...args, '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      findings: [{ cause: 'scheme', step: '10', proved: true }],
    });
  });

  it('finds the keys of an agent, and its revoked ones', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    using folder = tempFolder();
    writeFileSync(folder.file('a.http'), httpText(await seller.sign(seller.payloads.tool('completed'))));
    const args = [
      'explain',
      folder.file('a.http'),
      '--agent-url',
      seller.agentUrl,
      '--allow-loopback',
      '--url',
      URL_GIVEN,
    ];
    expect((await cli(args)).code).toBe(0);
    seller.revoke([String(seller.keys.ed25519.publicJwk['kid'])]);
    const { code, stdout } = await cli([...args, '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ findings: [{ step: '9', cause: 'key-missing' }] });
  });

  it('takes path and query from the request under a publicUrl that ends in /*', async () => {
    using folder = tempFolder();
    const { jwks } = await keyFiles(folder);
    writeFileSync(folder.file('a.http'), httpText(await signed()));
    const args = ['explain', folder.file('a.http'), '--keys', jwks, '--url'];
    expect((await cli([...args, 'https://buyer.example/webhooks/*'])).code).toBe(0);
    const outside = await cli([...args, 'https://buyer.example/hooks/*']);
    expect(outside.code).toBe(2);
    expect(outside.stderr).toContain('which is not under it');
    const odd = await cli([...args, 'https://buyer.example:99999/x']);
    expect({ code: odd.code, lines: odd.stderr.trim().split('\n').length }).toEqual({ code: 2, lines: 1 });
  });

  it('takes each URL of a receiver that has several, and goes by the one that Host names', async () => {
    using folder = tempFolder();
    const { jwks } = await keyFiles(folder);
    const capture = httpText(await signed());
    writeFileSync(folder.file('a.http'), capture);
    writeFileSync(folder.file('b.http'), capture.replace(/^host: .*$/im, 'Host: old.example'));
    const urls = ['--url', 'https://old.example/*', '--url', 'https://buyer.example/webhooks/*', '--json'];
    const explained = async (file: string, ...more: string[]): Promise<unknown> =>
      JSON.parse((await cli(['explain', folder.file(file), '--keys', jwks, ...urls, ...more])).stdout);
    expect(await explained('a.http')).toMatchObject({ ok: true, url: URL_GIVEN });
    expect(await explained('b.http')).toMatchObject({
      ok: false,
      url: URL_GIVEN,
      findings: [{ cause: 'host-rewritten', step: '10' }],
    });
    expect(await explained('b.http', '--host-check', 'off')).toMatchObject({ ok: true, url: URL_GIVEN });
  });

  it('names the broken step of an agent’s chain', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    seller.faults.set('/.well-known/jwks.json', 'html');
    using folder = tempFolder();
    writeFileSync(folder.file('a.http'), httpText(await signed()));
    const { code, stderr } = await cli([
      'explain',
      folder.file('a.http'),
      '--agent-url',
      seller.agentUrl,
      '--allow-loopback',
    ]);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^proto-webhooks: no keys of .*JWKS at .* proto-webhooks keys check shows the whole chain.\n$/,
    );
  });

  it('takes the time of receipt, the keys.json beside a vector, and a legacy secret from a file', async () => {
    using folder = tempFolder();
    const { jwks } = await keyFiles(folder);
    const delivery = await signed();
    writeFileSync(folder.file('a.http'), httpText(delivery));
    const late = await cli([
      'explain',
      folder.file('a.http'),
      '--keys',
      jwks,
      '--url',
      URL_GIVEN,
      '--received-at',
      '2026-01-31T14:00:00Z',
      '--json',
    ]);
    expect(JSON.parse(late.stdout)).toMatchObject({ findings: [{ cause: 'clock-zone' }] });
    writeFileSync(folder.file('keys.json'), readFileSync(jwks));
    writeFileSync(
      folder.file('v.json'),
      JSON.stringify({
        reference_now: Date.UTC(2026, 0, 31, 12) / 1000,
        request: { ...delivery, body: new TextDecoder().decode(delivery.body) },
      }),
    );
    expect((await cli(['explain', folder.file('v.json')])).code).toBe(0);
    const secret = 'h-'.repeat(20);
    writeFileSync(folder.file('secret'), `${secret}\n`);
    writeFileSync(folder.file('h.http'), httpText(signHmac({ url: URL_GIVEN, body: '{}', secret })));
    const legacy = await cli([
      'explain',
      folder.file('h.http'),
      '--hmac-secret-file',
      folder.file('secret'),
      '--json',
    ]);
    expect(JSON.parse(legacy.stdout)).toMatchObject({
      steps: expect.arrayContaining([expect.objectContaining({ id: 'hmac', verdict: 'pass' })]),
    });
    expect(legacy.stdout).not.toContain(secret);
  });
});

describe('vectors run', () => {
  it('runs the package’s own vectors with 0, one line per vector, and the total', async () => {
    const { code, stdout } = await cli(['vectors', 'run']);
    const lines = stdout.trim().split('\n');
    expect(lines.at(-1)).toMatch(/^[1-9]\d* passed, 0 failed$/);
    expect(lines.length - 1).toBe(Number.parseInt(lines.at(-1) ?? '', 10));
    expect(code).toBe(0);
  });

  it('fails with 1 when a vector does, and says what was expected', async () => {
    using folder = tempFolder();
    const vector = {
      cases: [
        {
          name: 'upper case',
          input_url: 'https://A.example/',
          expected_target_uri: 'https://A.example/',
          expected_authority: 'a.example',
        },
      ],
    };
    writeFileSync(folder.file('wrong.json'), JSON.stringify(vector));
    const { code, stdout } = await cli(['vectors', 'run', folder.file('wrong.json'), '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, results: [{ passed: false, name: 'upper case' }] });
    const shown = await cli(['vectors', 'run', folder.path]);
    expect(shown.code).toBe(1);
    expect(shown.stdout).toContain('0 passed, 1 failed');
  });

  it('does not pass what it does not understand: an error, or named and counted', async () => {
    using folder = tempFolder();
    const entry = { name: 'n', input_url: 'https://a.example', expected_target_uri: 'https://a.example/' };
    writeFileSync(folder.file('a.json'), JSON.stringify({ cases: [{ ...entry, expected_port: 443 }] }));
    writeFileSync(folder.file('b.json'), JSON.stringify({ cases: [{ ...entry, requires: 'x' }] }));
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [] }));
    const shown = await cli(['vectors', 'run', folder.path]);
    expect(shown.code).toBe(1);
    expect(shown.stdout).toContain('expected_port is not known');
    expect(shown.stdout.trim().split('\n').slice(-3)).toEqual([
      'ignored: 1 member requires: not known',
      'not judged: 1 file jwks.json: a key set',
      '1 passed, 1 failed, 1 not judged',
    ]);
    const declared = await cli(['vectors', 'run', folder.path, '--ignore', 'expected_port', '--json']);
    expect(declared.code).toBe(0);
    expect(JSON.parse(declared.stdout)).toMatchObject({
      ok: true,
      skipped: [
        { what: 'member', name: 'expected_port', why: 'named in ignore' },
        { what: 'member', name: 'requires', why: 'not known' },
        { what: 'file', name: 'jwks.json' },
      ],
    });
  });

  it('judges published files by their members; what it cannot judge neither passes nor fails', async () => {
    using folder = tempFolder();
    const response = { isError: true, structuredContent: { adcp_error: { code: 'CONFLICT', message: 'm' } } };
    const error = { id: 'busy', transport: 'mcp', path: 'structuredContent', response };
    const expected = { expected_error: { code: 'CONFLICT' }, expected_action: 'retry' };
    const [errors, strange] = [folder.file('errors.json'), folder.file('strange.json')];
    writeFileSync(errors, JSON.stringify({ version: 1, vectors: [{ ...error, ...expected }] }));
    writeFileSync(strange, JSON.stringify({ version: 1, vectors: [{ id: 'x', colour: 'blue' }] }));
    const both = await cli(['vectors', 'run', errors, strange]);
    expect(both.code).toBe(0);
    expect(both.stdout.trim().split('\n')).toEqual([
      'ok   error busy',
      'not judged: 1 file strange: no known kind of vectors: vectors has members id, colour',
      '1 passed, 0 failed, 1 not judged',
    ]);
    const alone = await cli(['vectors', 'run', strange]);
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringMatching(/nothing in it can be judged/)]);
  });

  it('rejects a folder without a usable vector', async () => {
    using folder = tempFolder();
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [] }));
    const { code, stderr } = await cli(['vectors', 'run', folder.path]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/has no vectors: .*; skipped: jwks\.json \(a key set\)/);
  });
});

describe('vectors probe', () => {
  it('passes our receiver with 0, by pins that were printed ready to paste', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const config = await cli(['vectors', 'probe', 'http://127.0.0.1:9/', '--keys', probe, '--print-config']);
    expect(config.code).toBe(0);
    expect(config.stdout).not.toContain('"d":');
    // What was printed is an option of createReceiver, as it stands.
    writeFileSync(folder.file('config.mjs'), `export const config = { ${config.stdout} };`);
    const { config: pasted } = (await import(folder.file('config.mjs'))) as {
      config: Parameters<typeof bench>[0];
    };
    await using setup = await bench(pasted);
    const { code, stdout } = await cli(['vectors', 'probe', setup.url, '--keys', probe]);
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^\d+ passed, 0 failed, 1 skipped$/);
    expect(code).toBe(0);
  });

  it('probes each URL of a receiver that has several, and what is signed for one at another', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const urls = ['https://new.example/webhooks/proto', 'https://old.example/webhooks/proto'];
    const config = await cli(['vectors', 'probe', ...urls, '--keys', probe, '--print-config']);
    writeFileSync(folder.file('config.mjs'), `export const config = { ${config.stdout} };`);
    const { config: pasted } = (await import(folder.file('config.mjs'))) as {
      config: Parameters<typeof bench>[0];
    };
    const grade = async (publicUrl: string | readonly string[]): Promise<unknown> => {
      await using setup = await bench({ ...pasted, publicUrl });
      const only = ['--only', 'other-url', '--only', 'stale', '--json'];
      const { stdout } = await cli([
        'vectors',
        'probe',
        ...urls,
        '--keys',
        probe,
        '--to',
        setup.url,
        ...only,
      ]);
      const { ok, urls: each } = JSON.parse(stdout) as {
        ok: boolean;
        urls: { results: { answered: string }[] }[];
      };
      return [ok, ...each.map(({ results }) => results.map(({ answered }) => answered))];
    };
    expect(await grade(urls)).toEqual([true, ['200', '503'], ['200', '503']]);
    // One that has not the second: nothing that it is given there is accepted.
    expect(await grade(urls.slice(0, 1))).toEqual([
      false,
      ['200', '503'],
      ['-', '401 webhook_signature_invalid'],
    ]);
  });

  it('passes it with a fake seller too, and says what is missing where the receiver does not know it', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const port = await freePort();
    await using setup = await bench({ senders: [{ agentUrl: `http://127.0.0.1:${port}/mcp` }] });
    const args = ['vectors', 'probe', setup.url, '--keys', probe, '--json'];
    const good = await cli([...args, '--fake-seller', String(port)]);
    expect(JSON.parse(good.stdout)).toMatchObject({
      ok: true,
      counts: { fail: 0, skipped: 1, undecided: 0 },
    });
    const elsewhere = await freePort();
    await using stranger = await bench({ senders: [{ agentUrl: `http://127.0.0.1:${elsewhere}/mcp` }] });
    const lost = await cli([
      'vectors',
      'probe',
      stranger.url,
      '--keys',
      probe,
      '--fake-seller',
      String(port),
      '--only',
      'tool-completed',
      '--wait-ms',
      '0',
      '--json',
    ]);
    expect(lost.code).toBe(1);
    const { hint } = JSON.parse(lost.stdout) as { hint: string };
    expect(hint).toContain('Every answer was 503');
    expect(hint).toContain('Nothing was requested here');
    expect(hint).toContain('or it remembers for up to 60 s');
    expect(hint).toContain(`senders: [{ agentUrl: 'http://127.0.0.1:${port}/mcp' }]`);
  });

  it('waits when the receiver has cached that the fake seller was absent', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const port = await freePort();
    // The receiver's clock goes on by requests: the second failure of a fetch is remembered for the same few of them.
    const start = Date.now();
    let asked = 0;
    await using setup = await bench(
      {
        senders: [{ agentUrl: `http://127.0.0.1:${port}/mcp` }],
        now: () => start + asked * 100,
        advanced: { retryAfterMs: 1_000 },
      },
      (inner) => (req, res) => {
        asked += 1;
        inner(req, res);
      },
    );
    const args = ['vectors', 'probe', setup.url, '--keys', probe, '--only', 'stale'];
    expect(await cli(args)).toMatchObject({ code: 1, stderr: '' });
    const served = await cli([...args, '--fake-seller', String(port)]);
    expect(served.stdout.trim().split('\n').at(-1)).toBe('1 passed, 0 failed, 0 skipped');
    expect(served.stderr).toMatch(
      /^The receiver answers a good delivery with 503: .* Waiting up to 65 s.\n$/,
    );
  });

  it('with the revoked key among the cases waits until the receiver has asked for the list of revoked keys, too', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const port = await freePort();
    // A receiver that has the keys from the fourth good delivery on, and asks for the list with the sixth.
    let good = 0;
    const listen: RequestListener = (req, res) => {
      const answer = async (): Promise<void> => {
        if ((await text(req)).includes('"submitted"')) good += 1;
        if (good === 6) await fetch(`http://127.0.0.1:${port}/.well-known/proto-revocations.json`);
        res.writeHead(good < 4 ? 503 : 200, { 'Retry-After': '1' }).end();
      };
      answer().catch(() => res.destroy());
    };
    await using setup = await bench({}, () => listen);
    const args = ['vectors', 'probe', setup.url, '--keys', probe, '--only', 'key-revoked'];
    await cli([...args, '--fake-seller', String(port)]);
    expect(good).toBe(6);
  });

  it('finds the revoked key refused by a receiver that `send` has shown the same fake seller before', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const port = await freePort();
    await using setup = await bench({ senders: [{ agentUrl: `http://127.0.0.1:${port}/mcp` }] });
    const served = ['--keys', probe, '--fake-seller', String(port)];
    expect(await cli(['send', setup.url, ...served])).toMatchObject({ code: 0, stderr: '' });
    const args = ['vectors', 'probe', setup.url, ...served];
    const { code, stdout } = await cli([...args, '--only', 'key-revoked', '--only', 'request-key']);
    expect(stdout.trim().split('\n').at(-1)).toBe('2 passed, 0 failed, 0 skipped');
    expect(code).toBe(0);
  });

  it('tries each name, and goes on with the one that the receiver takes, without a flag', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const args = (url: string) => ['vectors', 'probe', url, '--keys', probe, '--only', 'stale'];
    const lines = async (options: Parameters<typeof bench>[0], ...more: string[]) => {
      await using setup = await bench(options);
      const { code, stdout, stderr } = await cli([...args(setup.url), ...more]);
      expect(stderr).toBe('');
      return [code, ...stdout.split('\n').filter((line) => line.startsWith('name'))];
    };
    const line = (name: string, answered: string): string =>
      `name  ${name.padEnd(33)} a good delivery under this name  -> ${answered}`;
    const goesOn = '; the cases use it';
    const refused = '401 webhook_signature_tag_invalid';
    expect(await lines({})).toEqual([0, line('proto', `200${goesOn}`), line('adcp', '200')]);
    expect(await lines({ protocol: 'proto' })).toEqual([
      0,
      line('proto', `200${goesOn}`),
      line('adcp', refused),
    ]);
    expect(await lines({ protocol: 'adcp' })).toEqual([
      0,
      line('proto', refused),
      line('adcp', `200${goesOn}`),
    ]);
    // Whatever is wrong with it: the contract's name, and what both were answered.
    expect(await lines({ publicPath: '/elsewhere' })).toEqual([
      1,
      line('proto', `503${goesOn}`),
      line('adcp', '503'),
    ]);
    expect(await lines({ protocol: 'adcp' }, '--protocol', 'proto')).toEqual([1]);
    await using setup = await bench({ protocol: 'adcp' });
    const { stdout } = await cli([...args(setup.url), '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      counts: { pass: 1, fail: 0 },
      names: [
        { protocol: 'proto', answered: refused, goesOn: false },
        { protocol: 'adcp', answered: '200', goesOn: true },
      ],
    });
  });

  it('passes a receiver with hostCheck off when told so', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    await using setup = await bench({ hostCheck: 'off' });
    const args = ['vectors', 'probe', setup.url, '--keys', probe, '--only', 'host-differs'];
    expect((await cli([...args, '--host-check', 'off'])).code).toBe(0);
    expect((await cli(args)).code).toBe(1);
  });

  it('names what its agent’s documents lack when the receiver cannot have found the keys', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    await using seller = await createFakeSeller();
    await using setup = await bench({ senders: [{ agentUrl: seller.agentUrl }] });
    const args = [
      'vectors',
      'probe',
      setup.url,
      '--keys',
      probe,
      '--agent-url',
      seller.agentUrl,
      '--only',
      'tool-completed',
    ];
    const lacking = await cli(args);
    expect(lacking.code).toBe(1);
    expect(lacking.stdout).toContain(
      '401 webhook_signature_key_unknown: the receiver does not know these keys',
    );
    expect(lacking.stdout).toContain('Its JWKS lacks probe-ed25519');
    seller.faults.set('*', 'unavailable');
    await using late = await bench({ senders: [{ agentUrl: seller.agentUrl }] });
    const down = await cli([...args.slice(0, 2), late.url, ...args.slice(3)]);
    expect(down.stdout).toContain('Every answer was 503');
    expect(down.stdout).toMatch(/brand.json at .*: answered 503/);
  });

  it('fails a broken endpoint with 1 and prints what was expected', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    await using setup = await bench({}, () => (req, res) => void req.resume().on('end', () => res.end()));
    const { code, stdout } = await cli([
      'vectors',
      'probe',
      setup.url,
      '--keys',
      probe,
      '--only',
      'unsigned',
    ]);
    expect(code).toBe(1);
    expect(stdout).toContain('answered 200; expected 401 webhook_signature_header_malformed');
    expect(stdout.trim().endsWith('0 passed, 1 failed, 0 skipped')).toBe(true);
  });
});

describe('send', () => {
  it.concurrent.each([
    [['--transport', 'agent', '--status', 'working'], ['200']],
    [['--report', 'final'], ['200']],
    [['--family', 'impairment'], ['200']],
    [
      ['--duplicate', '--replay'],
      ['200', '200', '401 webhook_signature_replayed'],
    ],
    [['--stale'], ['200', '200']],
    [['--tamper'], ['401 webhook_signature_digest_mismatch']],
    [['--dup-key'], ['401 webhook_body_malformed']],
    [['--expired'], ['401 webhook_signature_window_invalid']],
    [['--mistake', 'text-plain'], ['415']],
  ])('%j', async (flags, answers) => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    await using setup = await bench();
    const { code, stdout } = await cli(['send', setup.url, '--keys', probe, ...flags]);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => /-> (.*)$/.exec(line)?.[1]),
    ).toEqual(answers);
    expect(code).toBe(0);
  });

  it('ends with 1 for another answer', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const server = createServer((req, res) => void req.resume().on('end', () => res.writeHead(500).end()));
    const port = await freePort();
    await once(server.listen(port, '127.0.0.1'), 'listening');
    const { code, stdout } = await cli(['send', `http://127.0.0.1:${port}/`, '--keys', probe]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'FAIL  the delivery -> 500, expected 2xx\n' });
    server.close();
  });

  it('ends with 1 when a success response is cut short', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const server = createServer((_req, res) => {
      res.writeHead(200, { 'Content-Length': '100' }).write('abc', () => res.destroy());
    });
    const port = await freePort();
    await once(server.listen(port, '127.0.0.1'), 'listening');
    const { code, stdout } = await cli(['send', `http://127.0.0.1:${port}/`, '--keys', probe]);
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: 'FAIL  the delivery -> 200 cut short, expected 2xx\n',
    });
    server.close();
  });

  it('prints what explain reads', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const { stdout } = await cli(['send', URL_GIVEN, '--keys', probe, '--tamper', '--print']);
    const explained = await cli(['explain', '-', '--keys', probe, '--url', URL_GIVEN, '--json'], {
      input: stdout,
    });
    expect(explained.code).toBe(1);
    expect(JSON.parse(explained.stdout)).toMatchObject({
      findings: [{ step: '11', cause: 'body-trailing-newline' }],
    });
  });

  it('sends bytes of a file, signed with a secret of the environment', async () => {
    using folder = tempFolder();
    const secret = 'e-'.repeat(20);
    await using setup = await bench({
      senders: [{ agentUrl: 'https://old.example/mcp', auth: { hmac: { secret } } }],
    });
    writeFileSync(
      folder.file('event.json'),
      JSON.stringify(
        { idempotency_key: crypto.randomUUID(), task_id: 't', status: 'completed', result: {} },
        undefined,
        2,
      ),
    );
    const args = [
      'send',
      setup.url,
      '--hmac-secret-env',
      'WEBHOOK_SECRET',
      '--body',
      folder.file('event.json'),
    ];
    const { code, stdout } = await cli(args, { env: { WEBHOOK_SECRET: secret } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'pass  the delivery -> 200\n' });
  });
});

describe('keys', () => {
  it('generate: private to a file of its own, public to standard output; never over another file', async () => {
    using folder = tempFolder();
    const made = await cli([
      'keys',
      'generate',
      '--alg',
      'p256',
      '--kid',
      'k',
      '--out',
      folder.file('k.json'),
    ]);
    expect(made.code).toBe(0);
    expect(JSON.parse(made.stdout)).toMatchObject({
      keys: [{ kid: 'k', crv: 'P-256', key_ops: ['verify'], proto_use: 'webhook-signing' }],
    });
    expect(made.stdout + made.stderr).not.toContain('"d":');
    expect(JSON.parse(readFileSync(folder.file('k.json'), 'utf8'))).toMatchObject({
      keys: [{ d: expect.any(String) as string }],
    });
    expect(statSync(folder.file('k.json')).mode & 0o777).toBe(0o600);
    const again = await cli(['keys', 'generate', '--out', folder.file('k.json')]);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain('exists already');
  });

  it('check: the whole chain, with 0; with 1 where it breaks', async () => {
    await using seller = await createFakeSeller();
    seller.revoke(['gone'], { form: 'compact' });
    const args = ['keys', 'check', seller.agentUrl, '--allow-loopback'];
    const good = await cli([...args, '--json']);
    expect(good.code).toBe(0);
    expect(JSON.parse(good.stdout)).toMatchObject({
      faults: [],
      links: [
        { document: 'brand.json', state: 'good' },
        { document: 'JWKS', state: 'good' },
        { document: 'revocation list', state: 'good' },
        { document: 'revocation list', state: 'absent' },
        { document: 'revocation list', state: 'absent' },
      ],
      keys: [{ editions: ['3.0', '3.1', '3.2', '3.3'], revoked: false }, { source: 'JWKS' }],
      revocation: { state: 'fresh', kids: ['gone'], signed: true },
    });
    expect((await cli(args)).stdout).toContain('A receiver would find the keys.');
    seller.faults.set('/.well-known/jwks.json', 'html');
    const broken = await cli(args);
    expect(broken.code).toBe(1);
    expect(broken.stdout).toMatch(/fault +JWKS at .*Deliveries are answered 503 keys_unavailable/);
    const wrong = await cli(['keys', 'check', `${seller.agentUrl}/`, '--allow-loopback']);
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toContain('differs in trailing slash');
  });

  it('check: a kid that another seller publishes too is a note, and no fault', async () => {
    await using seller = await createFakeSeller();
    await using other = await createFakeSeller();
    const { other: shared } = await keys();
    for (const { documents } of [seller, other]) {
      documents.set('/.well-known/jwks.json', { keys: [shared.publicJwk] });
    }
    const args = ['keys', 'check', seller.agentUrl, '--allow-loopback', '--json'];
    const alone = await cli(args);
    expect(JSON.parse(alone.stdout)).toMatchObject({ notes: [] });
    const { code, stdout } = await cli([...args, '--beside', other.agentUrl]);
    expect(code).toBe(0);
    const { notes } = JSON.parse(stdout) as { readonly notes: readonly string[] };
    expect(notes).toEqual([expect.stringContaining(`${other.agentUrl} publishes "third" too`)]);
  });

  it('check: pins of a publisher count instead of the JWKS', async () => {
    await using seller = await createFakeSeller();
    const { other } = await keys();
    seller.documents.set('/.well-known/adagents.json', {
      authorized_agents: [{ url: seller.agentUrl, signing_keys: [other.publicJwk] }],
    });
    const publisher = new URL(seller.agentUrl).host;
    const { code, stdout } = await cli([
      'keys',
      'check',
      seller.agentUrl,
      '--allow-loopback',
      '--publisher',
      publisher,
      '--json',
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ keys: [{ kid: 'third', source: 'adagents.json' }] });
  });

  it.each([
    ['JWKS', '/.well-known/jwks.json'],
    ['brand.json', '/.well-known/brand.json'],
  ])('check: accepts missing %s, which pins make unnecessary', async (name, path) => {
    await using seller = await createFakeSeller();
    const { other } = await keys();
    seller.documents.set('/.well-known/adagents.json', {
      authorized_agents: [{ url: seller.agentUrl, signing_keys: [other.publicJwk] }],
    });
    seller.documents.delete(path);
    const publishers = [new URL(seller.agentUrl).host];
    // What the receiver does is the measure.
    await using setup = await bench({ senders: [{ agentUrl: seller.agentUrl, publishers }] });
    const kit = await probeKit(setup.url, { keys: [other.privateJwk] });
    expect(await kit.send(await kit.sign(kit.payloads.tool('completed')))).toMatchObject({ status: 200 });
    const args = ['keys', 'check', seller.agentUrl, '--allow-loopback', '--publisher', ...publishers];
    const { code, stdout } = await cli(args);
    expect({ code, stdout }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(new RegExp(`note +${name} at .*Not needed: only the pinned keys count`));
    expect(stdout).toContain('A receiver would find the keys.');
  });

  it('check: with pins, where brand.json cannot be reached; a list without keys pins nothing', async () => {
    await using publisher = await createFakeSeller();
    const { other } = await keys();
    const agentUrl = `http://127.0.0.1:${await freePort()}/mcp`;
    const pin = (signing_keys: readonly object[]): void => {
      publisher.documents.set('/.well-known/adagents.json', {
        authorized_agents: [{ url: agentUrl, signing_keys }],
      });
    };
    const args = [
      'keys',
      'check',
      agentUrl,
      '--allow-loopback',
      '--publisher',
      new URL(publisher.agentUrl).host,
    ];
    pin([other.publicJwk]);
    expect(await cli([...args, '--json'])).toMatchObject({ code: 0, stderr: '' });
    pin([]);
    expect(await cli(args)).toMatchObject({ code: 2 });
  });

  it('check: applies the edition of the receiver to the keys', async () => {
    await using seller = await createFakeSeller();
    const request = (await probeKeys()).find(({ publicJwk }) => publicJwk['kid'] === 'probe-request');
    seller.documents.set('/.well-known/jwks.json', { keys: [request?.publicJwk] });
    const args = ['keys', 'check', seller.agentUrl, '--allow-loopback'];
    expect((await cli(args)).code).toBe(0);
    const strict = await cli([...args, '--edition', '3.0']);
    expect(strict.code).toBe(1);
    expect(strict.stdout).toMatch(/no key +probe-request +signs webhooks in edition 3.1, 3.2, 3.3, not 3.0/);
    expect(strict.stdout).toMatch(
      /fault +No key can sign webhooks in edition 3.0: deliveries are answered 401/,
    );
    expect((await cli([...args, '--edition', '3.1'])).code).toBe(0);
  });
});

it('an error that repeats much of a file is one line of bounded length', async () => {
  using folder = tempFolder();
  const vector = {
    request: { url: 'https://buyer.example/', headers: {}, body: '' },
    reference_now: 1,
    jwks_ref: [`k${' '.repeat(200_000)}${'x'.repeat(200_000)}`],
    expected_outcome: { success: true },
  };
  writeFileSync(folder.file('a.json'), JSON.stringify(vector));
  const { code, stderr } = await cli(['vectors', 'run', folder.file('a.json')]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^proto-webhooks: .*jwks_ref names .* …\n$/);
  expect(stderr.length).toBeLessThan(5000);
});

describe('foreign texts stay on one line', () => {
  const LINE = '\ngood        JWKS';

  it('keys check: a kid', async () => {
    await using seller = await createFakeSeller();
    const { other } = await keys();
    seller.documents.set('/.well-known/jwks.json', { keys: [{ ...other.publicJwk, kid: `k${LINE}` }] });
    const { stdout } = await cli(['keys', 'check', seller.agentUrl, '--allow-loopback']);
    expect(stdout).toContain('k?good        JWKS');
    expect(stdout).not.toContain(`k${LINE}`);
  });

  it('send: the code of an answer', async () => {
    using folder = tempFolder();
    const { probe } = await keyFiles(folder);
    const server = createServer((_req, res) => {
      res.writeHead(400).end(JSON.stringify({ error: { code: `c\u001b[8m${LINE}` } }));
    });
    const port = await freePort();
    await once(server.listen(port, '127.0.0.1'), 'listening');
    const { code, stdout } = await cli(['send', `http://127.0.0.1:${port}/`, '--keys', probe]);
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: 'FAIL  the delivery -> 400 c?[8m?good        JWKS, expected 2xx\n',
    });
    server.close();
  });
});

describe('as installed by npm', () => {
  it('runs through a link, and ends quietly when its output is closed', async () => {
    using folder = tempFolder();
    symlinkSync(CLI, folder.file('proto-webhooks'));
    const shell = (command: string): Promise<{ code: unknown; stdout: string; stderr: string }> =>
      new Promise((resolve) => {
        execFile('sh', ['-c', command], (error, stdout, stderr) =>
          resolve({ code: error?.code ?? 0, stdout, stderr }),
        );
      });
    const node = `'${process.execPath}' --no-warnings '${folder.file('proto-webhooks')}'`;
    expect((await shell(`${node} --help`)).stdout).toContain('Usage: proto-webhooks');
    const piped = await shell(`${node} vectors run | head -n 1`);
    expect({ code: piped.code, stderr: piped.stderr, lines: piped.stdout.trim().split('\n').length }).toEqual(
      { code: 0, stderr: '', lines: 1 },
    );
  });
});

describe('colours', () => {
  it('appear only on a terminal and without NO_COLOR', async () => {
    using folder = tempFolder();
    const { jwks } = await keyFiles(folder);
    writeFileSync(folder.file('a.http'), httpText(withHeaders(await signed(), { Signature: 'sig1=:AAAA:' })));
    const args = ['explain', folder.file('a.http'), '--keys', jwks, '--url', URL_GIVEN];
    expect((await cli(args)).stdout).not.toMatch(ESCAPE);
    expect(await cliOnTerminal(args, { NO_COLOR: '' })).toMatch(ESCAPE);
    expect(await cliOnTerminal(args, { NO_COLOR: '1' })).not.toMatch(ESCAPE);
    expect(await cliOnTerminal([...args, '--json'], { NO_COLOR: '' })).not.toMatch(ESCAPE);
  });
});
