import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { listening } from '../adapters/raw-client.ts';
import { collect } from '../support/collect.ts';

const MIB = 1_048_576;
/** 200,000 values of 2 bytes on the wire, some 4 MiB in memory. */
const ANSWER = JSON.stringify({
  content: [],
  structuredContent: { items: Array.from({ length: 200_000 }, () => []) },
});

function resultOf(method: string): string {
  if (method !== 'initialize') return ANSWER;
  return JSON.stringify({
    protocolVersion: '2025-06-18',
    capabilities: {},
    serverInfo: { name: 'seller', version: '1' },
  });
}

it('an answer is held no longer than its call', async () => {
  await using seller = await listening((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const { method = '', id } = (text === '' ? {} : JSON.parse(text)) as { method?: string; id?: number };
      if (id === undefined) res.writeHead(202).end();
      else
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${id},"result":${resultOf(method)}}`);
    });
  });
  const call = mcpCaller({ allowLoopback: true });
  // As a poller's, it lives on.
  const { signal } = new AbortController();
  const heldMiB = async (calls: number): Promise<number> => {
    for (let made = 0; made < calls; made += 1)
      await call(`${seller.url}/mcp`, 'get_products', {}, { signal });
    await setImmediate();
    collect();
    return process.memoryUsage().heapUsed / MIB;
  };
  const before = await heldMiB(2);
  // Each kept would be over 60 MiB together.
  expect((await heldMiB(16)) - before).toBeLessThan(16);
});
