import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { INSTALL_MS } from '../support/packed.ts';
import { type Example, installed } from './kit.ts';

describe('examples/media-buy, installed from the packed package', () => {
  let example: Example;
  beforeAll(async () => {
    example = await installed('media-buy', inject('shared'));
  }, INSTALL_MS);
  afterAll(() => example.remove());

  it('its types are right', async () => void (await example.script('types')), INSTALL_MS);

  it('buys over both transports, and handles each result once', async () => {
    const printed = await example.script('start');
    for (const line of [
      /^buyer {3}spring: called at \S+\/mcp, now (open|ended)$/m,
      /^buyer {3}summer: called at \S+\/a2a, now (open|ended)$/m,
      /^buyer {3}autumn: called at \S+\/mcp, now ended$/m,
      /^buyer {3}summer: completed, told by webhook: \{"media_buy_id":"mb-summer"/m,
      /^seller {2}report posted again: 200$/m,
      /^Four media buys and a report, each handled once\.$/m,
    ]) {
      expect(printed).toMatch(line);
    }
  });

  it('buys of a seller that writes the protocol’s name as adcp, with nothing set', async () => {
    const seller = join(example.folder, 'seller.ts');
    const code = await readFile(seller, 'utf8');
    const changed = code
      .replace("generateKey('ed25519')", "generateKey('ed25519', 'webhook-signing', { protocol: 'adcp' })")
      .replace('signDelivery({', "signDelivery({ protocol: 'adcp',");
    await writeFile(seller, changed);
    expect(changed.match(/'adcp'/g)).toHaveLength(2);
    try {
      expect(await example.script('start')).toMatch(/^Four media buys and a report, each handled once\.$/m);
    } finally {
      await writeFile(seller, code);
    }
  });

  it('ends with 1 where something else happened', async () => {
    const seller = join(example.folder, 'seller.ts');
    const code = await readFile(seller, 'utf8');
    const changed = code.replace("'scheduled'", "'final'");
    expect(changed).not.toBe(code);
    await writeFile(seller, changed);
    await expect(example.script('start')).rejects.toThrow(/Expected .*Happened: .*report: final/);
  });
});
