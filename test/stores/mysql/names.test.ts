import { expect, it } from 'vitest';
import { registrationsOf } from '../../../src/testing/for-tests.ts';
import { ownDatabase } from '../mysql-databases.ts';
import { acceptRequest } from '../requests.ts';

const at = ownDatabase();

/** A sender of so many bytes; two of them differ in the last ones alone. */
const senderOf = (bytes: number, end: string): string =>
  `https://${'s'.repeat(bytes - 8 - end.length)}${end}`;

it('a sender of 1,500 bytes is one of its own; a longer one is refused, and no other call of its batch', async () => {
  const store = at.store();
  await store.open();
  const calls = [1500, 1500, 1501, 2000].map((bytes, n) =>
    store.accept(acceptRequest({ sender: senderOf(bytes, `/${n}`) })).then(
      ({ kind }) => kind,
      (error: unknown) => error,
    ),
  );
  const refused = {
    code: 'store_unavailable',
    message: expect.stringMatching(
      /^MySQL: the sender https:\/\/s+… has over 1,500 bytes, and cannot be stored/,
    ),
  };
  expect(await Promise.all(calls)).toMatchObject(['won', 'won', refused, refused]);
  const again = await store.accept(acceptRequest({ sender: senderOf(1500, '/0') }));
  expect(again.kind).toBe('in-flight');
  await expect(
    registrationsOf(store).run(senderOf(1501, ''), (rows) => rows.get('watch', '1')),
  ).rejects.toMatchObject(refused);
  await store.close();
});
