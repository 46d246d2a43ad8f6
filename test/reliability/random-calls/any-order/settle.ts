import type { Call } from '../calls.ts';
import type { Account } from './account.ts';
import { breach, idOf, isNewer } from './account.ts';
import type { Process } from './process.ts';
import { deliver, inboxOf, PROCESSES, work } from './process.ts';

/** A call whose handler succeeds, with a fresh nonce, inline, no reply lost. */
const WELL: Call = { does: 'accept', accept: 0, key: 0, nonce: 6, task: 0, second: 0, flags: 4, channel: 0 };
const SECOND_SENDER = 48;

/** Beyond leases, back-off, the look at parked events and the wait of a charged suspect; under the retention in all. */
const HOUR_MS = 3_600_000;
const ROUNDS = 3;

/** Misfortune has stopped: a worker runs until there is nothing to do. */
async function drain(process: Process): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    process.clock.advance(HOUR_MS);
    for (let lease = 0; ; lease += 1) {
      if ((await work(process, WELL, `drain-${round}-${lease}`)) === 0) break;
    }
  }
}

function isOutdated(account: Account, all: Iterable<Account>): boolean {
  return [...all].some(
    (other) =>
      other.sender === account.sender && other.completedBy.size > 0 && isNewer(other.status, account.status),
  );
}

/** Judged by what was told. @returns what is wrong with such an end. */
function wrongEnd(account: Account, state: string, all: Iterable<Account>): string | undefined {
  const isStale = account.discardedSeq < Infinity || isOutdated(account, all);
  switch (state) {
    case 'applied':
      return account.completedBy.size === 1 ? undefined : 'applied, and nobody was told';
    case 'dead':
      return account.deaths > 0 ? undefined : 'dead, and nobody was told';
    case 'stale':
      return isStale ? undefined : 'stale, and nothing newer was applied';
    case 'absent':
      // A stale one leaves no record where there is no room.
      return account.acknowledged === 'stale' && isStale ? undefined : 'gone';
    default:
      return `still ${state}`;
  }
}

/** What the bodies of unfinished events take, of each sender. */
async function checkBytes(process: Process): Promise<void> {
  const senders = new Map<string, number>();
  let longest = 0;
  for (const { sender, key } of process.ledger.accounts.values()) {
    const record = await inboxOf(process).inspect(sender, key);
    senders.set(sender, (senders.get(sender) ?? 0) + (record?.bodyBytes ?? 0));
    longest = Math.max(longest, record?.bodyBytes ?? 0);
    const copy = process.ledger.accounts.get(idOf(sender, key))?.firstCopy;
    const kept = record?.body && new TextDecoder().decode(record.body);
    if (copy !== undefined && kept !== undefined && copy !== kept) breach('the first copy is handled', key);
  }
  const underWay = (PROCESSES - 1) * longest;
  for (const [sender, bytes] of senders) {
    if (bytes > process.world.maxBytes + underWay) breach('caps hold', `${bytes} bytes of ${sender}`);
  }
}

/**
 * After the last call: what was acknowledged has come, or comes without its seller, to an end that somebody was told;
 * the others do when their sellers try again.
 */
export async function settle(process: Process): Promise<void> {
  const { store, ledger, effects } = process;
  await checkBytes(process);
  await drain(process);
  const accounts = [...ledger.accounts.values()];
  for (const account of accounts) {
    const state = await store.peek(account.sender, account.key);
    const wrong = wrongEnd(account, state, accounts);
    if (account.acknowledged !== undefined && wrong !== undefined) {
      breach(
        'an acknowledged event is never lost',
        `${account.key}, told ${account.acknowledged}, is ${wrong}`,
      );
    }
  }
  const rows = await effects?.count();
  const commits = accounts.reduce((sum, account) => sum + account.commits, 0);
  if (rows !== undefined && rows !== commits) {
    breach('one owner completes', `${rows} rows of ${commits} transactions`);
  }
  for (const [index, account] of accounts.entries()) {
    const flags = WELL.flags | (account.sender.includes('two') ? SECOND_SENDER : 0);
    const key = Number(account.key.slice('key-'.length));
    const tryAgain = async (name: string): Promise<string | undefined> => {
      await deliver(process, { ...WELL, key, flags }, `${name}-${index}`);
      return wrongEnd(account, await store.peek(account.sender, account.key), accounts);
    };
    let wrong = await tryAgain('again');
    if (wrong !== undefined) {
      // Its first try has found a crash, and charged it.
      process.clock.advance(HOUR_MS);
      wrong = await tryAgain('last');
    }
    // Over its sender's cap it is not let in, and its seller told so.
    if (wrong !== undefined && account.admitted) {
      breach('every event comes to its end', `${account.key} is ${wrong} after its seller's last try`);
    }
  }
}
