import { expect, test } from 'vitest';
import type { Candidate } from '../../src/keys/contract.ts';
import { gather } from '../../src/keys/key-search.ts';
import type { SenderMatch } from '../../src/keys/sender-search.ts';
import type { SenderEntry } from '../../src/senders.ts';
import { latch } from './key-server.ts';
import { senderEntry } from './setup.ts';

const LIMITS = { width: 8, deadlineMs: 5000, graceMs: 1000 };
const senders = (count: number): SenderEntry[] =>
  Array.from({ length: count }, (_, index) => senderEntry(`https://s${index}.example/`));
const candidate = (sender: SenderEntry): Candidate => ({
  sender,
  key: { kid: 'k', jwk: {}, verifyKey: 'not needed here' },
});
const never = (): Promise<SenderMatch> => new Promise(() => undefined);

test('answers come in the order of the senders', async () => {
  const [a, b, c] = senders(3);
  const later = latch();
  const found = await gather(
    [a, b, c].filter((sender) => sender !== undefined),
    async (sender) => {
      if (sender === a) await later.opened;
      else later.open();
      return sender === b ? { undecided: 'down' } : { candidates: [candidate(sender)] };
    },
    LIMITS,
  );
  expect(found.candidates.map(({ sender }) => sender)).toEqual([a, c]);
  expect(found.undecided).toEqual(['https://s1.example/: down']);
});

test('at most `width` are asked at a time', async () => {
  let running = 0;
  let most = 0;
  await gather(
    senders(30),
    async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      return {};
    },
    LIMITS,
  );
  expect(most).toBe(8);
});

test('no senders: nothing known, nothing undecided', async () => {
  expect(await gather([], never, LIMITS)).toEqual({ candidates: [], undecided: [] });
});

test('one that does not answer does not hold up another that has the key, and stays undecided', async () => {
  const all = senders(2);
  const found = await gather(
    all,
    async (sender) => (sender === all[1] ? { candidates: [candidate(sender)] } : await never()),
    { ...LIMITS, graceMs: 1 },
  );
  expect(found.candidates.map(({ sender }) => sender)).toEqual([all[1]]);
  expect(found.undecided).toEqual(['https://s0.example/: no answer in time']);
});

test('past the deadline whoever has not answered is undecided, and nobody else is asked', async () => {
  let asked = 0;
  const late = latch();
  const found = await gather(
    senders(20),
    async () => {
      asked += 1;
      await late.opened;
      return {};
    },
    { ...LIMITS, deadlineMs: 1 },
  );
  expect(found.undecided).toHaveLength(20);
  late.open();
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  expect(asked).toBe(8);
});

test('a fault with one sender leaves that one undecided and no other', async () => {
  const all = senders(2);
  const found = await gather(
    all,
    async (sender) => {
      if (sender === all[0]) throw new Error('no engine');
      return await Promise.resolve({ candidates: [candidate(sender)] });
    },
    LIMITS,
  );
  expect(found.candidates).toHaveLength(1);
  expect(found.undecided).toEqual(['https://s0.example/: no engine']);
});
