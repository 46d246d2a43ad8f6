import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { LEASE_MS } from './kit.ts';

/** Characters that mean something to a backend: hash tags, globs, separators, quotes, LIKE, encodings. */
const HOSTILE: readonly string[] = [
  '{}',
  '{a}b',
  'a}b{',
  '*',
  'k*y?[a-z]',
  ':',
  'a:b',
  'a::b',
  '%',
  '_',
  "'; DROP TABLE webhook_row; --",
  '"quoted"',
  '\\',
  '\\u0061',
  ' leading and trailing ',
  'line\nbreak\r\ttab',
  'e\u0301',
  '\u00e9',
  '\u{1F600}',
  '\ud800',
  '\udfff',
  '\ufffd',
  '\u0001"\\ud800"',
  '__proto__',
  'constructor',
  'A',
  'a',
  'a ',
  '0',
  '00',
  '1e0',
];

/** Keyspaces of different senders are independent (contract.md §9.1). */
export const keyspaceCases: Cases = {
  'one sender’s events, nonces and tasks are not another’s': async ({ apply, win }) => {
    const same = { key: 'one-key-for-both-of-them', nonce: 'nonce-of-16-bytes-or-more', task: 'task-1' };
    await apply({ ...same, at: '2026-01-02T00:00:00Z' });
    await win({ ...same, at: '2026-01-01T00:00:00Z', sender: 'https://other.example/mcp' });
  },
  'sender and key are not run together': async ({ apply, win }) => {
    for (const separator of [':', '/', '\n', '|', '{', ' ']) {
      await apply({ sender: `s${separator}a`, key: 'b' });
      await win({ sender: 's', key: `a${separator}b` });
    }
  },
  'any text is a key of its own': async ({ win, complete, peek }) => {
    for (const key of HOSTILE) await win({ key, id: `accept of ${HOSTILE.indexOf(key)}` });
    for (const key of HOSTILE) {
      assert.equal(await complete(`accept of ${HOSTILE.indexOf(key)}`, { key }), 'done', JSON.stringify(key));
    }
    for (const key of HOSTILE) assert.equal(await peek({ key }), 'applied', JSON.stringify(key));
  },
  'any text is a sender of its own': async ({ win }) => {
    for (const sender of HOSTILE) await win({ sender, nonce: 'nonce-of-16-bytes-or-more' });
  },
  'any text is a task of its own': async ({ accept, win, advance, peek }) => {
    for (const task of HOSTILE) {
      await win({ task, key: `${HOSTILE.indexOf(task)}-holds-the-task` });
      const waiting = { task, key: `${HOSTILE.indexOf(task)}-waits-for-the-task` };
      assert.equal((await accept(waiting)).kind, 'task-busy', JSON.stringify(task));
      assert.equal(await peek(waiting), 'busy');
    }
    advance(LEASE_MS + 1);
    for (const task of HOSTILE) await win({ task, key: `${HOSTILE.indexOf(task)}-waits-for-the-task` });
  },
  'any text is a nonce, a key id and a notification id of its own': async ({ accept, win }) => {
    for (const odd of HOSTILE) {
      const draft = { nonce: odd, notification: odd, key: `${HOSTILE.indexOf(odd)}-has-an-odd-nonce` };
      assert.equal((await win(draft)).reemission, false, JSON.stringify(odd));
      assert.equal((await accept({ event: false, nonce: odd })).kind, 'replayed', JSON.stringify(odd));
      assert.equal(
        (await accept({ event: false, nonce: 'n', keyid: odd })).kind,
        'burned',
        JSON.stringify(odd),
      );
    }
  },
  'any text as a key holds its task': async ({ accept, win }) => {
    for (const key of HOSTILE) {
      const task = `task of ${HOSTILE.indexOf(key)}`;
      await win({ key, task });
      assert.equal((await accept({ key: `${task} waits`, task })).kind, 'task-busy', JSON.stringify(key));
    }
  },
};
