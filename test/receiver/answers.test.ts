import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { ConfigError, createReceiver, type Outcome, PermanentError, type Ticket } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { alarmsTold, testReceiver, payloads, said, URL_GIVEN } from './setup.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

/** What headers alone decided. */
function toldAtOnce(opened: Outcome | Ticket): string {
  if (opened.kind === 'ticket') throw new Error('the headers decided nothing');
  return said(opened);
}

describe('verifyAndDispatch: a signed delivery runs its typed handler and gets its answer', () => {
  it('accepts, runs the handler, answers 200', async () => {
    const { deliver, seen, outcomes } = await testReceiver();
    const payload = payloads.tool('completed', { context: { trace: 1 } });
    const outcome = await deliver(payload);
    expect(said(outcome)).toBe('accepted 200');
    expect(outcome).toMatchObject({ state: 'applied', sender: 'https://seller.example/mcp', changed: false });
    expect(outcome.response).toEqual({ status: 200, headers: {}, body: '' });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.event).toMatchObject({
      kind: 'task',
      transport: 'tool',
      status: 'completed',
      taskId: payload.task_id,
      data: payload.result,
      context: { trace: 1 },
      reemission: false,
      envelope: payload,
    });
    expect(seen[0]?.ctx).toMatchObject({ run: 1, chargedAttempts: 1, sender: 'https://seller.example/mcp' });
    expect(seen[0]?.ctx.deliveryId).toBe(outcome.deliveryId);
    expect(outcome.deliveryId).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(outcomes).toEqual([outcome]);
  });

  it('works unbound, and takes Headers, req.headers, rawHeaders and pairs', async () => {
    const { receiver, sign, seen } = await testReceiver();
    const { verifyAndDispatch } = receiver;
    const shapes: ((headers: Record<string, string>) => Parameters<typeof verifyAndDispatch>[1])[] = [
      (headers) => new Headers(headers),
      (headers) => headers,
      (headers) => Object.entries(headers).flat(),
      (headers) => Object.entries(headers),
    ];
    for (const shape of shapes) {
      const { body, headers } = await sign(payloads.tool('working'));
      expect(said(await verifyAndDispatch(body, shape({ ...headers })))).toBe('accepted 200');
    }
    expect(seen).toHaveLength(4);
  });

  it.each([
    ['a string', '{}'],
    ['a parsed body', { status: 'completed' }],
    ['nothing', undefined],
    ['null', null],
  ])('rejects %s as rawBytes with a ConfigError that names the setting', async (_, body) => {
    const { receiver } = await testReceiver();
    const call = receiver.verifyAndDispatch(body as unknown as Uint8Array, {});
    await expect(call).rejects.toThrow(ConfigError);
    await expect(call).rejects.toThrow(/express\.json/);
  });

  it('rejects unusable headers with a ConfigError', async () => {
    const { receiver } = await testReceiver();
    await expect(
      receiver.verifyAndDispatch(new Uint8Array(), 'content-type' as unknown as Headers),
    ).rejects.toThrow(ConfigError);
    await expect(receiver.verifyAndDispatch(new Uint8Array(), ['odd'])).rejects.toThrow(ConfigError);
  });

  it.each([
    ['another method', { method: 'GET' }, 'refused method_not_allowed 405'],
    ['another content type', { type: 'text/plain' }, 'refused unsupported_media_type 415'],
    ['an encoded body', { encoding: 'gzip' }, 'refused unsupported_content_encoding 415'],
  ])('refuses %s before any other check', async (_, change, expected) => {
    const { receiver, seen } = await testReceiver();
    const {
      method = 'POST',
      type = 'application/json',
      encoding = 'identity',
    } = change as Record<string, string>;
    const outcome = await receiver.verifyAndDispatch(
      new TextEncoder().encode('{}'),
      { 'content-type': type, 'content-encoding': encoding },
      { method },
    );
    expect(said(outcome)).toBe(expected);
    expect(seen).toEqual([]);
  });

  it('refuses a body over the limit with 413 and an alarm', async () => {
    const { deliver, alarms } = await testReceiver({ maxBodyBytes: 1_000 });
    expect(said(await deliver(payloads.tool('completed', { filler: 'x'.repeat(1_000) })))).toBe(
      'refused payload_too_large 413',
    );
    await alarmsTold();
    expect(alarms.map(({ code }) => code)).toEqual(['payload_too_large']);
  });

  it('names the option or proxy behind a 415 of a signed delivery, in an adapter and without one', async () => {
    let now = Date.now();
    const { receiver, sign, send, alarms } = await testReceiver({ now: () => now });
    const typed = await sign(payloads.tool('completed'), {
      headers: { 'Content-Type': 'application/a2a+json' },
    });
    expect(said(await send(typed))).toBe('refused unsupported_media_type 415');
    expect(toldAtOnce(await receiver.open(typed.headers))).toBe('refused unsupported_media_type 415');
    await alarmsTold();
    now += 60_000;
    expect(toldAtOnce(await receiver.open(typed.headers))).toBe('refused unsupported_media_type 415');
    const gzip = { ...typed.headers, 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
    expect(toldAtOnce(await receiver.open(gzip))).toBe('refused unsupported_content_encoding 415');
    await alarmsTold();
    expect(alarms).toMatchObject([
      { code: 'unsupported_media_type', message: expect.stringContaining("['application/a2a+json']") },
      { code: 'unsupported_media_type', suppressed: 1 },
      { code: 'unsupported_content_encoding', message: expect.stringContaining('your proxy') },
    ]);
  });

  it('raises one alarm for a flood of unauthenticated requests, with the number of those left out', async () => {
    let now = Date.now();
    const { deliver, alarms } = await testReceiver({ maxBodyBytes: 10, now: () => now });
    await deliver(payloads.tool('completed'));
    await deliver(payloads.tool('completed'));
    await alarmsTold();
    expect(alarms).toHaveLength(1);
    now += 59_999;
    await deliver(payloads.tool('completed'));
    await alarmsTold();
    expect(alarms).toHaveLength(1);
    now += 1;
    await deliver(payloads.tool('completed'));
    await alarmsTold();
    expect(alarms).toMatchObject([{}, { code: 'payload_too_large', suppressed: 2 }]);
  });

  it('calls no store before the signature verified', async () => {
    const { deliver, state } = await testReceiver();
    const before = JSON.stringify([...state.senders.keys()]);
    expect(said(await deliver(payloads.tool('completed'), { params: { tag: 'other' } }))).toBe(
      'refused webhook_signature_tag_invalid 401',
    );
    expect(said(await deliver(payloads.tool('completed'), { url: 'https://buyer.example/other' }))).toBe(
      'refused webhook_signature_invalid 401',
    );
    expect(JSON.stringify([...state.senders.keys()])).toBe(before);
  });
});

