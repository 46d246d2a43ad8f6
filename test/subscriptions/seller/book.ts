import type { Entry } from './entries.ts';
import { type Args, Refused } from './log.ts';

/* The seller's accounts, and the set of notifications of each one and of each principal. */

export interface Account {
  readonly account_id: string;
  readonly name: string;
  readonly status: string;
  readonly brand: { readonly domain: string };
  readonly operator: string;
  readonly sandbox?: boolean;
}

/** An entry, and of what its subscriber has proven control: the text changes with all that needs a fresh proof. */
export interface Held {
  readonly entry: Entry;
  readonly proven: string;
}

/** All that a fresh proof of control is needed for, where it changes. */
export function provenBy({ subscriber_id: id, url, authentication, event_types: types }: Entry): string {
  const { schemes = [], credentials = '' } = authentication ?? {};
  return JSON.stringify([id, new URL(url).href, schemes, credentials, [...new Set(types)].toSorted()]);
}

export interface Book {
  readonly accounts: readonly Account[];
  readonly add: (account: Account) => void;
  /** The one account that an account object names. @throws Refused */
  readonly named: (account: unknown) => Account;
  /** All whose members are those of the object; all where it is absent. */
  readonly matching: (account: unknown) => readonly Account[];
  /** Of an account by its id, of a principal as `agent <name>`. */
  readonly entries: (set: string) => readonly Held[];
  readonly put: (set: string, entries: readonly Held[]) => void;
}

const isObject = (value: unknown): value is Args =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Each member of `part` is in `whole`, objects member by member. */
const isWithin = (part: unknown, whole: unknown): boolean =>
  isObject(part) && isObject(whole)
    ? Object.entries(part).every(([name, value]) => isWithin(value, whole[name]))
    : part === whole;

export function newBook(onSet: (set: string, entries: readonly Entry[]) => void): Book {
  const accounts: Account[] = [];
  const sets = new Map<string, readonly Held[]>();
  const matching = (account: unknown): readonly Account[] =>
    account === undefined ? accounts : accounts.filter((one) => isWithin(account, one));
  return {
    accounts,
    add: (account) => void accounts.push(account),
    matching,
    named: (account) => {
      if (!isObject(account) || Object.keys(account).length === 0) {
        throw new Refused('INVALID_REQUEST', 'account is missing', { field: 'account' });
      }
      const [found, other] = matching(account);
      if (!found) throw new Refused('ACCOUNT_NOT_FOUND', 'there is no such account');
      if (other) throw new Refused('ACCOUNT_AMBIGUOUS', 'there are several such accounts');
      return found;
    },
    entries: (set) => sets.get(set) ?? [],
    put: (set, held) => {
      sets.set(set, held);
      onSet(
        set,
        held.map(({ entry }) => entry),
      );
    },
  };
}
