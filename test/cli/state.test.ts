import { expect, it } from 'vitest';
import { createRegistrations } from '../../src/registrations/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { NEWEST } from '../registrations/kit.ts';
import { HOSTILE, MARK } from '../support/hostile-text.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { cli, type Ended } from './run-cli.ts';
import { tempFolder } from './temp-folder.ts';

const AGENT = 'https://seller.example/mcp';

const stateOf = (folder: { path: string }, ...args: string[]): Promise<Ended> =>
  cli(['state', '--sqlite', 'it.db', ...args], { cwd: folder.path });

it('state: says which URLs a seller was given and who is on them, whatever text a seller chose', async () => {
  using folder = tempFolder();
  const store = sqliteStore(folder.file('it.db'));
  await store.open();
  const baseUrl = 'https://buyer.example/webhooks';
  const registrations = createRegistrations({ store, baseUrl, secrets: [NEWEST], logger: SILENT_LOGGER });
  expect((await stateOf(folder)).stdout).toBe('No seller was given a URL.\n');
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: {},
    scheme: 'Bearer',
  });
  await made.settle({ status: 'completed', media_buy_id: HOSTILE.slice(0, 300), packages: [] });
  await registrations.create({ agentUrl: AGENT, taskType: 'sync_creatives', arguments: {} });
  await store.close();

  const { code, stdout, stderr } = await stateOf(folder);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain(MARK);
  expect(stdout).not.toContain('\u001B');
  expect(stdout).not.toMatch(/^pass/m);
  expect(stdout).toMatch(
    /^used +https:\/\/buyer\.example\/webhooks\/… \([\w-]{22}\) {2}Bearer {2}https:\/\/seller/m,
  );
  expect(stdout).toMatch(/^ +given 2\d{3}-\S+Z, never heard, credentials of 2\d{3}-/m);
  expect(stdout).toMatch(/^ +1 media buys: /m);
  expect(stdout).toMatch(/^ +1 calls: [\w-]{36}$/m);

  const json = JSON.parse((await stateOf(folder, '--json', '--limit', '1')).stdout) as {
    readonly urls: readonly { readonly givenAt: string }[];
    readonly next: string;
  };
  expect(json.urls).toHaveLength(1);
  expect(json.urls[0]?.givenAt).toMatch(/^2\d{3}-.*Z$/);
  const second = JSON.parse((await stateOf(folder, '--json', '--after', json.next)).stdout) as typeof json;
  expect(second.urls).toHaveLength(1);
  expect((await stateOf(folder, '--after', 'x')).stderr).toContain('--after');
  expect((await stateOf(folder, '--seller', 'https://other.example/mcp')).stdout).toBe(
    'No seller was given a URL.\n',
  );
});