describe('envelope failures: 400 after authentication, and only the nonce is used up', () => {
  const cases: readonly (readonly [string, (p: Record<string, unknown>) => void, string])[] = [
    ['no idempotency_key', (p) => delete p['idempotency_key'], 'missing_idempotency_key'],
    ['a short idempotency_key', (p) => void (p['idempotency_key'] = 'short'), 'invalid_envelope'],
    ['no task_id', (p) => delete p['task_id'], 'missing_envelope_fields'],
    ['a media buy status', (p) => void (p['status'] = 'active'), 'invalid_envelope_status'],
  ];
  it.each(cases)('%s', async (_, change, code) => {
    const { sign, send, seen } = await testReceiver();
    const payload: Record<string, unknown> = { ...payloads.tool('completed') };
    change(payload);
    const signed = await sign(payload);
    const outcome = await send(signed);
    expect(said(outcome)).toBe(`refused ${code} 400`);
    expect(JSON.parse(outcome.response.body)).toMatchObject({ error: { code } });
    expect(said(await send(signed))).toBe('refused webhook_signature_replayed 401');
    expect(seen).toEqual([]);
  });

  it('an unreadable body is 401 webhook_body_malformed and uses up its nonce (checks 13 and 14)', async () => {
    const { sign, send } = await testReceiver();
    const signed = await sign('{"a":1,"\\u0061":2}', { allowMalformed: true });
    const outcome = await send(signed);
    expect(said(outcome)).toBe('refused webhook_body_malformed 401');
    expect(outcome).toMatchObject({ check: 14 });
    expect(said(await send(signed))).toBe('refused webhook_signature_replayed 401');
  });
});

