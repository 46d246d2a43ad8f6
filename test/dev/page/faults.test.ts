import express from 'express';
import type { RequestListener } from 'node:http';
import { Pool } from 'pg';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { webhookHandler as expressHandler } from '../../../src/adapters/express.ts';
import { generateKey } from '../../../src/sender/sign.ts';
import type { Receiver } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres.ts';
import { launchChromium } from '../../support/chromium.ts';
import { freePort } from '../../support/free-port.ts';
import { type DevProcess, newest, type Opened, openPage, receive, send, startDevProcess } from './fixture.ts';

let browser: Browser;
let dev: DevProcess;
let open: Opened;

beforeAll(async () => {
  [browser, dev] = await Promise.all([launchChromium(), startDevProcess()]);
  open = await openPage(browser, dev.url);
});
afterAll(async () => {
  await browser?.close();
  await dev?.remove();
});

/** What the first view after a delivery says: its row in the list. */
async function rowSays(page: Page, ...texts: readonly (string | RegExp)[]): Promise<void> {
  for (const text of texts) await expect.poll(async () => newest(page).innerText()).toMatch(text);
}

/** One click further: cause and next step of the delivery. */
async function stepSays(page: Page, ...texts: readonly (string | RegExp)[]): Promise<void> {
  await newest(page).click();
  const next = page.locator('.next, .because');
  for (const text of texts) await expect.poll(async () => next.innerText()).toMatch(text);
}

/** A body parser before the receiver, and the bytes that it makes of the body again. */
const reserialised = (receiver: Receiver): RequestListener =>
  express()
    .use(express.json())
    // oxlint-disable-next-line oxc/no-async-endpoint-handlers -- Express 5 forwards what rejects
    .post('/webhooks/seller', async (request, response) => {
      const bytes = Buffer.from(JSON.stringify(request.body, undefined, 1));
      const { response: answer } = await receiver.verifyAndDispatch(bytes, request.headers, {
        url: request.originalUrl,
        method: request.method,
      });
      response.status(answer.status).set(answer.headers).send(answer.body);
    });

describe('faults: the first view names the cause, and what to do is one click away', () => {
  it('no receiver', async () => {
    await send(open.page);
    await rowSays(open.page, 'none', `Nothing answers at http://127.0.0.1:${dev.forwardPort}`);
    await stepSays(open.page, 'Start the receiver');
  });

  it('a wrong publicUrl', async () => {
    await using _ = await receive(dev, { publicUrl: `http://127.0.0.1:${dev.forwardPort}/webhooks/other` });
    await send(open.page);
    await rowSays(open.page, '503', /publicUrl/);
    await stepSays(open.page, `http://127.0.0.1:${dev.forwardPort}/webhooks/seller`, 'Sign anew');
  });

  it('a body parser before the adapter', async () => {
    await using _ = await receive(dev, {}, (receiver) =>
      express().use(express.json()).all('/webhooks/seller', expressHandler(receiver)),
    );
    await send(open.page);
    await rowSays(open.page, '503', /body/);
    await stepSays(open.page, /before/);
  });

  it('a clock that is off', async () => {
    await using _ = await receive(dev, { now: () => Date.now() + 3_600_000 });
    await send(open.page);
    await rowSays(open.page, /clock/);
    await stepSays(open.page, /clock/);
  });

  it('a receiver without the line of the seller', async () => {
    const { publicJwk } = await generateKey('ed25519');
    const senders = [{ agentUrl: 'https://seller.example/mcp', pins: [publicJwk] }];
    await using _ = await receive(dev, { senders });
    await send(open.page);
    await rowSays(open.page, '401', 'webhook_signature_key_unknown', "senders lack dev's seller");
    await stepSays(open.page, 'Paste into its options', dev.seller('signature').line);
    await open.page.locator('.next').getByRole('button', { name: 'Copy' }).click();
    expect(await open.page.evaluate('navigator.clipboard.readText()')).toBe(dev.seller('signature').line);
  });

  it('a key of another purpose', async () => {
    const { keys } = (await (await fetch(`${dev.seller('signature').agentUrl}/jwks.json`)).json()) as {
      readonly keys: readonly Readonly<Record<string, unknown>>[];
    };
    const pins = keys.map((key) =>
      Object.fromEntries(
        Object.entries(key).map(([name, value]) => [
          name,
          value === 'webhook-signing' ? 'request-signing' : value,
        ]),
      ),
    );
    const { agentUrl } = dev.seller('signature');
    await using _ = await receive(dev, { senders: [{ agentUrl, pins }] });
    await send(open.page);
    await rowSays(open.page, '401', 'webhook_signature_key_purpose_invalid', 'for another purpose');
    await stepSays(open.page, 'Take its pins out', dev.seller('signature').line);
  });

  it('a duplicate', async () => {
    await using _ = await receive(dev);
    await send(open.page);
    await rowSays(open.page, '200', 'handler: applied');
    const count = await open.page.locator('#list .row').count();
    await open.page.getByRole('button', { name: 'Sign anew' }).click();
    await open.page.locator('#list .row').nth(count).waitFor();
    await rowSays(
      open.page,
      '200',
      'A duplicate: the event was here before, and its handler does not run again.',
    );
    await stepSays(open.page, 'A duplicate');
  });

  it('a status that is stale', async () => {
    await using _ = await receive(dev);
    await open.page.getByRole('button', { name: 'out-of-order' }).click();
    await open.page.locator('.run.passed').waitFor();
    await rowSays(open.page, '200', 'Stale: its task is further by now, and the handler does not run.');
    await stepSays(open.page, 'Stale');
  });

  it('a handler that throws', async () => {
    await using _ = await receive(dev, {
      handlers: { other: async () => Promise.reject(new Error('no table of that name')) },
    });
    await send(open.page);
    await rowSays(open.page, '503', 'the handler failed', 'no table of that name');
    await stepSays(open.page, 'no table of that name', 'Sign anew');
    await open.page.getByRole('tab', { name: 'Handler' }).click();
    await expect
      .poll(async () => open.page.locator('.tellings').innerText())
      .toContain('no table of that name');
  });

  it('a store that is away', async () => {
    const pool = new Pool({ host: '127.0.0.1', port: await freePort(), connectionTimeoutMillis: 1_000 });
    await using _ = await receive(dev, { store: postgresStore({ pool }) });
    await send(open.page);
    await rowSays(open.page, '503', /store/);
    await stepSays(open.page, /store/, 'Sign anew');
    await pool.end();
  });

  it('HMAC of a body that was serialised again', async () => {
    await using _ = await receive(dev, { scheme: 'hmac' }, reserialised);
    await open.page.getByRole('radio', { name: 'HMAC' }).check();
    await send(open.page);
    await rowSays(open.page, '401', 'webhook_signature_invalid', /body/);
    await stepSays(open.page, /bytes as they came|before any body parser/);
  });
});
