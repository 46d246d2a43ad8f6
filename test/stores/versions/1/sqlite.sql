CREATE TABLE webhook_schema (version INTEGER NOT NULL) STRICT;
CREATE TABLE webhook_sender (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE webhook_keyid (
  id INTEGER PRIMARY KEY,
  sender_id INTEGER NOT NULL,
  keyid TEXT NOT NULL,
  UNIQUE (sender_id, keyid)
) STRICT;
CREATE TABLE webhook_count (
  owner INTEGER PRIMARY KEY,
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  nonces INTEGER NOT NULL
) STRICT;
CREATE TABLE webhook_nonce (
  keyid_id INTEGER NOT NULL,
  nonce TEXT NOT NULL,
  record_key TEXT,
  accept_id TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (keyid_id, nonce)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_nonce_expiry ON webhook_nonce (expires_at, keyid_id);
CREATE TABLE webhook_record (
  sender_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  place INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'applied', 'stale', 'dead')),
  claim TEXT NOT NULL,
  claimed_by TEXT NOT NULL,
  owner TEXT,
  fence INTEGER NOT NULL,
  lease_until INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  acked INTEGER NOT NULL,
  inserted_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  parked_until INTEGER NOT NULL,
  due_at INTEGER,
  last_error TEXT,
  raw_hash TEXT NOT NULL,
  canonical_hash TEXT,
  task_id TEXT,
  instant TEXT COLLATE BINARY,
  instant_ms INTEGER,
  terminal INTEGER NOT NULL,
  reemission INTEGER NOT NULL,
  after_terminal INTEGER NOT NULL,
  ahead INTEGER NOT NULL,
  after_final INTEGER NOT NULL,
  body_bytes INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (sender_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_record_expiry ON webhook_record (expires_at, sender_id) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_record_due ON webhook_record (due_at, place) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_record_parked ON webhook_record (sender_id, task_id, place) WHERE parked_until > 0;
CREATE INDEX webhook_record_open ON webhook_record (sender_id, state, place) WHERE place > 0;
CREATE TABLE webhook_body (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE webhook_task (
  sender_id INTEGER NOT NULL,
  task_id TEXT NOT NULL,
  holder TEXT,
  mark TEXT COLLATE BINARY,
  mark_terminal INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (sender_id, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_task_expiry ON webhook_task (expires_at, sender_id);
CREATE TABLE webhook_notification (
  sender_id INTEGER NOT NULL,
  notification_id TEXT NOT NULL,
  record_key TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (sender_id, notification_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_notification_expiry ON webhook_notification (expires_at, sender_id);
INSERT INTO webhook_schema VALUES (1);
INSERT INTO webhook_sender VALUES (1, 'https://seller.example/mcp');
INSERT INTO webhook_keyid VALUES (1, 1, 'seller-2026');
INSERT INTO webhook_count VALUES (0, 0, 0, 8);
INSERT INTO webhook_count VALUES (2, 11, 92, 0);
INSERT INTO webhook_count VALUES (3, 0, 0, 8);
INSERT INTO webhook_nonce VALUES (1, 'nonce-1', 'event-0001-of-the-seller', '00000000-0000-4000-8000-000000000001', 1795354933561);
INSERT INTO webhook_nonce VALUES (1, 'nonce-2', 'event-0002-of-the-seller', '00000000-0000-4000-8000-000000000002', 1795354933563);
INSERT INTO webhook_nonce VALUES (1, 'nonce-3', 'event-0003-of-the-seller', '00000000-0000-4000-8000-000000000003', 1795354933564);
INSERT INTO webhook_nonce VALUES (1, 'nonce-4', 'event-0004-of-the-seller', '00000000-0000-4000-8000-000000000004', 1795354933564);
INSERT INTO webhook_nonce VALUES (1, 'nonce-5', 'event-0005-of-the-seller', '00000000-0000-4000-8000-000000000005', 1795354933565);
INSERT INTO webhook_nonce VALUES (1, 'nonce-6', 'event-0006-of-the-seller', '00000000-0000-4000-8000-000000000006', 1795354933565);
INSERT INTO webhook_nonce VALUES (1, 'nonce-7', 'event-0007-of-the-seller', '00000000-0000-4000-8000-000000000007', 1795354933566);
INSERT INTO webhook_nonce VALUES (1, 'nonce-8', NULL, '00000000-0000-4000-8000-000000000008', 1795354933566);
INSERT INTO webhook_record VALUES (1, 'event-0001-of-the-seller', 1, 'queued', 'queued', '00000000-0000-4000-8000-000000000001', NULL, 0, 0, 0, 0, 1, 1795354573561, 1795354573561, 0, 1795354573561, NULL, '19c7392823396bdf766dd61114fe57ae31793d618e64987ae5483af3a19227ab', NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 23, NULL);
INSERT INTO webhook_record VALUES (1, 'event-0002-of-the-seller', 0, 'applied', 'won', '00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-000000000002', 1, 1795355173563, 1, 0, 1, 1795354573563, 1795354573563, 0, NULL, NULL, '62014c18767f655208f5f41eb83c00a32955f3b961f72d914b29a8725171d3e3', NULL, 'task-2', '2026-01-02T00:00:00Z', 1767312000000, 0, 0, 0, 0, 0, 0, 1795440973563);
INSERT INTO webhook_record VALUES (1, 'event-0003-of-the-seller', 2, 'dead', 'won', '00000000-0000-4000-8000-000000000003', '00000000-0000-4000-8000-000000000003', 1, 1795355173564, 1, 0, 1, 1795354573564, 1795354573564, 0, NULL, 'the handler failed', '882a7ba858501db45b58bb6442ab57b714272efdb765dad1d65e11966ae42fa3', NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 23, NULL);
INSERT INTO webhook_record VALUES (1, 'event-0004-of-the-seller', 3, 'leased', 'won', '00000000-0000-4000-8000-000000000004', '00000000-0000-4000-8000-000000000004', 1, 1795355173564, 1, 0, 0, 1795354573564, 1795354573564, 0, NULL, NULL, '0c2016fe1d62f60d2a555c33e5a8e696cbdeb8901126d0b2992da0a07f300f31', NULL, 'task-4', '2026-01-02T00:00:00Z', 1767312000000, 0, 0, 0, 0, 0, 23, 1795440973564);
INSERT INTO webhook_record VALUES (1, 'event-0005-of-the-seller', 4, 'queued', 'queued', '00000000-0000-4000-8000-000000000005', NULL, 0, 0, 0, 0, 1, 1795354573565, 1795354573565, 1795355173564, 1795355173564, NULL, 'f1d1e43605ff9137fb2f392b99d99c2337a2215cf602b6d159ee1581c4b2c8b1', NULL, 'task-4', '2026-01-03T00:00:00Z', 1767398400000, 0, 0, 0, 0, 0, 23, NULL);
INSERT INTO webhook_record VALUES (1, 'event-0006-of-the-seller', 0, 'applied', 'won', '00000000-0000-4000-8000-000000000006', '00000000-0000-4000-8000-000000000006', 1, 1795355173565, 1, 0, 1, 1795354573565, 1795354573565, 0, NULL, NULL, 'e4f0d3cebc06be82248f0f1ac7a9642fc029a9a41b1c8e92a03f27686bf0bcfb', NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 1795440973565);
INSERT INTO webhook_record VALUES (1, 'event-0007-of-the-seller', 0, 'applied', 'won', '00000000-0000-4000-8000-000000000007', '00000000-0000-4000-8000-000000000007', 1, 1795355173566, 1, 0, 1, 1795354573566, 1795354573566, 0, NULL, NULL, '40c02c060969d6cc974044ac0008673cf3c9bda05b83251de8999da471bc99f8', NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 1795440973566);
INSERT INTO webhook_body VALUES (1, X'7b226576656e74223a312c226e6f7465223a22c3a9227d');
INSERT INTO webhook_body VALUES (2, X'7b226576656e74223a332c226e6f7465223a22c3a9227d');
INSERT INTO webhook_body VALUES (3, X'7b226576656e74223a342c226e6f7465223a22c3a9227d');
INSERT INTO webhook_body VALUES (4, X'7b226576656e74223a352c226e6f7465223a22c3a9227d');
INSERT INTO webhook_task VALUES (1, 'task-2', 'event-0002-of-the-seller', '2026-01-02T00:00:00Z', 0, 1797946573563);
INSERT INTO webhook_task VALUES (1, 'task-4', 'event-0004-of-the-seller', NULL, 0, 1797946573565);
INSERT INTO webhook_notification VALUES (1, '"\u0001buy-1"', 'event-0007-of-the-seller', 1797946573566);
INSERT INTO webhook_notification VALUES (1, 'note-1', 'event-0006-of-the-seller', 1797946573565);
