import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSTALL_MS } from '../support/packed.ts';
import {
  type Answered,
  type Consumer,
  type Fate,
  GO_CONSUMER,
  needLanguage,
  post,
  type Posted,
  PYTHON_CONSUMER,
  workplace,
  type Workplace,
} from './event-consumers.ts';

const secretOf = (bytes: number): string => `whsec_${randomBytes(bytes).toString('base64')}`;
const [NEW, FORMER, STRANGE] = [secretOf(32), secretOf(24), secretOf(32)];

/** An event as serve sends it. */
const eventOf = (data: object, id: string = randomUUID()) => ({
  specversion: '1.0',
  id,
  source: 'https://seller.example/mcp',
  type: 'proto.task.completed',
  subject: 'task-1',
  datacontenttype: 'application/json',
  data: { kind: 'task', status: 'completed', taskId: 'task-1', idempotencyKey: 'key-\u001B-1', data },
});

interface Signing {
  readonly secrets?: readonly string[];
  readonly ageS?: number;
  readonly id?: string;
}

/** A request for a body, signed by another implementation of Standard Webhooks. */
function signed(body: string, { secrets = [NEW], ageS = 0, id = randomUUID() }: Signing = {}): Posted {
  const at = new Date(Date.now() - ageS * 1000);
  return {
    headers: {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body)),
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
    },
    body,
  };
}

const asked = (fate: Fate, id: string = randomUUID(), how: Signing = {}): Posted =>
  signed(JSON.stringify(eventOf({ do: fate }, id)), { ...how, id });

const withHeaders = ({ headers, ...rest }: Posted, changed: Posted['headers']): Posted => ({
  ...rest,
  headers: { ...headers, ...changed },
});

const LANGUAGES = [PYTHON_CONSUMER, GO_CONSUMER];

