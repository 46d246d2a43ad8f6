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
  it('prints the badge, and JSON where it is asked for', async () => {
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
  ])('%s ends with 2 and one line', async (fault, words) => {
    const { code, stdout, stderr } = await cli(['registry', 'badge', AGENT, 'sales', '3.0', ...flags(fault)]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  it('says which option names the registry', async () => {
    const { code, stderr } = await cli(['registry', 'badge', AGENT, 'sales'], { env: { REGISTRY_URL: '' } });
    expect(code).toBe(2);
    expect(stderr).toContain('baseUrl');
  });
});

describe('registry diagnostics', () => {
  it('shows each step, without what was sent and answered, and points to explain', async () => {
    const { code, stdout } = await diagnostics();
    expect(code).toBe(1);
    for (const words of [
      'webhooks / deliver / sign',
      'https://seller.example/mcp',
      'answered 500 after 12 ms',
      '"path":"/a"',
    ]) {
      expect(stdout).toContain(words);
    }
    expect(stdout).toContain('proto-webhooks explain');
    expect(stdout).not.toContain('acme');
    expect(stdout).not.toContain('\u001b');
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
    expect(none.stderr).toContain('token');
    const echoed = await cli(
      ['registry', 'diagnostics', AGENT, ...flags('echo'), '--token-env', 'TOKEN'],
      TOKEN,
    );
    expect(echoed.code).toBe(2);
    expect(echoed.stderr).not.toContain('sk_live_secret');
  });
});

describe('registry get', () => {
  it('asks any endpoint, with its query', async () => {
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

  it('refuses a query that is none', async () => {
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
