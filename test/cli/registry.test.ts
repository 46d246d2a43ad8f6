import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RegistryServer, startRegistry } from '../registry/server.ts';
import { cli } from './run-cli.ts';

const AGENT = 'https://seller.example/mcp';

let server: RegistryServer;
beforeAll(async () => {
  server = await startRegistry();
});
afterAll(async () => {
  await server.stop();
});

const flags = (fault: string): string[] => ['--registry', server.at(fault), '--allow-loopback'];
const TOKEN = { env: { TOKEN: 'sk_live_secret' } };
const diagnostics = (...more: string[]) =>
  cli(['registry', 'diagnostics', AGENT, ...flags('registry'), '--token-env', 'TOKEN', ...more], TOKEN);

describe('registry badge', () => {
  it('prints the badge, or JSON on request', async () => {
    const text = await cli(['registry', 'badge', AGENT, 'sales', '3.0', ...flags('registry')]);
    expect(text).toMatchObject({ code: 0, stderr: '' });
    expect(text.stdout).toContain('verified');
    expect(text.stdout).toContain('badge_svg_url');
    const json = await cli(['registry', 'badge', AGENT, 'sales', '--json', ...flags('registry')]);
    expect(JSON.parse(json.stdout)).toMatchObject({ verified: true, added_later: { kept: [1] } });
  });

  it.each([
    ['400', 'answered 400: Invalid agent URL, role, or version'],
    ['http-svg', 'badge_svg_url'],
  ])('%s ends with 2 and one line on stderr', async (fault, words) => {
    const { code, stdout, stderr } = await cli(['registry', 'badge', AGENT, 'sales', '3.0', ...flags(fault)]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  it('names the option for the registry', async () => {
    const { code, stderr } = await cli(['registry', 'badge', AGENT, 'sales'], { env: { REGISTRY_URL: '' } });
    expect(code).toBe(2);
    expect(stderr).toContain('--registry');
  });
});

describe('registry diagnostics', () => {
  it('shows each step without its bodies, and points to explain', async () => {
    const { code, stdout } = await diagnostics();
    expect(code).toBe(1);
    for (const words of ['webhooks / deliver / sign', 'https://seller.example/mcp', '500 after 12 ms']) {
      expect(stdout).toContain(words);
    }
    expect(stdout).toContain('proto-webhooks explain');
    expect(stdout).not.toContain('acme');
    expect(stdout).not.toContain('\u001b');
  });

  it('has a heading, a block a step, and columns', async () => {
    const { stdout } = await diagnostics('--bodies');
    expect(stdout.trimEnd().split('\n')).toEqual([
      'Agent https://seller.example/mcp?a=b%20c',
      'Run 7c1d0c1e-8a90-4f5e-9b0e-2d6f0a1c3e57: 2 failing steps',
      '',
      'FAIL  webhooks / deliver / sign',
      '  task                    create_media_buy',
      '  captured                2026-11-21T20:23:54Z',
      '  request                 https://seller.example/mcp',
      '  response                500 after 12 ms',
      '  error                   webhook_signature_invalid?[2J',
      '  see                     proto-webhooks explain: why a captured delivery was refused',
      '  failed                  [{"path":"/a"}]',
      '  request_jsonb           {"secret_account":"acme","nested":[null,1.5]}',
      '  response_headers_jsonb  {"x-a":"b"}',
      '  response_jsonb          "text"',
      '  proto_error_jsonb       {"code":"X"}',
      '',
      'FAIL  row 8',
    ]);
  });

  it('wraps long JSON below its name, and escapes it for the terminal', async () => {
    const args = [
      'registry',
      'diagnostics',
      AGENT,
      ...flags('long-body'),
      '--token-env',
      'TOKEN',
      '--bodies',
    ];
    const { stdout } = await cli(args, TOKEN);
    expect(stdout).toContain('Run 7c1d0c1e-8a90-4f5e-9b0e-2d6f0a1c3e57: 1 failing step\n');
    expect(stdout).toContain('\n  request_jsonb\n    {\n      "a": "xxx');
    expect(stdout).toContain('(--json prints all)');
    expect(stdout).not.toContain('\u202e');
  });

  it('says that there is no run', async () => {
    const args = ['registry', 'diagnostics', AGENT, ...flags('no-rows'), '--token-env', 'TOKEN'];
    const { code, stdout } = await cli(args, TOKEN);
    expect(code).toBe(0);
    expect(stdout).toMatch(/: no failing step\n$/);
  });

  it('prints bodies with --bodies alone, in JSON too', async () => {
    expect((await diagnostics('--bodies')).stdout).toContain('acme');
    expect((await diagnostics('--json')).stdout).not.toContain('acme');
    const json = await diagnostics('--json', '--bodies', '--max-rows', '3');
    expect(JSON.parse(json.stdout)).toMatchObject({
      diagnostics: [{ request_jsonb: { secret_account: 'acme' } }, {}],
    });
    expect((await server.seen('registry')).at(-1)?.url).toMatch(/limit=3$/);
  });

  it('needs a token, and prints none', async () => {
    const none = await cli(['registry', 'diagnostics', AGENT, ...flags('registry')]);
    expect(none).toMatchObject({ code: 2, stdout: '' });
    expect(none.stderr).toContain('--token-env');
    const echoed = await cli(
      ['registry', 'diagnostics', AGENT, ...flags('echo'), '--token-env', 'TOKEN'],
      TOKEN,
    );
    expect(echoed.code).toBe(2);
    expect(echoed.stderr).not.toContain('sk_live_secret');
  });
});

describe('registry get', () => {
  it('calls any endpoint, with its query', async () => {
    const { code, stdout } = await cli([
      'registry',
      'get',
      '/api/list',
      '--query',
      'a=1=2',
      '--query',
      'a=3',
      ...flags('registry'),
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual([1, 'two', null]);
    expect((await server.seen('registry')).at(-1)?.url).toBe('/registry/api/list?a=1%3D2&a=3');
  });

  it('refuses an invalid query', async () => {
    const { code, stderr } = await cli([
      'registry',
      'get',
      '/api/list',
      '--query',
      'a',
      ...flags('registry'),
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('name=value');
  });
});
