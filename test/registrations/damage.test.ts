import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRegistrations, type Registrations } from '../../src/registrations/index.ts';
import type { Store } from '../../src/index.ts';
import type { RegistrationRow } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { NEWEST, OLDER } from './kit.ts';

const sellerOf = (name: string) => ({ agentUrl: `https://${name}.example/mcp` });
const request = { taskType: 'create_media_buy', arguments: { budget: 1 } };

/** Its first half, so that it is no JSON any more. */
const cut = (value: string): string => value.slice(0, value.length / 2);
/** Of what is encrypted, a few characters behind the id of the secret. */
const changed = (value: string): string =>
  value.replace(/("sealed":".{20})(.{4})/, (_all, before: string, text: string) =>
    text === 'AAAA' ? `${before}BBBB` : `${before}AAAA`,
  );

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
] as const)('damaged rows, %s', (_name, storeOf) => {
  let store: Store;
  let lines: string[];
  beforeEach(async () => {
    store = storeOf();
    lines = [];
    await store.open();
  });
  afterEach(() => store.close());

  const process = (...secrets: string[]): Registrations =>
    createRegistrations({
      store,
      baseUrl: 'https://buyer.example/webhooks',
      secrets,
      logger: {
        debug() {},
        info() {},
        warn() {},
        error: (_what: unknown, line?: string) => void lines.push(line ?? ''),
      },
    });

  const rowsOf = async (kind: RegistrationRow['kind'], sender: string): Promise<readonly RegistrationRow[]> =>
    (await store.registrations?.page({ kind, sender, limit: 9 }))?.rows ?? [];

  const damage = async (row: RegistrationRow, how: (value: string) => string): Promise<void> => {
    expect(how(row.value)).not.toBe(row.value);
    await store.registrations?.run(row.sender, (rows) => rows.save({ ...row, value: how(row.value) }));
  };

  it('rewrap goes on with the rest, and says which they are', async () => {
    const before = process(OLDER);
    const made = [];
    for (const name of ['a', 'b', 'c']) {
      made.push(await before.create({ ...sellerOf(name), ...request, scheme: 'Bearer' }));
    }
    const [a, b] = [sellerOf('a').agentUrl, sellerOf('b').agentUrl];
    for (const row of await rowsOf('operation', a)) await damage(row, cut);
    for (const row of await rowsOf('operation', b)) await damage(row, changed);
    const routes = await rowsOf('route', '');
    const [cutRoute, changedRoute] = [a, b].map(
      (url) => routes.find(({ value }) => value.includes(url)) ?? expect.fail('a route'),
    );
    await damage(cutRoute ?? expect.fail(), cut);
    await damage(changedRoute ?? expect.fail(), changed);

    const both = process(NEWEST, OLDER);
    const told = await both.rewrap();
    expect(told).toMatchObject({ rewrapped: 2, damaged: 4 });
    const kept = told.firstDamaged.map(({ kind, id, agentUrl, error }) => [kind, id, agentUrl, error.code]);
    expect(new Set(kept)).toEqual(
      new Set([
        ['operation', made[0]?.operationId, a, 'misconfigured'],
        ['operation', made[1]?.operationId, b, 'sealed_text_invalid'],
        ['route', cutRoute?.id, undefined, 'misconfigured'],
        ['route', changedRoute?.id, b, 'sealed_text_invalid'],
      ]),
    );
    expect(lines).toEqual([expect.stringContaining('4 rows could not be encrypted again')]);
    expect(await both.rewrap()).toMatchObject({ rewrapped: 0, damaged: 4 });
  });

  it('a store that fails still ends it', async () => {
    await process(OLDER).create({ ...sellerOf('a'), ...request });
    const registrations = process(NEWEST, OLDER);
    await store.close();
    await expect(registrations.rewrap()).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('forget of another seller goes on', async () => {
    const registrations = process(NEWEST);
    const urls = [];
    for (const name of ['a', 'b']) {
      urls.push((await registrations.reportingWebhook(sellerOf(name), { frequency: 'daily' }))['url']);
    }
    const routes = await rowsOf('route', '');
    const ofA = routes.find(({ value }) => value.includes('//a.')) ?? expect.fail('a route');
    await damage(ofA, cut);
    await registrations.forget(sellerOf('b').agentUrl);
    expect(await registrations.senders(new URL(urls[1] as string))).toEqual([]);
  });
});
