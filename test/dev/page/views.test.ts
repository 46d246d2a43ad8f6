import { mkdirSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { captureRefused } from '../../../src/adapters/node.ts';
import { devHooks } from '../../../src/testing/index.ts';
import { launchChromium } from '../../support/chromium.ts';
import { freePort } from '../../support/free-port.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import {
  type DevProcess,
  inaccessible,
  listening,
  newest,
  openPage,
  receive,
  send,
  SIZES,
  startDevProcess,
} from './fixture.ts';

let browser: Browser;
let dev: DevProcess;

beforeAll(async () => {
  [browser, dev] = await Promise.all([launchChromium(), startDevProcess()]);
});
afterAll(async () => {
  await browser?.close();
  await dev?.remove();
});

const textOf = async (page: Page, selector: string): Promise<string> =>
  page.locator(selector).first().innerText();

/** Polls until the text of a place matches each. */
async function shows(page: Page, selector: string, ...texts: readonly (string | RegExp)[]): Promise<void> {
  for (const text of texts) await expect.poll(async () => textOf(page, selector)).toMatch(text);
}

const clipboard = async (page: Page): Promise<unknown> => page.evaluate('navigator.clipboard.readText()');

/** Asks the API as the page does. */
async function api(path: string, body: object): Promise<unknown> {
  const { origin, hash } = new URL(dev.url);
  const response = await fetch(`${origin}/api/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hash.slice(1)}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

describe('the page', () => {
  it('asks for the token, takes it out of the address, and keeps it for this tab alone', async () => {
    const { origin, hash } = new URL(dev.url);
    await using open = await openPage(browser, dev.url);
    expect(open.page.url()).toBe(`${origin}/`);
    await open.page.reload();
    await shows(open.page, 'h1', 'proto-webhooks dev');
    await open.page.getByRole('heading', { name: 'Deliveries' }).waitFor();

    await using other = await openPage(browser, origin, {}, 'proto-webhooks dev');
    await shows(other.page, '.door', 'needs the token');
    expect(await inaccessible(other.page)).toEqual([]);
    await other.page.getByLabel('Address or token').fill('not-the-token');
    await other.page.keyboard.press('Enter');
    await shows(other.page, '.door', 'This token is not that of the folder');
    await other.page.getByLabel('Address or token').fill(`${origin}/${hash}`);
    await other.page.getByRole('button', { name: 'Open' }).click();
    await other.page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    expect(open.complaints).toEqual([]);
  });

  it('at the first run: the line of each scheme to copy, until something was received well', async () => {
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await shows(page, '.top', 'Receiver away', 'ECONNREFUSED', 'No hook heard');
    await shows(page, '.setup .answer:not(.unexpected)', 'No delivery was received well yet.');
    for (const scheme of ['signature', 'hmac', 'bearer'] as const) {
      await page.getByRole('button', { name: `Copy: The line of senders for ${scheme}` }).click();
      await expect.poll(async () => clipboard(page)).toBe(dev.seller(scheme).line);
    }
    await using _ = await receive(dev);
    await shows(page, '.top', 'Receiver up');
    await send(page);
    await shows(page, '.answer', '200 after', 'as expected');
    await shows(page, '.top', 'Hook heard');
    await page.keyboard.press('Escape');
    await shows(page, '.setup', 'A delivery was received well.');
    expect(open.complaints).toEqual([]);
  });

  it('says that no hook is heard once a receiver came back without it', async () => {
    await using first = await receive(dev);
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await send(page);
    await shows(page, '.top', 'Hook heard');
    await first.end();
    await shows(page, '.top', 'Receiver away', 'No hook heard');
    await using _ = await receive(dev, devHooks({ dir: join(dev.folder, 'none') }));
    await shows(page, '.top', 'Receiver up', 'No hook heard');
    await send(page);
    await shows(page, '.answer', '200 after');
    await page.reload();
    await shows(page, '.top', 'Receiver up', 'No hook heard');
  });

  it('sends each kind, by each scheme, and shows it from every side', async () => {
    await using _ = await receive(dev, { onChallenge: async () => true });
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    const choose = async (name: string): Promise<void> =>
      page.getByRole('radio', { name, exact: true }).check();
    await choose('agent');
    await page.getByRole('combobox', { name: 'Status', exact: true }).selectOption('working');
    await page.getByRole('combobox', { name: 'Key', exact: true }).selectOption('p256');
    await send(page);
    await shows(page, '.detail h2', 'working (agent)');
    await choose('Report');
    await page.getByRole('combobox', { name: 'Type of report', exact: true }).selectOption('final');
    await send(page);
    await shows(page, '.detail h2', 'report: final');
    await choose('Notification');
    await page.getByRole('combobox', { name: 'Family', exact: true }).selectOption('creative.purged');
    await send(page);
    await shows(page, '.detail h2', 'creative.purged');
    await choose('Proof of control');
    await send(page);
    await shows(page, '.detail h2', 'proof of control');
    await shows(page, '.answer', 'as expected');

    await choose('Own body');
    await page
      .getByLabel('Body', { exact: true })
      .fill('{"idempotency_key": "0123456789abcdef", "a": 1, "a": 2}');
    await send(page);
    await shows(page, '.answer.expected', '401 webhook_body_malformed');
    await shows(page, '.because', 'name twice');
    await page.getByRole('tab', { name: 'Request' }).click();
    // Indented it would be another text: a member is there twice.
    await shows(
      page,
      '.tab-view',
      'POST',
      'content-digest',
      '{"idempotency_key": "0123456789abcdef", "a": 1, "a": 2}',
    );
    await page.keyboard.press('ArrowRight');
    await shows(page, '.tab-view', '"@target-uri": http://127.0.0.1:');
    await page.keyboard.press('ArrowRight');
    await shows(page, '.tab-view', '401 refused', 'www-authenticate');
    await page.keyboard.press('End');
    await shows(page, '.tab-view', 'onRefused');
    await page.keyboard.press('Home');
    await shows(page, '.tab-view', 'fails', 'passes');

    await choose('Task');
    await choose('bearer');
    await send(page);
    await shows(page, '.answer.unexpected', '401');
    await shows(page, '.next', 'Paste into its options', dev.seller('bearer').line);
    expect(open.complaints).toEqual([]);
  });

  it('begins an own body with an event that its handler gets without a warning, and anew each time', async () => {
    const completed: string[] = [];
    const warnings: unknown[] = [];
    await using _ = await receive(dev, {
      logger: { ...SILENT_LOGGER, warn: (...warning) => void warnings.push(warning) },
      handlers: {
        completed: async ({ taskId }) => void completed.push(taskId),
        other: async () => undefined,
      },
    });
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await page.getByRole('radio', { name: 'Own body' }).check();
    for (const count of [1, 2]) {
      await send(page);
      await shows(page, '#list .row', '200', 'handler: applied');
      await expect.poll(() => new Set(completed).size).toBe(count);
    }
    expect(warnings).toEqual([]);
  });

  it('finds mistakes by words of them, and sends one', async () => {
    await using _ = await receive(dev);
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await page.getByText('Mistake: none').click();
    await page.getByLabel('Search the mistakes').fill('digest mismatch');
    await page.getByRole('radio', { name: /^tampered-body/ }).check();
    await shows(page, '.mistakes summary', 'tampered-body');
    await send(page);
    await shows(page, '.answer.expected', '401 webhook_signature_digest_mismatch');
    await shows(page, '.because', /body/);
    await page.getByRole('radio', { name: 'bearer' }).check();
    await shows(page, '.mistakes summary', 'none');
    await page.getByLabel('Search the mistakes').fill('xyzzy');
    await shows(page, '.mistakes', /0 of \d+ mistakes/);
  });

  it('sends again and anew, by buttons and by keys', async () => {
    await using _ = await receive(dev);
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await send(page);
    const first = await newest(page).getAttribute('data-id');
    await page.getByRole('button', { name: 'Send again' }).click();
    await shows(page, '.answer.expected', '401 webhook_signature_replayed');
    await shows(page, '.facts', `#${first} again`);
    await page.getByRole('link', { name: `#${first} again` }).click();
    await shows(page, '.answer.expected', '200');
    await page.keyboard.press('a');
    await shows(page, '.facts', `#${first} signed anew`);
    await page.keyboard.press('r');
    await shows(page, '.facts', `#${Number(first) + 2} again`);
    expect(open.complaints).toEqual([]);
  });

  it('is walked through by the keyboard', async () => {
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    const current = page.locator('#list .row[aria-current]');
    const ids = await page.evaluate(
      "[...document.querySelectorAll('#list .row')].map((row) => row.dataset.id)",
    );
    const [newestId, second, third] = ids as string[];
    const isAt = async (id: string | undefined): Promise<void> =>
      expect.poll(async () => current.getAttribute('data-id')).toBe(id);
    await page.keyboard.press('j');
    await isAt(newestId);
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    await isAt(third);
    await page.keyboard.press('k');
    await isAt(second);
    await page.keyboard.press('ArrowUp');
    await isAt(newestId);
    await page.keyboard.press('Escape');
    await expect.poll(async () => current.count()).toBe(0);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    expect(await inaccessible(page)).toEqual([]);
    await page.getByLabel('Keys of one letter act').uncheck();
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    expect(await current.count()).toBe(0);
    await page.getByRole('button', { name: 'Keys' }).click();
    await page.getByLabel('Keys of one letter act').check();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('s');
    expect(await page.evaluate('document.activeElement.name')).toBe('kind');
    // From the top: the first thing that Tab reaches leads past everything else.
    await page.reload();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(async () => page.evaluate('document.activeElement.dataset.id')).toBe(newestId);
    await page.keyboard.press('Enter');
    await isAt(newestId);
  });

  it('runs a scenario, and shows its steps', async () => {
    await using _ = await receive(dev);
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await page.getByRole('button', { name: 'replay' }).click();
    await shows(page, '.run.passed', 'passed', 'a replay', '401 webhook_signature_replayed');
    await page.locator('.run.passed').getByRole('link', { name: 'a replay' }).click();
    await shows(page, '.facts', 'scenario: replay');
    expect(await page.locator('.mark.new').count()).toBe(0);
    // What the form shows, and nobody has touched.
    const edition = await page.getByRole('combobox', { name: 'Edition', exact: true }).inputValue();
    expect(edition).not.toBe('3.1');
    await shows(page, '.facts', `edition ${edition}`);
    await page.getByRole('radio', { name: 'bearer' }).check();
    expect(await page.getByRole('button', { name: 'replay' }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'duplicate' }).click();
    // The delivery that is looked at stays, and what came since is marked.
    await shows(page, '.facts', 'scenario: replay');
    await expect.poll(async () => page.locator('.mark.new').count()).toBe(2);
    await newest(page).click();
    await expect.poll(async () => page.locator('.mark.new').count()).toBe(0);
    await shows(page, '.run.failed', 'failed', /401 \w+, expected 2xx/);

    await page.getByRole('button', { name: 'lost-and-polled' }).click();
    await shows(page, '.run.waiting', 'waits');
    const call = {
      name: 'create_media_buy',
      arguments: { push_notification_config: { url: 'https://buyer.example/hook' } },
    };
    await fetch(dev.seller('bearer').agentUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
    });
    await page.getByText('Calls of your buyer').click();
    await shows(
      page,
      '.calls',
      'create_media_buy',
      'names the URL https://buyer.example/hook, which dev does not call',
    );
  });

  it('does not become longer than the window by what a scenario has shown', async () => {
    await using _ = await receive(dev, { onChallenge: async () => true });
    await using open = await openPage(browser, dev.url, { viewport: { width: 1280, height: 600 } });
    const { page } = open;
    await page.getByRole('button', { name: 'proof-of-control' }).click();
    await page.locator('.run.passed').last().waitFor();
    expect(await page.evaluate('document.scrollingElement.scrollHeight - innerHeight')).toBe(0);
  });

  it('explains captures: pasted, or of the folder of captureRefused', async () => {
    const refused = join(dev.folder, 'refused');
    mkdirSync(refused);
    await using _ = await receive(dev, { onRefused: captureRefused(refused) });
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await page.getByText('Mistake: none').click();
    await page.getByRole('radio', { name: /^tampered-body/ }).check();
    await send(page);
    await expect.poll(() => readdirSync(refused).length).toBeGreaterThan(0);
    await page.getByRole('tab', { name: 'Answer' }).click();
    await page.getByRole('link', { name: 'Captures' }).click();
    await page.locator('.files button').first().click();
    await shows(page, '.detail', 'captured', 'What to do next', /body/);
    expect(await page.getByRole('tab', { selected: true }).innerText()).toBe('Checks');

    await page.getByRole('link', { name: 'Captures' }).click();
    const capture = page.getByLabel('A raw HTTP request, HAR, or a curl command');
    await capture.fill('neither of them');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.locator('.captures [role="alert"]').waitFor();
    await capture.fill(
      `curl -X POST ${dev.seller('signature').publicUrl} -H 'content-type: application/json' -d '{}'`,
    );
    await page.getByRole('button', { name: 'Explain' }).click();
    await shows(page, '.detail', 'Signature-Input');
    expect(open.complaints.filter((text) => !text.includes('status of 4'))).toEqual([]);
  });

  it('shows what others say as text, wherever they say it', async () => {
    const evil = `<img src=x onerror=alert(1)><script>alert(2)</script>\u202E\u200Btxt"'&`;
    const seen = `<img src=x onerror=alert(1)><script>alert(2)</script>RLOZWSPtxt"'&`;
    const escaped = evil.replaceAll(/[\u007F-\uFFFF]/g, '?');
    const server = createServer((_, response) => {
      response.writeHead(401, {
        'www-authenticate': `Signature error="${escaped.replaceAll('"', '')}"`,
        'x-evil': escaped,
      });
      response.end(JSON.stringify({ error: { code: evil, message: evil } }));
    });
    const close = await listening(server, dev.forwardPort);
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    await page.getByRole('radio', { name: 'Own body' }).check();
    await page.getByLabel('Body', { exact: true }).fill(
      JSON.stringify({
        idempotency_key: 'evil-0123456789abcdef',
        task_id: evil,
        status: evil,
        [evil]: evil,
      }),
    );
    await send(page);
    const { agentUrl } = dev.seller('signature');
    const telling = { sender: agentUrl, code: evil, detail: evil, key: 'evil-0123456789abcdef' };
    await api('told', {
      hook: 'outcome',
      kind: evil,
      status: 401,
      state: evil,
      event: { [evil]: evil },
      ...telling,
    });
    await api('told', { hook: 'alarm', code: evil, message: evil });
    for (const tab of ['Checks', 'Request', 'Signature base', 'Answer', 'Handler']) {
      await page.getByRole('tab', { name: tab }).click();
      await shows(page, '.detail', /alert\(1\)/);
      expect(await page.locator('img, .detail script, #list script').count()).toBe(0);
      expect(await textOf(page, 'body')).not.toMatch(/[\u202E\u200B]/);
    }
    await shows(page, '.tab-view', seen);
    await page.getByRole('tab', { name: 'Request' }).click();
    await expect.poll(async () => (await textOf(page, '.block')).replaceAll('\\', '')).toContain(seen);
    await page.getByRole('link', { name: 'Captures' }).click();
    await page
      .getByLabel('A raw HTTP request, HAR, or a curl command')
      .fill(`POST /${encodeURI('<b>')} HTTP/1.1\r\nHost: a.example\r\nX-Evil: ${escaped}\r\n\r\n${evil}`);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.locator('.detail').waitFor();
    await page.getByRole('tab', { name: 'Request' }).click();
    await shows(page, '.block', seen);
    expect(await page.locator('img').count()).toBe(0);
    await close();
    expect(open.complaints).toEqual([]);
  });

  it('has older deliveries on demand', async () => {
    const payload = { kind: 'task', transport: 'tool', status: 'working' };
    await Promise.all(Array.from({ length: 101 }, async () => api('send', { payload })));
    await using open = await openPage(browser, dev.url);
    const rows = open.page.locator('#list .row');
    expect(await rows.count()).toBe(100);
    await open.page.getByRole('button', { name: 'Older deliveries' }).click();
    await expect.poll(async () => rows.count()).toBeGreaterThan(100);
  });

  it('after a lost connection, says so, and goes on behind the last event that came', async () => {
    const address = new URL(dev.url.replace('127.0.0.1', 'localhost'));
    const proxy = await startProxy(Number(address.port));
    // A name alone is led elsewhere, and dev takes that of this machine.
    const led = await launchChromium(`--host-resolver-rules=MAP ${address.host} 127.0.0.1:${proxy.port}`);
    await using open = await openPage(led, address.href);
    const { page } = open;
    const latest = async (): Promise<number> => Number(await newest(page).getAttribute('data-id'));
    const before = await latest();
    proxy.retarget(await freePort());
    await shows(page, '.notices', 'The connection to dev is lost');
    await api('send', { payload: { kind: 'report', type: 'final' } });
    expect(await latest()).toBe(before);
    proxy.retarget(Number(address.port));
    await expect.poll(latest).toBe(before + 1);
    await shows(page, '#list .row', 'report: final', 'Nothing answers');
    await expect.poll(async () => textOf(page, '.top')).not.toContain('Connection lost');
    await led.close();
    await proxy.close();
  });

  it('after an end of dev, follows it again, and reads the state anew', async () => {
    await using open = await openPage(browser, dev.url);
    const { page } = open;
    expect(await page.locator('#list .row').count()).toBeGreaterThan(3);
    await dev.kill();
    await shows(page, '.notices', 'The connection to dev is lost');
    await shows(page, '.top', 'Connection lost');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await shows(page, '.notices', 'proto-webhooks dev does not answer');
    await dev.start();
    await expect.poll(async () => textOf(page, '.top')).not.toContain('Connection lost');
    await shows(page, '.list', 'Nothing was sent yet');
    await send(page);
    await shows(page, '.next', 'Start the receiver');
    expect(await page.locator('#list .row').count()).toBe(1);
  });
});

