import { expect, it } from 'vitest';
import type { PgClient } from '../../src/stores/postgres.ts';
import { ownSchema } from '../stores/postgres-schemas.ts';
import { AGENT, gate, testReceiver, payloads, said } from './setup.ts';

const at = ownSchema(2);

it('a query that comes after the end of its ctx.transaction is refused, and the log names its event', async () => {
  const lines: object[] = [];
  const none = (): void => undefined;
  const error = (fields: object): number => lines.push(fields);
  const end = gate();
  let late: Promise<unknown> | undefined;
  const { deliver, receiver, seen } = await testReceiver({
    store: at.store(),
    logger: { debug: none, info: none, warn: none, error },
    handler: (_, ctx) =>
      ctx.transaction(async (given) => {
        const tx = given as PgClient;
        await tx.query('SELECT 1');
        late = end.opened.then(() => tx.query(`INSERT INTO ${at.schema}.note VALUES ('late')`));
        late.catch(none);
      }),
  });
  expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  end.open();
  await expect(late).rejects.toMatchObject({ code: 'transaction_over' });
  expect(await at.sql('SELECT line FROM note')).toEqual([]);
  const key = seen[0]?.event.idempotencyKey;
  expect(lines).toMatchObject([{ sender: AGENT, key, err: { code: 'transaction_over' } }]);
  await receiver.stop();
});
