/*
 * `npm run dev:screenshots`, after a build: takes the pictures of the page of `proto-webhooks dev` that docs/dev.md and the
 * README show, with the browser of the tests. Ports 3000 and 4646 have to be free: they are in the pictures.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { generateKey } from '../src/sender/sign.ts';
import { openPage, receive, send, startDevProcess } from '../test/dev/page/fixture.ts';
import { aptInstall } from '../test/support/apt.ts';
import { launchChromium } from '../test/support/chromium.ts';

const images = fileURLToPath(new URL('../docs/images', import.meta.url));
mkdirSync(images, { recursive: true });

const viewport = { width: 1180, height: 720 };

const quantised = (...args: readonly string[]): boolean => spawnSync('pngquant', args).status === 0;
const isInstalled = (): boolean => quantised('--version');
await aptInstall({ name: 'pngquant', isInstalled });
if (!isInstalled()) throw new Error('The pictures need pngquant in PATH (Debian: apt-get install pngquant).');

const dev = await startDevProcess([4646, 3000]);
const browser = await launchChromium();

/** With few colours: each picture is at most 60 kB. */
async function take(page: Page, name: string): Promise<void> {
  const path = join(images, `${name}.png`);
  await page.screenshot({ path });
  if (!quantised('--force', '--ext', '.png', '--strip', '--speed', '1', '--nofs', '48', path))
    throw new Error(`pngquant: ${path}`);
}

/** Sends a task's status. */
async function sendStatus(page: Page, status: string): Promise<void> {
  await page.getByRole('combobox', { name: 'Status', exact: true }).selectOption(status);
  await send(page);
}

try {
  const { page } = await openPage(browser, dev.url, { viewport, colorScheme: 'light' });
  const { publicJwk } = await generateKey('ed25519');
  // It knows another seller alone.
  const stranger = await receive(dev, {
    senders: [{ agentUrl: 'https://seller.example/mcp', pins: [publicJwk] }],
  });
  await sendStatus(page, 'completed');
  await stranger.end();

  const receiver = await receive(dev);
  await sendStatus(page, 'working');
  await sendStatus(page, 'completed');
  await page.getByRole('button', { name: 'Sign anew' }).click();
  await page.locator('#list .row').nth(3).waitFor();
  await page.locator('#list .row').nth(1).click();
  await page.getByRole('tab', { name: 'Handler' }).click();
  await page.locator('.tellings .block').first().waitFor();
  await take(page, 'dev-list');

  await page.locator('#list .row').last().click();
  await page.getByRole('tab', { name: 'Checks' }).click();
  await page.locator('.next').waitFor();
  await take(page, 'dev-cause');
  await receiver.end();
} finally {
  await browser.close();
  await dev.remove();
}
