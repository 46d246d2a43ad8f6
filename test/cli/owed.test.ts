import { expect, it } from 'vitest';
import { PermanentError } from '../../src/index.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { AGENT, payloads, testReceiver } from '../receiver/setup.ts';
import { buy, BUY, DAY_MS, type Period, reportBody } from '../reconcile/kit.ts';
import { NEWEST } from '../registrations/kit.ts';
import { HOSTILE, MARK } from '../support/hostile-text.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { cli, type Ended } from './run-cli.ts';
import { tempFolder } from './temp-folder.ts';

const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;

/** The day of so many days ago. */
const ago = (days: number): Period => ({
  start: new Date(today - days * DAY_MS).toISOString(),
  end: new Date(today - (days - 1) * DAY_MS).toISOString(),
});

/** A media buy that ran four days, and ended two days ago. */
const FLIGHT: Period = { start: ago(5).start, end: ago(2).end };

async function buyer(file: string) {
  const store = sqliteStore(file);
  const baseUrl = 'https://buyer.example/webhooks';
  const registrations = createRegistrations({ store, baseUrl, secrets: [NEWEST], logger: SILENT_LOGGER });
  const at = await testReceiver({
    store,
    registrations,
    handler: async (event) => {
      if (event.idempotencyKey === 'dead-event-of-the-test') throw new PermanentError('no');
    },
  });
  await at.receiver.ready();
  const report = async (period: Period, key?: string): Promise<void> => {
    await at.deliver(reportBody(period, key === undefined ? {} : { key }));
  };
  const impair = async (): Promise<void> => {
    const sent = { ...payloads.family('impairment'), media_buy_id: BUY };
    await at.deliver({ ...sent, impairment_id: 'imp-7', observed_at: ago(2).end });
  };
  return { registrations, report, impair, stop: () => at.receiver.stop() };
}

const owed = (folder: { path: string }, ...args: string[]): Promise<Ended> =>
  cli(['owed', '--sqlite', 'it.db', ...args], { cwd: folder.path });

it('owed: says what came, what is missing, and what is held', async () => {
  using folder = tempFolder();
  const { registrations, report, impair, stop } = await buyer(folder.file('it.db'));
  const empty = await owed(folder);
  expect(empty).toMatchObject({ code: 0, stderr: '' });
  expect(empty.stdout).toMatch(
    /^No media buy is registered\.\nTasks: 0 ended, 0 open, 0 unresolved, 0 orphaned\nComplete as of 2\d{3}-/,
  );

  await buy({ registrations }, FLIGHT);
  await report(ago(5));
  await report(ago(4), 'dead-event-of-the-test');

  const { code, stdout } = await owed(folder);
  expect(code).toBe(1);
  const lines = stdout.split('\n');
  expect(lines[0]).toMatch(/^state +due +webhook +pull +missing +held +frequency +zone +media buy$/);
  expect(lines[1]).toMatch(/^missing +4 +1 +0 +2 +1 +daily +UTC +buy-1 at https:\/\/seller\.example\/mcp$/);
  expect(lines.slice(2, 5)).toEqual([
    `    missing ${ago(3).start} to ${ago(3).end}`,
    `    missing ${ago(2).start} to ${ago(2).end}`,
    `    held ${ago(4).start} to ${ago(4).end}, DEAD event dead-event-of-the-test`,
  ]);
  expect(lines[5]).toBe('Tasks: 1 ended, 0 open, 0 unresolved, 0 orphaned');
  expect(lines[6]).toMatch(/^Not complete as of /);

  const json = await owed(folder, '--seller', AGENT, '--media-buy', BUY, '--json');
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stdout)).toMatchObject({
    complete: false,
    asOf: expect.stringMatching(/^2\d{3}-/) as unknown,
    tasks: { ended: 1 },
    streams: [
      {
        mediaBuyId: BUY,
        missing: [{ ...ago(3), recoverable: true, tries: 0 }, ago(2)],
        held: [{ ...ago(4), key: 'dead-event-of-the-test' }],
      },
    ],
  });

  // Of the last window alone, by when it ended.
  const since = await owed(folder, '--since', ago(3).end, '--json');
  expect(JSON.parse(since.stdout)).toMatchObject({
    streams: [{ missing: [ago(2)], held: [] }],
    unchanged: 0,
    tasks: { changed: { registered: 1, ended: 1 } },
  });

  const other = await owed(folder, '--seller', AGENT, '--media-buy', 'buy-2');
  expect(other.code).toBe(1);
  expect(other.stdout).toMatch(/^Nothing is known of this media buy/);
  const nobody = await owed(folder, '--seller', 'https://other.example/mcp');
  expect([nobody.code, nobody.stdout]).toEqual([
    1,
    expect.stringMatching(/^Nothing is known of this seller\. /),
  ]);
  const inJson = await owed(folder, '--seller', `${AGENT}/`, '--json');
  expect([inJson.code, JSON.parse(inJson.stdout)]).toMatchObject([1, { complete: false, streams: [] }]);

  // The reports come after all, and the DEAD one by another event.
  await report(ago(3));
  await report(ago(2));
  const held = await owed(folder);
  expect(held.code).toBe(1);
  expect(held.stdout).toMatch(/^held +4 +3 +0 +0 +1 /m);
  await impair();
  expect((await owed(folder)).stdout).toContain('    impaired by imp-7 since ');
  await stop();
});

