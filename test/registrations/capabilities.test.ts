import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Declared } from '../../src/keys/for-tests.ts';
import { capabilitiesOf, declaredBy } from '../../src/registrations/for-tests.ts';
import { type CallSeller, createRegistrations } from '../../src/registrations/index.ts';
import type { PollerOptions } from '../../src/poll/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { Store } from '../../src/index.ts';
import { type Process, submitted, world } from '../poll/kit.ts';
import { AGENT } from '../receiver/setup.ts';
import { SILENT } from '../keys/setup.ts';
import { hashes, NEWEST } from './kit.ts';
import { anyClient, callBy } from '../support/any-client.ts';

const OPERATION = 'get_adcp_capabilities';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const BRAND = 'https://seller.example/brand.json';

const CAPABILITIES = {
  adcp: { major_versions: [3], supported_versions: ['3.1', '3.3'] },
  adcp_version: '3.3',
  identity: { brand_json_url: BRAND, key_origins: { webhook_signing: 'https://keys.seller.example' } },
  supported_protocols: ['media_buy'],
};
const DECLARED: Declared = {
  brandJsonUrl: BRAND,
  keyOrigin: 'https://keys.seller.example',
  edition: '3.3',
};

const task = (data: object): object => ({
  kind: 'task',
  id: 't',
  status: { state: 'completed' },
  artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data }] }],
});

describe('what an answer declares (verification.md §5.29)', () => {
  it.each([
    ['as it is', CAPABILITIES],
    ['structured', { structuredContent: CAPABILITIES, content: [] }],
    ['in a result', { status: 'completed', result: CAPABILITIES }],
    ['a Task', task(CAPABILITIES)],
    ['a Task with a result', { task: task({ status: 'completed', result: CAPABILITIES }) }],
  ])('in every form: %s', (_what, answer) => {
    expect(declaredBy(answer)).toEqual(DECLARED);
  });

  it.each([
    ['nothing', undefined],
    ['a text', 'adcp'],
    ['an error', { adcp_error: { code: 'AUTH_REQUIRED', message: 'no' } }],
    ['a failed tool', { isError: true, content: [{ type: 'text', text: 'no' }] }],
    ['begun work', { status: 'submitted', task_id: 't' }],
    ['no adcp object', { adcp: '3.1', identity: { brand_json_url: BRAND } }],
  ])('nothing is known of %s', (_what, answer) => {
    expect(declaredBy(answer)).toBeUndefined();
  });

  it.each([
    7,
    null,
    {},
    '',
    '/brand.json',
    'ftp://seller.example/brand.json',
    'javascript:alert(1)',
    'https://user:pass@seller.example/brand.json',
    `https://seller.example/${'x'.repeat(2_048)}`,
  ])('a URL that cannot be one is not declared: %j', (url) => {
    const identity = { brand_json_url: url, key_origins: { webhook_signing: url } };
    expect(declaredBy({ ...CAPABILITIES, identity })).toEqual({ edition: '3.3' });
    expect(declaredBy({ ...CAPABILITIES, identity: [] })).toEqual({ edition: '3.3' });
  });

  it.each([
    [86_400, 86_400_000],
    [604_800, 604_800_000],
    [1e9, 604_800_000],
    [3600, 86_400_000],
    [100_000.5, 100_000_500],
    [0, undefined],
    ['604800', undefined],
    [NaN, undefined],
    [null, undefined],
  ])('keeps for how long it delivers again: %j s', (seconds, horizonMs) => {
    const answer = { ...CAPABILITIES, webhook_signing: { delivery_retry_horizon_seconds: seconds } };
    expect(declaredBy(answer)?.horizonMs).toBe(horizonMs);
  });

  it.each([
    ['3.2', ['3.0', '3.3'], '3.2'],
    ['3.2.1', undefined, '3.2'],
    [undefined, ['3.3', '3.10', '3.1'], '3.1'],
    [undefined, ['3.3', '3.10'], '3.3'],
    [undefined, ['3.3-rc.0'], undefined],
    ['3.3-rc.0', ['3.3'], undefined],
    [7, ['3.3'], undefined],
    [undefined, '3.3', undefined],
    [undefined, [7, null, 'x'.repeat(100_000)], undefined],
    [undefined, undefined, undefined],
  ])(
    'the edition is that of the answer, else the oldest, and no candidate: %j, %j',
    (version, versions, edition) => {
      const answer = { adcp: { supported_versions: versions }, adcp_version: version };
      expect(declaredBy(answer)).toEqual(edition === undefined ? {} : { edition });
    },
  );
});

/** The rows that a seller's declaration is kept in. */
const rowsOf = ({ registrations }: Store): NonNullable<Store['registrations']> => {
  if (!registrations) throw new Error('no rows');
  return registrations;
};

const readOf = (store: Store): Promise<Declared> =>
  capabilitiesOf({ call: undefined, rows: rowsOf(store), hashes, now: Date.now, limitMs: 1 }).of(AGENT);

