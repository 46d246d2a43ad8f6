import type { Account } from './book.ts';
import type { Entry } from './entries.ts';

/* Accounts, and what other subscribers have there. */

export const accountOf = (id: string, members: Partial<Account> = {}): Account => ({
  account_id: id,
  name: `the account ${id}`,
  status: 'active',
  brand: { domain: `${id}.example` },
  operator: 'operator.example',
  ...members,
});

const CREDENTIALS = 'credentials-of-another-subscriber-0001';

/** Entries of other subscribers: one that is signed, one with credentials, one paused, one with members that no buyer knows. */
export const OTHERS: readonly Entry[] = [
  {
    subscriber_id: 'other.signed',
    url: 'https://other.example/hooks/1',
    event_types: ['product.updated', 'creative.purged'],
    active: true,
  },
  {
    subscriber_id: 'other.paused',
    url: 'https://other.example/hooks/2',
    event_types: ['signal.priced'],
    active: false,
  },
  {
    subscriber_id: 'other:newer',
    url: 'https://newer.example/hooks',
    event_types: ['wholesale_feed.bulk_change'],
    active: true,
    product_payload_view: 'canonical',
    quiet_hours: { from: '22:00', to: '06:00', of: ['UTC', 'Europe/Berlin'] },
    ext: { owner: { team: 'ops', é: ' \u2028 ' }, retries: 5 },
  },
];

export const LEGACY_OTHER: Entry = {
  subscriber_id: 'other_legacy',
  url: 'https://legacy.example/hooks',
  event_types: ['creative.status_changed'],
  authentication: { schemes: ['HMAC-SHA256'], credentials: CREDENTIALS },
  active: true,
};

/** What the owner knows of them. */
export const LEGACY_CREDENTIALS: Readonly<Record<string, string>> = { other_legacy: CREDENTIALS };