describe.each(LANGUAGES)('examples/serve: the consumer in $name', (language) => {
  let parent: string;
  let plain: Workplace;
  let place: Workplace;
  beforeAll(async () => {
    await needLanguage(language);
    parent = await mkdtemp(join(tmpdir(), 'proto-webhooks-consumer-'));
    plain = await workplace(parent, language, false);
    place = await workplace(parent, language, true);
    for (const { write } of [plain, place]) {
      await write('new.secret', `${NEW}\n`);
      await write('former.secret', FORMER);
    }
  }, INSTALL_MS);
  afterAll(() => rm(parent, { recursive: true }));

  const printedOf = ({ lines }: Consumer, fate: Fate, id: string): number =>
    lines().filter((line) => line === `${fate} ${id}`).length;

  /** How often an event was given to the function. What was printed before a later event's line has arrived by then. */
  async function runs(consumer: Consumer, fate: Fate, id: string): Promise<number> {
    const later = randomUUID();
    expect((await post(consumer.origin, asked('return', later))).status).toBe(204);
    await expect.poll(() => printedOf(consumer, 'return', later)).toBe(1);
    return printedOf(consumer, fate, id);
  }

  it('its own function prints what was signed, and no control character of it', async () => {
    await using consumer = await plain.start('new.secret');
    const event = eventOf({ media_buy_id: 'mb-1', name: 'a\u001B[31m\u202Eb' });
    const answer = await post(consumer.origin, signed(JSON.stringify(event), { id: event.id }));
    expect(answer, consumer.printed()).toMatchObject({ status: 204, text: '' });
    await expect.poll(consumer.lines).toHaveLength(1);
    expect(consumer.lines()[0]).toMatch(/^proto\.task\.completed ['"]key-[\\x1b]+-1['"] .*media_buy_id/);
    expect(consumer.lines()[0]).toMatch(/^[\x20-\x7E]*$/);
  });

  it('only what one of its secrets has signed in the last five minutes is handled', async () => {
    await using consumer = await place.start('new.secret', 'former.secret');
    const status = async (posted: Posted): Promise<number> => (await post(consumer.origin, posted)).status;
    const good = asked('return');
    const { headers } = good;
    const forged: Readonly<Record<string, Posted>> = {
      'a strange secret': asked('return', undefined, { secrets: [STRANGE] }),
      'too old': asked('return', undefined, { ageS: 330 }),
      'too new': asked('return', undefined, { ageS: -330 }),
      'another id': withHeaders(good, { 'webhook-id': randomUUID() }),
      'another time': withHeaders(good, { 'webhook-timestamp': `0${headers['webhook-timestamp']}` }),
      'no time': withHeaders(good, { 'webhook-timestamp': 'now' }),
      'a time of many digits': withHeaders(good, { 'webhook-timestamp': '9'.repeat(5000) }),
      'another body': { ...good, body: good.body?.replace('return', 'refuse') ?? '' },
      'no version': withHeaders(good, {
        'webhook-signature': (headers['webhook-signature'] ?? '').slice('v1,'.length),
      }),
      'another version': withHeaders(good, {
        'webhook-signature': (headers['webhook-signature'] ?? '').replace('v1,', 'v1a,'),
      }),
      'no signature': withHeaders(good, { 'webhook-signature': '' }),
      'strange bytes': withHeaders(good, { 'webhook-signature': 'v1,\u00FF\u00E9' }),
    };
    const answers = await Promise.all(
      Object.entries(forged).map(async ([name, posted]) => [name, await status(posted)] as const),
    );
    expect(answers).toEqual(Object.keys(forged).map((name) => [name, 401]));
    const bare = await post(consumer.origin, { headers: { 'content-length': '2' }, body: '{}' });
    expect(bare.status).toBe(401);

    for (const secrets of [[NEW], [FORMER], [NEW, FORMER], [STRANGE, FORMER]])
      expect(await status(asked('return', undefined, { secrets }))).toBe(204);
    expect(await status(asked('return', undefined, { ageS: 270 }))).toBe(204);
    await expect.poll(consumer.lines).toHaveLength(5);
  });

  it('a secret is replaced without a restart', async () => {
    await place.write('rotated.secret', FORMER);
    await using consumer = await place.start('rotated.secret');
    const status = async (secret: string): Promise<number> =>
      (await post(consumer.origin, asked('return', undefined, { secrets: [secret] }))).status;
    expect([await status(FORMER), await status(NEW)]).toEqual([204, 401]);
    await place.write('rotated.secret', NEW);
    expect([await status(FORMER), await status(NEW)]).toEqual([401, 204]);
    // An empty secret would let anybody sign: a fault, which comes again, and no refusal.
    await place.write('rotated.secret', '');
    expect(await status(NEW)).toBe(500);
    await expect.poll(consumer.printed).toContain('rotated.secret: not whsec_');
  });

  it.each([
    ['is empty', ''],
    ['is short', secretOf(23)],
    ['has no prefix', NEW.slice('whsec_'.length)],
    ['has another prefix', NEW.replace('whsec_', 'whpub_')],
    ['is no base64', 'whsec_%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%'],
  ])('does not start if a secret %s', async (_, text) => {
    await place.write('bad.secret', text);
    const { code, printed } = await place.refuses('new.secret', 'bad.secret');
    expect(code).toBe(1);
    expect(printed).toMatch(/bad\.secret|base64/);
    if (text) expect(printed).not.toContain(text);
  });

  it('an event is handled once, also after a restart', async () => {
    const id = randomUUID();
    {
      await using consumer = await place.start('new.secret');
      for (const secrets of [[NEW], [FORMER, NEW]])
        expect((await post(consumer.origin, asked('return', id, { secrets }))).status).toBe(204);
      expect(await runs(consumer, 'return', id)).toBe(1);
    }
    await using consumer = await place.start('new.secret');
    expect((await post(consumer.origin, asked('return', id))).status).toBe(204);
    expect(await runs(consumer, 'return', id)).toBe(0);
  });

  it('an event whose function fails comes again; one that can never be handled does not', async () => {
    await using consumer = await place.start('new.secret');
    const id = randomUUID();
    for (let time = 1; time <= 2; time += 1) {
      expect((await post(consumer.origin, asked('fail', id))).status).toBe(500);
      expect(await runs(consumer, 'fail', id)).toBe(time);
    }
    // What is under the same id now succeeds: a failure was no end.
    expect((await post(consumer.origin, asked('return', id))).status).toBe(204);
    expect(await runs(consumer, 'return', id)).toBe(1);

    const never = await post(consumer.origin, asked('never'));
    expect(never).toMatchObject({ status: 422, text: expect.stringContaining('media buy') });
  });

  it('an event whose process dies before the answer comes again', async () => {
    const id = randomUUID();
    {
      await using consumer = await place.start('new.secret');
      await expect(post(consumer.origin, asked('die', id))).rejects.toThrow();
      expect(await consumer.ended).toBe(null);
      expect(printedOf(consumer, 'die', id)).toBe(1);
    }
    await using consumer = await place.start('new.secret');
    for (let time = 1; time <= 2; time += 1)
      expect((await post(consumer.origin, asked('die', id))).status).toBe(204);
    expect(await runs(consumer, 'die', id)).toBe(1);
  });

  it('an event that comes while it is handled waits for the end, and others do not', async () => {
    await rm(join(place.folder, 'gate'), { force: true });
    await using consumer = await place.start('new.secret');
    const id = randomUUID();
    const ended: number[] = [];
    const both = [1, 2].map(async () => {
      const { status } = await post(consumer.origin, asked('wait', id));
      ended.push(status);
    });
    await expect.poll(() => printedOf(consumer, 'wait', id)).toBe(1);
    expect(await runs(consumer, 'wait', id)).toBe(1);
    expect(ended).toEqual([]);
    await place.write('gate', '');
    await Promise.all(both);
    expect(ended).toEqual([204, 204]);
    expect(await runs(consumer, 'wait', id)).toBe(1);
  });

  it('a body over the cap is refused before it is read', async () => {
    await using consumer = await place.start('new.secret');
    const { headers } = asked('return');
    const huge = { headers: { ...headers, 'content-length': String(17 * 1024 * 1024) }, body: null };
    expect((await post(consumer.origin, huge)).status).toBe(413);
    const { 'content-length': _, ...without } = headers;
    const endless = { headers: { ...without, 'transfer-encoding': 'chunked' }, body: 'x'.repeat(17 << 20) };
    const refused = await post(consumer.origin, endless).catch((error: Error) => error);
    // It may close the connection while the rest is still being sent.
    if (!(refused instanceof Error)) expect([411, 413]).toContain(refused.status);
    for (const length of ['-1', '1e3'])
      await expect(
        post(consumer.origin, { headers: { ...headers, 'content-length': length }, body: null }),
      ).resolves.toMatchObject({ status: expect.toSatisfy((status: number) => status >= 400) });
    expect((await post(consumer.origin, asked('return'))).status).toBe(204);
  });

  it('an event as large as serve sends is handled', async () => {
    await using consumer = await place.start('new.secret');
    const event = eventOf({ do: 'return', filler: '\u0001'.repeat(2_000_000) });
    expect((await post(consumer.origin, signed(JSON.stringify(event), { id: event.id }))).status).toBe(204);
  });

  it.each([
    ['no JSON', '{"id":'],
    ['no object', '[1]'],
    ['no data', '{"id":"ID"}'],
    ['no event in data', '{"id":"ID","data":null}'],
    ['another id', JSON.stringify(eventOf({ do: 'return' }))],
    ['very deep', `{"id":"ID","data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ])('a signed body that is no event is no reason to give it up: %s', async (_, body) => {
    await using consumer = await place.start('new.secret');
    const id = randomUUID();
    const answer = await post(consumer.origin, signed(body.replace('"ID"', JSON.stringify(id)), { id }));
    expect(answer.status, consumer.printed()).toBe(400);
    expect((await post(consumer.origin, asked('return'))).status).toBe(204);
    await expect.poll(consumer.lines).toHaveLength(1);
  });

  it('connections stay open, and only POST /events is an event', async () => {
    await using consumer = await place.start('new.secret');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const answers: Answered[] = [];
    for (const posted of [asked('return'), asked('fail'), asked('never'), asked('return')])
      answers.push(await post(consumer.origin, { ...posted, agent }));
    expect(answers.map(({ status }) => status)).toEqual([204, 500, 422, 204]);
    expect(answers.map(({ reused }) => reused)).toEqual([false, true, true, true]);
    agent.destroy();
    expect((await post(consumer.origin, { ...asked('return'), path: '/' })).status).toBe(404);
    // serve asks so if it is there: any answer says yes.
    const there = await post(consumer.origin, { headers: {}, body: '', method: 'OPTIONS' });
    expect(there.status).toBeGreaterThanOrEqual(200);
  });
});
