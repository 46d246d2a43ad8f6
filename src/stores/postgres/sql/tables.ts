/**
 * The tables. They live in a schema of their own, in the owner's database, so that `ctx.transaction` can write beside
 * them; the prefix lets that schema be a shared one.
 *
 *     webhook_sender        url → id
 *     webhook_keyid         (sender, key id) → id
 *     webhook_count         (sender, key id, stripe) → counts; a count is the sum of its stripes
 *                           (sender, any): records, tasks, notification ids; bytes of unfinished bodies
 *                           (sender, key id): its nonces. (0, 0): nonces of all senders
 *     webhook_nonce         (key id, nonce) → the event that burned it (null: none) and the accept that did
 *     webhook_record        (sender, idempotency key) → state, lease, fingerprints, and the first copy until DONE
 *     webhook_task          (sender, task id) → who holds it, the newest status applied
 *     webhook_notification  (sender, notification id) → the event that brought it first
 *
 * Each backend adds to a stripe of its own number, so that two of them seldom wait for one row. Instants are Unix ms
 * but `instant` and `mark`, which are `instantKey`s; text compares bytewise ("C"). `expires_at` null means never. Keys are encoded (`stores/text.ts`). A body is neither compressed (its life is short) nor moved where the row
 * is updated.
 *
 * When workers look at a record is computed by an index (`DUE_AT`), so that no statement can forget it: a generated
 * column would be set up for each statement and computed for each row, those included that no worker looks at. Indexes are
 * partial: a finished record is in none but its key's and the expiry's, one of inline mode never in those of workers.
 * Those by expiry are partial so that no look by a key can take them: to a planner whose statistics are of empty tables
 * all indexes are alike. `seq` is the order of insertion. `state` is one of queued, leased, applied, stale, dead; `claim`, what the accept of
 * `claimed_by` was told, one of won, queued, stale, died, waiting. No CHECK says so: each would be read from the catalog
 * and set up again for every statement.
 */
/** What workers look at, and from when on. */
export const IS_DUE = "acked AND state IN ('queued', 'leased')";
export const DUE_AT = "greatest(CASE state WHEN 'queued' THEN not_before ELSE lease_until END, parked_until)";

export const TABLES: string = `
CREATE TABLE webhook_sender (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE webhook_keyid (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sender_id integer NOT NULL,
  keyid text COLLATE "C" NOT NULL,
  UNIQUE (sender_id, keyid)
);
CREATE TABLE webhook_count (
  sender_id integer NOT NULL,
  keyid_id integer NOT NULL,
  stripe integer NOT NULL,
  entries bigint NOT NULL,
  pending_bytes bigint NOT NULL,
  nonces bigint NOT NULL,
  PRIMARY KEY (sender_id, keyid_id, stripe)
) WITH (fillfactor = 25);
CREATE TABLE webhook_nonce (
  expires_at bigint NOT NULL,
  keyid_id integer NOT NULL,
  nonce text COLLATE "C" NOT NULL,
  record_key text COLLATE "C",
  accept_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (keyid_id, nonce)
);
CREATE INDEX webhook_nonce_expiry ON webhook_nonce (keyid_id, expires_at) WHERE expires_at > 0;
CREATE TABLE webhook_record (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  inserted_at bigint NOT NULL,
  not_before bigint NOT NULL,
  lease_until bigint NOT NULL,
  parked_until bigint NOT NULL,
  expires_at bigint,
  instant_ms bigint,
  sender_id integer NOT NULL,
  fence integer NOT NULL,
  attempts integer NOT NULL,
  crashes integer NOT NULL,
  body_bytes integer NOT NULL,
  acked boolean NOT NULL,
  terminal boolean NOT NULL,
  reemission boolean NOT NULL,
  after_terminal boolean NOT NULL,
  after_final boolean NOT NULL,
  ahead boolean NOT NULL,
  key text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  claim text COLLATE "C" NOT NULL,
  claimed_by text COLLATE "C" NOT NULL,
  owner text COLLATE "C",
  raw_hash bytea NOT NULL,
  canonical_hash bytea,
  task_id text COLLATE "C",
  instant text COLLATE "C",
  last_error text COLLATE "C",
  body bytea,
  PRIMARY KEY (sender_id, key)
);
ALTER TABLE webhook_record ALTER body SET STORAGE EXTERNAL;
CREATE INDEX webhook_record_expiry ON webhook_record (sender_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_record_due ON webhook_record ((${DUE_AT}), seq) WHERE ${IS_DUE};
CREATE INDEX webhook_record_parked ON webhook_record (sender_id, task_id, seq) WHERE parked_until > 0;
CREATE INDEX webhook_record_open ON webhook_record (seq) WHERE state IN ('queued', 'leased', 'dead');
CREATE TABLE webhook_task (
  expires_at bigint NOT NULL,
  sender_id integer NOT NULL,
  mark_terminal boolean NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  holder text COLLATE "C",
  mark text COLLATE "C",
  PRIMARY KEY (sender_id, task_id)
);
CREATE INDEX webhook_task_expiry ON webhook_task (sender_id, expires_at) WHERE expires_at > 0;
CREATE TABLE webhook_notification (
  expires_at bigint NOT NULL,
  sender_id integer NOT NULL,
  notification_id text COLLATE "C" NOT NULL,
  record_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (sender_id, notification_id)
);
CREATE INDEX webhook_notification_expiry ON webhook_notification (sender_id, expires_at) WHERE expires_at > 0;
`;