describe('a poller asks each seller once a day', () => {
  let at: ReturnType<typeof world>;
  let store: Store;
  let answer: () => unknown;
  let names: readonly string[];
  beforeEach(() => {
    at = world();
    store = memoryStore();
    answer = () => CAPABILITIES;
    names = ['create_media_buy', 'get_task_status', OPERATION];
  });
  afterEach(() => at.end());

  const questions = (): number =>
    at.seller.questions.filter(({ operation }) => operation === OPERATION).length;

  /** Processes of one buyer, whose seller has a task that does not end. */
  async function polling(processes: number, options: Partial<PollerOptions> = {}) {
    const operations = async (): Promise<readonly string[]> => names;
    const ask: CallSeller = async (...given) => {
      const said = await at.seller.call(...given);
      return given[1] === OPERATION ? answer() : said;
    };
    const call = Object.assign(ask, { operations });
    const made: Process[] = [];
    for (let nth = 0; nth < processes; nth += 1)
      made.push(await at.process({ call, fastMs: 10 * MINUTE, ...options }, { store }));
    const [first] = made;
    if (first) for (const id of ['1', '2', '3']) await submitted(first, `task-${id} at ${at.clock.now()}`);
    for (const { poller } of made) await poller.start();
    return async (): Promise<unknown> => Promise.all(made.map(({ poller }) => poller.stop()));
  }

  it('whatever the number of processes and tasks, in a place that a poll has with the seller', async () => {
    at.seller.takesMs = 1_000;
    const stop = await polling(2, { perSeller: 1 });
    await at.clock.pass(HOUR);
    expect(questions()).toBe(1);
    expect(await readOf(store)).toMatchObject(DECLARED);
    expect(at.seller.most.get(AGENT)).toBe(1);
    answer = () => ({ adcp: {}, adcp_version: '3.1' });
    await stop();
    await at.clock.pass(22 * HOUR);
    const stopAgain = await polling(1);
    await at.clock.pass(30 * MINUTE);
    expect(questions()).toBe(1);
    await stopAgain();
    await at.clock.pass(HOUR);
    await polling(1);
    await at.clock.pass(30 * MINUTE);
    expect(questions()).toBe(2);
    const { askAt: _askAt, ...now } = (await readOf(store)) as Declared & { readonly askAt: number };
    expect(now).toEqual({ edition: '3.1' });
  });

  it('not where the seller does not list the operation', async () => {
    names = ['get_task_status'];
    await polling(1);
    await at.clock.pass(3 * HOUR);
    expect(questions()).toBe(0);
    expect(await readOf(store)).not.toHaveProperty('brandJsonUrl');
  });

  it.each([
    ['an error', { adcp_error: { code: 'SERVICE_UNAVAILABLE', message: 'later' } }],
    ['an answer that is no object', 'nothing'],
  ])('%s changes nothing of what is known', async (_what, said) => {
    const stop = await polling(1);
    await at.clock.pass(30 * MINUTE);
    await stop();
    answer = () => said;
    await at.clock.pass(25 * HOUR);
    await polling(1);
    await at.clock.pass(30 * MINUTE);
    expect(questions()).toBe(2);
    expect(await readOf(store)).toMatchObject(DECLARED);
  });

  it('a question that fails is asked again after an hour, and costs no poll', async () => {
    answer = () => {
      throw new Error('down');
    };
    await polling(1, { fastMs: MINUTE });
    await at.clock.pass(30 * MINUTE);
    expect(questions()).toBe(1);
    await at.clock.pass(45 * MINUTE);
    expect(questions()).toBe(2);
    const polls = at.seller.questions.length - questions();
    expect(polls).toBeGreaterThan(100);
  });
});

describe('registrations', () => {
  const made = () => {
    const store = memoryStore();
    const baseUrl = 'https://buyer.example/webhooks';
    const registrations = createRegistrations({
      call: anyClient,
      store,
      baseUrl,
      secrets: [NEWEST],
      logger: SILENT,
    });
    return { store, registrations };
  };
  const declaring = (adcp_version: string): CallSeller =>
    Object.assign(
      async (_agentUrl: string, operation: string) =>
        operation === OPERATION ? { ...CAPABILITIES, adcp_version } : { products: [{ product_id: 'p' }] },
      { operations: async () => ['get_products', OPERATION] },
    );

  it.each([
    ['3.2', true],
    ['3.3', false],
    ['3.3-rc.0', true],
  ])('a seller that declares %s gets HMAC credentials for reports: %s', async (version, hasCredentials) => {
    const { store, registrations } = made();
    const reporting = { frequency: 'daily' } as const;
    expect(await registrations.reportingWebhook({ agentUrl: AGENT }, reporting)).toHaveProperty(
      'authentication',
    );
    const operation = await registrations.create({
      agentUrl: AGENT,
      taskType: 'get_products',
      arguments: {},
    });
    await callBy(operation, declaring(version));
    await expect.poll(() => readOf(store)).toHaveProperty('brandJsonUrl', BRAND);
    const webhook = await registrations.reportingWebhook({ agentUrl: AGENT }, reporting);
    expect('authentication' in webhook).toBe(hasCredentials);
    // The owner's word comes first.
    const older = await registrations.reportingWebhook({ agentUrl: AGENT, edition: '3.1' }, reporting);
    expect(older).toHaveProperty('authentication');
    await registrations.stop();
  });

  it('a client of the owner that lists nothing is not asked, and a call waits for no question', async () => {
    const { store, registrations } = made();
    const asked: string[] = [];
    const plain: CallSeller = async (_agentUrl, operation) => {
      asked.push(operation);
      return { products: [{ product_id: 'p' }] };
    };
    const call = async (by: CallSeller): Promise<unknown> =>
      callBy(await registrations.create({ agentUrl: AGENT, taskType: 'get_products', arguments: {} }), by);
    await call(plain);
    const silent = Object.assign(
      async (_agentUrl: string, operation: string) =>
        operation === OPERATION ? new Promise(() => undefined) : { products: [{ product_id: 'p' }] },
      { operations: async () => [OPERATION] },
    );
    await call(silent);
    expect(asked).toEqual(['get_products']);
    // Aborts the question.
    await registrations.stop();
    expect(await readOf(store)).not.toHaveProperty('brandJsonUrl');
  });
});
