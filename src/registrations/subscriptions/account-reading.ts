// Reads all webhook subscriptions of an account from the seller, page by page (subscriptions.md §2.2). Called when
// subscriptions are changed, and when the URLs at sellers are checked.
import { isJsonObject, type JsonObject as Members, present, textMember } from '../../codec/members.ts';
import type { JsonObject } from '../answer-json.ts';
import { MAX_TEXT } from '../../codec/printable.ts';
import { sellerText } from '../answer.ts';
import { RegistrationError } from '../registrations-errors.ts';

/** An entry of `notification_configs`: a subscription of this application, or of another subscriber of the account. */
export type Entry = Members & { readonly subscriber_id: string };

export interface Reading {
  readonly accountId: string;
  readonly entries: readonly Entry[];
}

/** Sends a request to the seller; resolves with the object that the operation returned. */
export type Ask = (operation: string, args: JsonObject) => Promise<Members>;

const MOST_PAGES = 100;
/** The number of accounts requested per page: the most that the protocol allows. */
const A_PAGE = 100;

/**
 * Reads an account's id and its subscription entries from the seller.
 * @throws RegistrationError `account_unknown` if no account or several match, `answer_invalid` if an answer is
 *   unusable; any error of `ask`.
 */
export async function readAccount(ask: Ask, account: JsonObject): Promise<Reading> {
  const found: Members[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await ask('list_accounts', {
      account,
      ...(cursor !== undefined && { pagination: { max_results: A_PAGE, cursor } }),
    });
    const accounts = present(page, 'accounts');
    if (!Array.isArray(accounts)) throw invalid('list_accounts has no list of accounts');
    // At most two matching accounts are collected: two suffice to know that `account` is ambiguous.
    for (const one of accounts as readonly unknown[]) {
      if (isJsonObject(one) && found.length < 2 && isOf(one, account)) found.push(one);
    }
    const next = nextCursor(page, cursor);
    if (next === undefined) return readingIn(found);
    cursor = next;
  }
  throw invalid(`list_accounts has more than ${MOST_PAGES} pages`);
}

/**
 * True if `one`, an account in the seller's answer, matches the requested `account`: by `account_id` if requested,
 * otherwise by all requested members.
 */
function isOf(one: Members, account: JsonObject): boolean {
  const id = textMember(account, 'account_id');
  return id === undefined ? hasAll(one, account) : one['account_id'] === id;
}

function hasAll(is: unknown, wanted: unknown): boolean {
  if (!isJsonObject(wanted)) return isSame(is, wanted);
  return (
    isJsonObject(is) && Object.entries(wanted).every(([name, value]) => hasAll(present(is, name), value))
  );
}

const isSame = (is: unknown, wanted: unknown): boolean =>
  JSON.stringify(is ?? null) === JSON.stringify(wanted ?? null);

function nextCursor(page: Members, last: string | undefined): string | undefined {
  const pagination = present(page, 'pagination');
  if (!isJsonObject(pagination) || pagination['has_more'] !== true) return undefined;
  const cursor = textMember(pagination, 'cursor');
  if (cursor === undefined || cursor === '' || cursor === last || cursor.length > MAX_TEXT) {
    throw invalid('list_accounts says that there is more, and not where');
  }
  return cursor;
}

function readingIn(found: readonly Members[]): Reading {
  const [one, other] = found;
  if (!one || other) {
    throw new RegistrationError(
      'account_unknown',
      `account: the seller has ${one ? 'several accounts' : 'no account'} with these members, and nothing was sent. Give its account_id as list_accounts has it: account: { account_id }.`,
    );
  }
  const accountId = textMember(one, 'account_id');
  if (accountId === undefined || accountId === '' || accountId.length > MAX_TEXT) {
    throw invalid('list_accounts has the account without an account_id');
  }
  return { accountId, entries: entriesIn(one) };
}

function entriesIn(account: Members): readonly Entry[] {
  const configs = present(account, 'notification_configs') ?? [];
  // One unreadable entry makes the answer invalid, because a later change has to send all entries back unchanged.
  if (!Array.isArray(configs) || !configs.every(isEntry)) {
    throw invalid(
      'list_accounts has notification_configs that are not a list of entries with a subscriber_id',
    );
  }
  return configs;
}

const isEntry = (value: unknown): value is Entry =>
  isJsonObject(value) && (textMember(value, 'subscriber_id') ?? '') !== '';

/**
 * Returns the error for a seller's answer that lacks the expected content.
 * @param what the fault, as the beginning of a sentence.
 */
export const invalid = (what: string): RegistrationError =>
  new RegistrationError('answer_invalid', `${sellerText(what)}. Report it to the seller; it is asked again.`);