describe.each(Object.entries(SIZES))('on a %s screen', (size, viewport) => {
  it.each(['light', 'dark'] as const)('%s: every view can be used by everyone', async (colorScheme) => {
    await using _ = await receive(dev);
    await using open = await openPage(browser, dev.url, { viewport, colorScheme });
    const { page } = open;
    if (size === 'narrow') await page.getByRole('heading', { name: 'Send a delivery' }).click();
    await page.getByText(/^Mistake:/).click();
    await page.getByLabel('Search the mistakes').fill('tampered');
    // On a wide one all of it is there once something was sent.
    if (size === 'narrow') expect(await inaccessible(page)).toEqual([]);
    await page.getByRole('radio', { name: /^tampered-body/ }).check();
    await send(page);
    expect(await inaccessible(page)).toEqual([]);
    if (size === 'narrow') {
      expect(await page.locator('#list').isVisible()).toBe(false);
      await page.getByRole('link', { name: 'Back to the deliveries' }).click();
      await page.locator('#list .row').first().waitFor();
    }
    for (const view of ['Captures', 'Set-up']) {
      await page.getByRole('link', { name: view }).click();
      await page.getByRole('heading', { name: view }).waitFor();
      expect(await inaccessible(page)).toEqual([]);
    }
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(overflow).toBeLessThanOrEqual(0);
    expect(open.complaints).toEqual([]);
  });
});
