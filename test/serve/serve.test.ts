import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ready, serving, world } from './kit.ts';

it('a delivery of a seller reaches the sink as a signed event, and SIGTERM ends with 0', async () => {
  const at = await world();
  const served = serving(at.folder.file('webhooks.yaml', at.yaml()), at.folder.path);
  await ready(at);
  const { last } = await at.seller.deliver(at.seller.payloads.tool('completed'));
  expect(last.status).toBe(200);
  await expect.poll(() => at.sink.posted.length, { timeout: 30_000 }).toBe(1);
  expect(at.sink.posted[0]?.event).toMatchObject({
    source: at.seller.agentUrl,
    type: 'proto.task.completed',
  });
  expect(existsSync(join(at.folder.path, 'data/webhooks.db'))).toBe(true);
  expect(await served.stop()).toEqual({ code: 0 });
  expect(served.lines.map(({ msg }) => msg)).toEqual(
    expect.arrayContaining(['listening', 'stopping', 'stopped']),
  );
});
