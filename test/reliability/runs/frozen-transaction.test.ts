import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../../stores/requests.ts';
import { ownSchema } from '../../stores/postgres-schemas.ts';
import { LONG } from '../form.ts';
import { print } from './figures.ts';
import type { Told } from './frozen.ts';
import { LEASE_MS, WRITE } from './frozen.ts';

const EVENTS = LONG ? 200 : 2;
const FROZEN = fileURLToPath(new URL('fixtures/frozen.ts', import.meta.url));

const at = ownSchema();

/** The process that is frozen, and what it says, one thing after the other. */
function frozenProcess(): {
  send: (key: string) => void;
  told: () => Promise<Told>;
  go: () => void;
  end: () => void;
} {
  const child = fork(FROZEN, [at.url, at.schema], { execArgv: [] });
  const said: Told[] = [];
  const waiting: ((told: Told) => void)[] = [];
  child.on('message', (message) => {
    const next = waiting.shift();
    if (next) next(message as Told);
    else said.push(message as Told);
  });
  return {
    send: (key) => void child.send(key),
    told: async () =>
      said.shift() ??
      new Promise((resolve, reject) => {
        waiting.push(resolve);
        child.once('exit', (code) => reject(new Error(`the process ended: ${code}`)));
      }),
    go: () => void child.kill('SIGCONT'),
    end: () => void child.kill('SIGKILL'),
  };
}

it(
  'frozen transaction: a process that stops inside ctx.transaction frees its rows, and another completes its events once',
  async () => {
    await at.sql('CREATE TABLE balance (n integer); INSERT INTO balance VALUES (0)');
    await at.sql('CREATE TABLE effect (key text, who text)');
    const store = at.store(at.pools[0], { clockOffsetMs: () => LEASE_MS + 1000 });
    await store.open();
    const frozen = frozenProcess();
    const ends: string[] = [];
    try {
      expect((await frozen.told()).what).toBe('open');
      for (let n = 0; n < EVENTS; n += 1) {
        frozen.send(key(n));
        expect(await frozen.told()).toEqual({ key: key(n), what: 'inside' });
        const request = acceptRequest({ key: key(n) });
        expect((await store.accept(request)).kind).toBe('won');
        // Waits for the row that the frozen process holds.
        await store.transaction({ ...leaseOf(request), retentionMs: RETENTION_MS }, (tx) =>
          tx.query(WRITE(at.schema), [key(n), 'taken over']),
        );
        frozen.go();
        ends.push((await frozen.told()).what);
      }
    } finally {
      frozen.end();
    }
    const effects = await at.sql(
      'SELECT key, min(who) AS who, count(*)::integer AS n FROM effect GROUP BY key ORDER BY key',
    );
    const dead = (await store.inbox.list({ state: 'dead', limit: 1000 })).records.length;
    const lost = EVENTS - effects.length;
    const twice = effects.filter(({ n }) => Number(n) > 1).length;
    print({ run: 'frozen transaction', events: EVENTS, faults: EVENTS, lost, twice, dead });
    expect({ lost, twice, dead }).toEqual({ lost: 0, twice: 0, dead: 0 });
    expect(new Set(effects.map(({ who }) => who))).toEqual(new Set(['taken over']));
    expect(new Set(ends)).toEqual(new Set(['store_unavailable']));
    expect(await at.sql('SELECT n FROM balance')).toEqual([{ n: EVENTS }]);
    await store.close();
  },
  EVENTS * 5000 + 60_000,
);