describe('handlers', () => {
  it('are chosen by status, with `other` for the rest', async () => {
    const calls: string[] = [];
    const note = (name: string) => () => void calls.push(name);
    const { deliver } = await testReceiver({
      handlers: {
        completed: note('completed'),
        'input-required': note('input-required'),
        deliveryReport: note('deliveryReport'),
        other: note('other'),
      },
    });
    await deliver(payloads.tool('completed'));
    await deliver(payloads.agent('completed'));
    await deliver(payloads.agent('input-required'));
    await deliver(payloads.report());
    await deliver(payloads.tool('working'));
    await deliver(payloads.family('impairment'));
    await deliver(payloads.tool('completed', { status: 'brand-new' }));
    expect(calls).toEqual([
      'completed',
      'completed',
      'input-required',
      'deliveryReport',
      'other',
      'other',
      'other',
    ]);
  });

  it('of notifications are chosen by exact name, own members only, then as wholesale feed', async () => {
    const calls: string[] = [];
    const note = (name: string) => () => void calls.push(name);
    const inherited = { 'creative.purged': note('inherited'), 'x.y': note('inherited') };
    const notifications = Object.assign(Object.create(inherited) as object, {
      impairment: note('impairment'),
      'product.updated': note('product.updated'),
      wholesale_feed: note('wholesale_feed'),
      'x.z': note('x.z'),
      message: note('message'),
    });
    const { deliver, alarms } = await testReceiver({ handlers: { notifications, other: note('other') } });
    const key = () => ({ idempotency_key: crypto.randomUUID() });
    const feed = (event_type: string) => ({ ...key(), event: { event_id: 'e', event_type } });
    for (const [payload, handler] of [
      [payloads.family('impairment'), 'impairment'],
      [payloads.tool('completed', { task_type: 'impairment', result: { impairment_id: 'i' } }), 'impairment'],
      [payloads.family('creative.purged'), 'other'],
      [feed('product.updated'), 'product.updated'],
      [feed('product.removed'), 'wholesale_feed'],
      [feed('signal.added'), 'wholesale_feed'],
      [{ ...key(), event_type: 'x.z' }, 'x.z'],
      [payloads.tool('completed', { event_type: 'x.z', status: 'brand-new' }), 'x.z'],
      [{ ...key(), event_type: 'x.y' }, 'other'],
      [{ ...key(), event_type: 'X.Z' }, 'other'],
      [{ ...key(), message: { parts: [] } }, 'message'],
      ...['constructor', '__proto__', 'toString'].map((event_type) => [{ ...key(), event_type }, 'other']),
    ] as [object, string][]) {
      expect(said(await deliver(payload))).toBe('accepted 200');
      expect(calls.splice(0), JSON.stringify(payload)).toEqual([handler]);
    }
    expect(alarms.map(({ warning }) => warning)).toEqual(['unknown_status']);
  });

  it('`other` gets a known family’s payload that does not fit, with a warning and an alarm', async () => {
    const { deliver, seen, alarms } = await testReceiver();
    const named = await testReceiver({
      handlers: {
        notifications: {
          impairment: () => expect.fail('of another payload'),
          wholesale_feed: () => expect.fail(),
        },
        other: (event) => void seen.push({ event } as never),
      },
    });
    for (const to of [deliver, named.deliver]) {
      const payload = payloads.family('impairment', { impairment_id: 5 });
      expect(said(await to(payload))).toBe('accepted 200');
      expect(seen.at(-1)?.event).toMatchObject({
        envelope: payload,
        warnings: [{ code: 'invalid_notification' }],
      });
      expect(said(await to(payloads.family('product.updated', { cache_scope: 5 })))).toBe('accepted 200');
      expect(seen.at(-1)?.event).toMatchObject({ family: 'product.updated' });
    }
    for (const list of [alarms, named.alarms]) {
      expect(list.map(({ code, warning }) => [code, warning])).toEqual([
        // One a minute of one subject.
        ['nonconforming_sender', 'invalid_notification'],
      ]);
    }
  });

  it('that throw are answered 503 without a reason, and run again on the retry', async () => {
    let broken = true;
    const { deliver, seen } = await testReceiver({
      handler: () => {
        if (broken) throw new Error('password=hunter2');
      },
    });
    const payload = payloads.tool('completed');
    const first = await deliver(payload);
    expect(said(first)).toBe('unavailable handler_failed 503');
    expect(JSON.stringify(first.response)).not.toContain('hunter2');
    expect(first.response.headers).toEqual({ 'Retry-After': '5' });
    broken = false;
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(seen).toHaveLength(2);
    expect(new Set(seen.map(({ ctx }) => ctx.deliveryId)).size).toBe(1);
    expect(said(await deliver(payload))).toBe('duplicate 200');
  });

  it('a PermanentError makes the event DEAD: 200, alarm, and 200 again', async () => {
    const { deliver, alarms, seen } = await testReceiver({
      handler: () => {
        throw new PermanentError('no such account');
      },
    });
    const payload = payloads.tool('completed');
    const outcome = await deliver(payload);
    expect(said(outcome)).toBe('accepted 200');
    expect(outcome).toMatchObject({ state: 'dead' });
    expect(alarms.map(({ code }) => code)).toEqual(['dead']);
    expect(await deliver(payload)).toMatchObject({ kind: 'duplicate', state: 'dead' });
    expect(seen).toHaveLength(1);
  });

  it('that use up their attempts make the event DEAD', async () => {
    const { deliver } = await testReceiver({
      // No back-off step: within one, attempts are not counted again.
      retry: { attempts: 2, baseMs: 1 },
      handler: () => {
        throw new Error('again');
      },
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_failed 503');
    expect(await deliver(payload)).toMatchObject({ kind: 'accepted', state: 'dead' });
  });
});

describe('hooks do not change or break an answer', () => {
  it('whatever they throw', async () => {
    const boom = (): never => {
      throw new Error('hook');
    };
    const { deliver } = await testReceiver({
      onOutcome: boom,
      onAlarm: boom,
      logger: { debug: boom, info: boom, warn: boom, error: boom },
      handler: () => {
        throw new PermanentError('x');
      },
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  });

  it('whatever their promise, of any realm, rejects with: no rejection is left unhandled', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const hook = runInNewContext("(async () => { throw new Error('hook') })") as () => Promise<void>;
    const own = class extends Promise<void> {};
    const hooks: readonly (() => unknown)[] = [hook, () => own.reject(new Error('hook'))];
    for (const onOutcome of hooks) {
      const { deliver } = await testReceiver({ onOutcome });
      expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
    }
    // Node tells of unhandled rejections when the microtasks are done: a turn of the loop later it has.
    await new Promise((resolve) => void setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('the method of a request', () => {
  it('is compared without regard to case', async () => {
    const { receiver, sign } = await testReceiver();
    const { body, headers } = await sign(payloads.tool('completed'));
    expect(said(await receiver.verifyAndDispatch(body, headers, { method: 'post' }))).toBe('accepted 200');
    const opened = await receiver.open(headers, { method: 'Post' });
    expect(opened.kind).toBe('ticket');
    if (opened.kind === 'ticket') opened.abort();
    await expect(receiver.verifyAndDispatch(body, headers, { method: 5 as never })).rejects.toThrow(
      ConfigError,
    );
    expect(toldAtOnce(await receiver.open(headers, { method: 'po\u017ft' }))).toBe(
      'refused method_not_allowed 405',
    );
  });
});

describe('a hook gets the outcome before the answer', () => {
  it('and cannot change the answer', async () => {
    const { deliver } = await testReceiver({
      onOutcome: ({ response }) => {
        Object.assign(response.headers, { 'X-Extra': '1' });
      },
    });
    expect((await deliver(payloads.tool('completed'))).response).toEqual({
      status: 200,
      headers: {},
      body: '',
    });
    const other = await testReceiver({
      onOutcome: ({ response }) => void Object.assign(response, { status: 500 }),
    });
    expect((await other.deliver(payloads.tool('completed'))).response.status).toBe(200);
    const third = await testReceiver({
      onOutcome: (outcome) =>
        void Object.assign(outcome, { kind: 'refused', response: { status: 401, headers: {}, body: '' } }),
    });
    expect(said(await third.deliver(payloads.tool('completed')))).toBe('accepted 200');
  });
});

describe('ready and stop', () => {
  it('refuses a store that promises less than durability.require', async () => {
    const receiver = createReceiver({
      publicUrl: URL_GIVEN,
      senders: [{ agentUrl: 'https://seller.example/mcp' }],
      store: memoryStore(),
      handlers: { other: () => {} },
      logger: SILENT_LOGGER,
    });
    await expect(receiver.ready()).rejects.toThrow(ConfigError);
    await expect(receiver.ready()).rejects.toThrow(/durability: \{ require: 'disk' \}/);
    const outcome = await receiver.verifyAndDispatch(new Uint8Array(2), {
      'content-type': 'application/json',
    });
    expect(said(outcome)).toBe('unavailable misconfigured 503');
  });

  it('answers 503 after stop', async () => {
    const { receiver, deliver } = await testReceiver();
    await receiver.ready();
    await receiver.stop();
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable shutting_down 503');
    expect(toldAtOnce(await receiver.open({ 'content-type': 'application/json' }))).toBe(
      'unavailable shutting_down 503',
    );
  });
});