it('owed: operations that have not ended with what to do, the slowest seller, and what changed since', async () => {
  using folder = tempFolder();
  const { registrations, stop } = await buyer(folder.file('it.db'));
  await registrations.adopt({ agentUrl: AGENT, taskId: 'task-1', taskType: 'sync_creatives', ref: 'spring' });
  await stop();
  const [task] = JSON.parse((await owed(folder, '--json')).stdout).tasks.attention;
  expect(task).toMatchObject({ state: 'open', taskId: 'task-1', ref: 'spring' });
  expect(task.since).toMatch(/^2\d{3}-\d\d-\d\dT/);
  const { stdout } = await owed(folder);
  expect(stdout.split('\n').slice(1, 4)).toEqual([
    'Tasks: 0 ended, 1 open, 0 unresolved, 0 orphaned',
    expect.stringMatching(
      /^ {4}open for \d s: sync_creatives at https:\/\/seller\.example\/mcp, operation [0-9a-f-]{36}, task task-1, ref spring$/,
    ),
    expect.stringMatching(/^Slowest seller: https:\/\/seller\.example\/mcp, 1 open, the oldest for \d s$/),
  ]);
  const since = new Date(Date.now() + DAY_MS).toISOString();
  expect((await owed(folder, '--since', since)).stdout).toMatch(
    /^No media buy is registered\.\nTasks: 0 ended, 1 open, 0 unresolved, 0 orphaned; since then 0 registered, 0 ended\nSlowest/,
  );
});

it('owed: media buys of which nothing is newer are counted in one line', async () => {
  using folder = tempFolder();
  const { registrations, report, stop } = await buyer(folder.file('it.db'));
  await buy({ registrations }, FLIGHT);
  for (const days of [5, 4, 3, 2]) await report(ago(days));
  await stop();
  const since = new Date(Date.now() + DAY_MS).toISOString();
  const { code, stdout } = await owed(folder, '--since', since);
  expect(code).toBe(0);
  expect(stdout).toMatch(`1 media buy has nothing newer than ${since}.\nTasks: 1 ended`);
  const one = await owed(folder, '--since', since, '--seller', AGENT, '--media-buy', BUY);
  expect(one).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1 media buy has/) as unknown });
});

it('owed: the end of a media buy, and its totals', async () => {
  using folder = tempFolder();
  const { registrations, stop } = await buyer(folder.file('it.db'));
  await buy({ registrations }, FLIGHT);
  await stop();
  const at = Date.parse('2026-04-01T00:00:00Z');
  const ours = { impressions: 1000, spend: 10, currency: 'USD' };
  const linesWith = async (more: object): Promise<readonly string[]> => {
    const store = sqliteStore(folder.file('it.db'));
    await store.open();
    const [row] = (await store.registrations.page({ kind: 'stream', limit: 1 })).rows;
    if (!row) throw new Error('there is no stream');
    const {
      final: _f,
      closedAt: _c,
      totals: _t,
      ...stream
    } = JSON.parse(row.value) as Record<string, unknown>;
    const value = JSON.stringify({ ...stream, ...more });
    await store.registrations.run(row.sender, (rows) => rows.save({ ...row, value }));
    await store.close();
    const { stdout } = await owed(folder);
    return stdout.split('\n').filter((line) => /^ {4}(?:closed|final|totals)/.test(line));
  };
  const compared = { ours, theirs: { impressions: 900, currency: HOSTILE.slice(0, 200) }, differs: true, at };
  const [closed, totals, ...others] = await linesWith({
    closedAt: at,
    final: 'absent',
    totals: { compared },
  });
  expect(closed).toBe('    closed 2026-04-01T00:00:00.000Z, final absent');
  expect(totals).toMatch(
    /^ {4}totals differ: ours 1000 impressions, 10 USD; the seller's 900 impressions, \? .*, as of 2026-04-01T00:00:00\.000Z$/,
  );
  expect(totals).toContain(MARK);
  expect(others).toEqual([]);
  expect(await linesWith({ final: 'received', totals: { tries: 1, error: 'no\nanswer' } })).toEqual([
    '    final received',
    expect.stringMatching(/^ {4}totals not compared: no.*answer$/),
  ]);
});

it('owed: no text of a seller begins a line of its own', async () => {
  using folder = tempFolder();
  const { registrations, stop } = await buyer(folder.file('it.db'));
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: {
      start_time: FLIGHT.start,
      end_time: FLIGHT.end,
      reporting_webhook: { url: 'https://buyer.example/webhooks/r', reporting_frequency: 'daily' },
    },
  });
  await made.settle({ media_buy_id: HOSTILE.slice(0, 300), status: 'completed', packages: [] });
  await registrations.adopt({ agentUrl: AGENT, taskId: HOSTILE.slice(0, 300), taskType: 'sync_creatives' });
  await stop();
  const { code, stdout } = await owed(folder);
  expect(code).toBe(1);
  const marked = stdout.split('\n').filter((line) => line.includes(MARK));
  expect(marked).toHaveLength(2);
  expect(stdout.split('\n')).toHaveLength(1 + 1 + 4 + 3 + 2);
});

it.each([
  [['--media-buy', 'buy-1'], /--media-buy needs --seller/],
  [['--seller', 'seller.example'], /--seller: "seller\.example" is not a URL/],
  [['--since', 'yesterday'], /--since: "yesterday" is not an instant/],
  [['--grace-ms', '-1'], /Expected a whole number from 0 on/],
  [['--expected-delay-ms', '4h'], /Expected a whole number from 0 on/],
])('owed %j cannot be done', async (args, message) => {
  using folder = tempFolder();
  const store = sqliteStore(folder.file('it.db'));
  await store.open();
  await store.close();
  const { code, stdout, stderr } = await owed(folder, ...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});
