-- Rows that are compared and set (`Backend`). What they mean, no statement here knows.

-- Which store this is: one row. told: a process has said that it was made.
CREATE TABLE IF NOT EXISTS webhook_identity (one TINYINT NOT NULL PRIMARY KEY, id VARBINARY(36) NOT NULL,
  told BOOLEAN NOT NULL) ENGINE=InnoDB;;
INSERT INTO webhook_identity VALUES (1, UUID(), FALSE) ON DUPLICATE KEY UPDATE one = 1;;
-- Whose row: a sender (keyid ''), or one key id of it ('=' and the key id). Few, and never deleted. 0: nonces of all.
-- All text is UTF-8 in binary columns: no collation folds two names into one, no connection's charset changes one.
CREATE TABLE IF NOT EXISTS webhook_scope (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, sender VARBINARY(1500) NOT NULL,
  keyid VARBINARY(1540) NOT NULL, UNIQUE KEY webhook_scope_name (sender, keyid)) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;;
-- Each connection adds to a stripe of its own number, so that two of them seldom wait for one row. A count is their sum.
CREATE TABLE IF NOT EXISTS webhook_tally (scope_id INT NOT NULL, stripe INT NOT NULL, entries BIGINT NOT NULL,
  bytes BIGINT NOT NULL, PRIMARY KEY (scope_id, stripe)) ENGINE=InnoDB;;
-- Gives each commit its number, by a row that goes at once: nobody waits, and a commit without another write is one too.
CREATE TABLE IF NOT EXISTS webhook_turn (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB;;
-- kind: r record, t task, n nonce, i notification, p process. seq is the order of insertion; null in expires_at and due_at:
-- never. due_scope: scope_id where due_at is not null, so that the index of what is due begins with that alone. A suspect is
-- due at suspect_at, by its crashes, and never at due_at. So webhook_row_when has what is due of all senders by when, where crashes
-- is null, and behind it the suspects in their order, whose due_at is null.
CREATE TABLE IF NOT EXISTS webhook_row (
  scope_id INT NOT NULL, kind BINARY(1) NOT NULL, id VARBINARY(1536) NOT NULL, version BIGINT NOT NULL, seq BIGINT NOT NULL,
  expires_at BIGINT, due_scope INT, due_at BIGINT, suspect_at BIGINT, crashes INT, bytes INT NOT NULL, list VARBINARY(8),
  waits_for VARBINARY(1536), link VARBINARY(1536), data MEDIUMBLOB NOT NULL, body LONGBLOB,
  PRIMARY KEY (scope_id, kind, id),
  KEY webhook_row_expiry (scope_id, expires_at),
  KEY webhook_row_due (due_scope, due_at, seq),
  KEY webhook_row_when (crashes, due_at, seq),
  KEY webhook_row_list (list, seq),
  KEY webhook_row_waits (waits_for, scope_id, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;;

-- What is counted of scopes, and as that of scope 0 all nonces. of_sender: of a sender, the nonces of all its key ids.
DROP PROCEDURE IF EXISTS webhook_counts;;
CREATE PROCEDURE webhook_counts(p_scopes LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY INVOKER
  SELECT e.id AS scope_id,
      (SELECT COALESCE(SUM(t.entries), 0) FROM webhook_tally t WHERE t.scope_id = e.id) AS entries,
      (SELECT COALESCE(SUM(t.bytes), 0) FROM webhook_tally t WHERE t.scope_id = e.id) AS bytes,
      (SELECT COALESCE(SUM(t.entries), 0) FROM webhook_scope o JOIN webhook_scope k ON k.sender = o.sender AND k.keyid <> ''
        JOIN webhook_tally t ON t.scope_id = k.id WHERE o.id = e.id AND o.keyid = '') AS of_sender
    FROM JSON_TABLE(p_scopes, '$[*]' COLUMNS (id INT PATH '$')) e;;

-- Rows by name ([[unit, scope, kind, id], …]) of the units that p_units has a bit of; null: all, of unit 1 with their bodies.
-- And what comes with them: with a record its task; with a task the record that holds it and the two oldest of those that
-- wait for it. Sorted by whoever asks: bodies that are sorted here go by a file.
DROP PROCEDURE IF EXISTS webhook_look;;
CREATE PROCEDURE webhook_look(p_names LONGTEXT CHARACTER SET utf8mb4, p_units BIGINT UNSIGNED)
SQL SECURITY INVOKER
  WITH asked AS (
    SELECT r.scope_id, r.kind, r.id, r.link, p_units IS NULL AND e.unit AS body FROM JSON_TABLE(p_names, '$[*]' COLUMNS (
      unit INT PATH '$[0]', scope INT PATH '$[1]', kind BINARY(1) PATH '$[2]', id VARBINARY(1536) PATH '$[3]')) e
      STRAIGHT_JOIN webhook_row r FORCE INDEX (PRIMARY) ON r.scope_id = e.scope AND r.kind = e.kind AND r.id = e.id
      WHERE p_units IS NULL OR p_units >> e.unit & 1),
  task AS (
    SELECT a.scope_id, a.id FROM asked a WHERE a.kind = 't'
    UNION SELECT a.scope_id, a.link FROM asked a WHERE a.kind = 'r' AND a.link IS NOT NULL),
  named AS (
    SELECT a.scope_id, a.kind, a.id, a.body FROM asked a
    UNION ALL SELECT t.scope_id, 't', t.id, 0 FROM task t
    UNION ALL SELECT h.scope_id, 'r', h.link, 0 FROM task t STRAIGHT_JOIN webhook_row h FORCE INDEX (PRIMARY)
      ON h.scope_id = t.scope_id AND h.kind = 't' AND h.id = t.id
    UNION ALL SELECT t.scope_id, 'r', (SELECT x.id FROM webhook_row x FORCE INDEX (webhook_row_waits)
      WHERE x.scope_id = t.scope_id AND x.waits_for = t.id ORDER BY x.seq LIMIT 1), 0 FROM task t
    UNION ALL SELECT t.scope_id, 'r', (SELECT x.id FROM webhook_row x FORCE INDEX (webhook_row_waits)
      WHERE x.scope_id = t.scope_id AND x.waits_for = t.id ORDER BY x.seq LIMIT 1, 1), 0 FROM task t)
  SELECT s.sender, s.keyid, r.kind, r.id, r.version, r.seq, r.data, IF(n.body, r.body, NULL) AS body
    FROM (SELECT scope_id, kind, id, MAX(body) AS body FROM named WHERE id IS NOT NULL GROUP BY scope_id, kind, id) n
    STRAIGHT_JOIN webhook_row r FORCE INDEX (PRIMARY) ON r.scope_id = n.scope_id AND r.kind = n.kind AND r.id = n.id
    STRAIGHT_JOIN webhook_scope s ON s.id = r.scope_id;;

-- The clock, counts, rows as webhook_look has them.
DROP PROCEDURE IF EXISTS webhook_load;;
CREATE PROCEDURE webhook_load(p_offset BIGINT, p_names LONGTEXT CHARACTER SET utf8mb4,
  p_counts LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY INVOKER
BEGIN
  SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 + p_offset AS now;
  IF p_counts IS NOT NULL THEN CALL webhook_counts(p_counts); END IF;
  IF p_names IS NOT NULL THEN CALL webhook_look(p_names, NULL); END IF;
END;;

-- A transaction that a function of the owner's writes in. p_idle: how long the server waits for the next statement before
-- it rolls back; 0: as it is set up; null: nothing is begun. The savepoint is gone with the transaction, by which it is
-- seen that the function has ended it. s
DROP PROCEDURE IF EXISTS webhook_begin;;
CREATE PROCEDURE webhook_begin(p_idle INT)
SQL SECURITY INVOKER
IF p_idle IS NOT NULL THEN
  SET @webhook_wait = @@SESSION.wait_timeout;
  IF p_idle > 0 THEN SET SESSION wait_timeout = p_idle; END IF;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  SAVEPOINT proto_webhooks;
END IF;;

-- One commit for all units that hold. Rows are sorted, tasks first, and so are the locks that they take. Units are numbers
-- under 64, and those that are refused the bits of one number.
--   p_own     a transaction of its own; else the one that is open, which a function may have ended
--   p_at      the plans' clock; over 1 s old and more ms than there are rows, or ahead of the store's: nothing is done, and
--             the answer says "old"
--   p_wait    how long one lock is waited for. s
--   p_lines   [[unit, scope, kind, id, version, next, expires, due, suspect, crashes, list, waits, link, bytes,
--             where its data begins in p_bytes, of how many bytes, its body, of how many bytes], …]; a version that is
--             null: it has to be absent; next null: it is only compared; a body at -1: dropped; null: stays
--   p_tally   [[unit, scope, rows, bytes], …]: what a unit adds to the counts
--   p_counts  scopes whose counts are told
-- Not by ROW_COUNT(): what it says of a row that is there goes by a flag of the connection.
DROP PROCEDURE IF EXISTS webhook_commit;;
CREATE PROCEDURE webhook_commit(p_own BOOLEAN, p_at BIGINT, p_offset BIGINT, p_wait INT,
  p_lines LONGTEXT CHARACTER SET utf8mb4, p_bytes LONGBLOB, p_tally LONGTEXT CHARACTER SET utf8mb4,
  p_counts LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY INVOKER
BEGIN
  DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 + p_offset;
  DECLARE v_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE v_turn BIGINT;
  DECLARE v_more, v_refused BIGINT UNSIGNED DEFAULT 0;
  DECLARE v_is_old BOOLEAN DEFAULT (p_at < v_now - 1000 AND p_at < v_now - JSON_LENGTH(p_lines)) OR p_at > v_now + 5;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
    IF p_own THEN ROLLBACK; END IF;
    SET SESSION innodb_lock_wait_timeout = v_wait;
    RESIGNAL;
  END;
  IF NOT v_is_old THEN
    SET SESSION innodb_lock_wait_timeout = p_wait;
    IF p_own THEN
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      START TRANSACTION;
    ELSE
      -- It is gone where the function has ended the transaction, or the server has (a deadlock).
      RELEASE SAVEPOINT proto_webhooks;
    END IF;
    -- Locked in their order, and compared as they are then.
    SELECT BIT_OR(IF(r.version <=> e.version, 0, 1 << e.unit)) INTO v_refused
      FROM JSON_TABLE(p_lines, '$[*]' COLUMNS (unit INT PATH '$[0]', scope INT PATH '$[1]', kind BINARY(1) PATH '$[2]',
        id VARBINARY(1536) PATH '$[3]', version BIGINT PATH '$[4]', next BIGINT PATH '$[5]')) e
      LEFT JOIN webhook_row r FORCE INDEX (PRIMARY) ON r.scope_id = e.scope AND r.kind = e.kind AND r.id = e.id
      WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE;
    INSERT INTO webhook_turn () VALUES ();
    SET v_turn = LAST_INSERT_ID();
    DELETE FROM webhook_turn WHERE id = v_turn;
    SAVEPOINT proto_webhooks;
    REPEAT
      -- Of a row that is there it writes what the unit has compared, and leaves what another was faster to insert.
      INSERT INTO webhook_row (scope_id, kind, id, version, seq, expires_at, due_scope, due_at, suspect_at, crashes, bytes, list,
          waits_for, link, data, body)
        SELECT e.scope, e.kind, e.id, e.next, v_turn * 4096 + e.place, e.expires, IF(e.due IS NULL, NULL, e.scope), e.due, e.suspect, e.crashes, e.size, e.list, e.waits,
          e.link, SUBSTRING(p_bytes, e.at_data + 1, e.of_data), IF(e.at_body >= 0, SUBSTRING(p_bytes, e.at_body + 1, e.of_body), NULL)
        FROM JSON_TABLE(p_lines, '$[*]' COLUMNS (place FOR ORDINALITY, unit INT PATH '$[0]', scope INT PATH '$[1]',
          kind BINARY(1) PATH '$[2]', id VARBINARY(1536) PATH '$[3]', version BIGINT PATH '$[4]', next BIGINT PATH '$[5]',
          expires BIGINT PATH '$[6]', due BIGINT PATH '$[7]', suspect BIGINT PATH '$[8]', crashes INT PATH '$[9]',
          list VARBINARY(8) PATH '$[10]', waits VARBINARY(1536) PATH '$[11]', link VARBINARY(1536) PATH '$[12]',
          size INT PATH '$[13]', at_data INT PATH '$[14]', of_data INT PATH '$[15]', at_body INT PATH '$[16]',
          of_body INT PATH '$[17]')) e
        WHERE e.next IS NOT NULL AND v_refused >> e.unit & 1 = 0
        ON DUPLICATE KEY UPDATE version = IF(e.version IS NULL, webhook_row.version, VALUES(version)),
          expires_at = IF(e.version IS NULL, webhook_row.expires_at, VALUES(expires_at)),
          due_scope = IF(e.version IS NULL, webhook_row.due_scope, VALUES(due_scope)),
          due_at = IF(e.version IS NULL, webhook_row.due_at, VALUES(due_at)),
          suspect_at = IF(e.version IS NULL, webhook_row.suspect_at, VALUES(suspect_at)),
          crashes = IF(e.version IS NULL, webhook_row.crashes, VALUES(crashes)),
          bytes = IF(e.version IS NULL, webhook_row.bytes, VALUES(bytes)),
          list = IF(e.version IS NULL, webhook_row.list, VALUES(list)),
          waits_for = IF(e.version IS NULL, webhook_row.waits_for, VALUES(waits_for)),
          link = IF(e.version IS NULL, webhook_row.link, VALUES(link)),
          data = IF(e.version IS NULL, webhook_row.data, VALUES(data)),
          body = IF(e.version IS NULL OR e.at_body IS NULL, webhook_row.body, VALUES(body));
      -- All again without the units that lost a row so.
      SELECT BIT_OR(1 << e.unit) INTO v_more
        FROM JSON_TABLE(p_lines, '$[*]' COLUMNS (unit INT PATH '$[0]', scope INT PATH '$[1]', kind BINARY(1) PATH '$[2]',
          id VARBINARY(1536) PATH '$[3]', version BIGINT PATH '$[4]', next BIGINT PATH '$[5]')) e
        STRAIGHT_JOIN webhook_row r FORCE INDEX (PRIMARY) ON r.scope_id = e.scope AND r.kind = e.kind AND r.id = e.id
        WHERE e.version IS NULL AND e.next IS NOT NULL AND v_refused >> e.unit & 1 = 0 AND r.version <> e.next;
      IF v_more <> 0 THEN ROLLBACK TO SAVEPOINT proto_webhooks; END IF;
      SET v_refused = v_refused | v_more;
    UNTIL v_more = 0 END REPEAT;
    -- Last of all and sorted, for counts are what all transactions write.
    IF p_tally IS NOT NULL THEN
      INSERT INTO webhook_tally (scope_id, stripe, entries, bytes)
        SELECT e.scope, CONNECTION_ID() % 16, SUM(e.entries), SUM(e.bytes)
        FROM JSON_TABLE(p_tally, '$[*]' COLUMNS (unit INT PATH '$[0]', scope INT PATH '$[1]', entries BIGINT PATH '$[2]',
          bytes BIGINT PATH '$[3]')) e
        WHERE v_refused >> e.unit & 1 = 0 GROUP BY e.scope ORDER BY e.scope
        ON DUPLICATE KEY UPDATE webhook_tally.entries = webhook_tally.entries + VALUES(entries),
          webhook_tally.bytes = webhook_tally.bytes + VALUES(bytes);
    END IF;
    IF p_own THEN COMMIT; END IF;
    SET SESSION innodb_lock_wait_timeout = v_wait;
  END IF;
  SELECT v_now AS now, v_is_old AS isOld, HEX(v_refused) AS refused,
    @@GLOBAL.innodb_flush_log_at_trx_commit AS flush, @@GLOBAL.log_bin AS hasLog, @@GLOBAL.sync_binlog AS syncLog;
  IF p_counts IS NOT NULL THEN CALL webhook_counts(p_counts); END IF;
  IF v_refused <> 0 THEN CALL webhook_look(p_lines, v_refused); END IF;
END;;

-- Rows that are due, the earliest of each sender, then the second of each; senders by their names, from the one behind
-- p_after on. What would come due later than p_longest ms from now is due too, last. p_suspects: of the suspects that are
-- due the one with the fewest crashes, of those the oldest. Each is due again after p_hold ms. Not one that somebody else has locked. First the clock, when another
-- one comes due, the names of those that are due, in their order, and whether a suspect is; then rows as webhook_look has
-- them. Senders are found one by one, and no more than are needed: what one statement reads to find them all depends on the
-- server's statistics, and where these are wrong it is every row.
--   v_of     senders of what is due, where that is a few rows; null where they are more: then all senders are gone through
--   v_until  null: behind p_after; else from the first sender on, up to p_after
--   v_is_again  the senders that have given a row (v_scopes) are asked for the next one
DROP PROCEDURE IF EXISTS webhook_due;;
CREATE PROCEDURE webhook_due(p_suspects BOOLEAN, p_offset BIGINT, p_most INT, p_hold BIGINT, p_longest BIGINT, p_after VARBINARY(1500))
SQL SECURITY INVOKER
BEGIN
  DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 + p_offset;
  DECLARE v_far BIGINT DEFAULT v_now + p_longest;
  DECLARE v_next, v_due BIGINT;
  DECLARE v_scope, v_at, v_count, v_found, v_before, v_few INT DEFAULT 0;
  DECLARE v_is_again, v_has_suspect BOOLEAN DEFAULT FALSE;
  DECLARE v_id VARBINARY(1536);
  -- A session may take an empty text for null (EMPTY_STRING_IS_NULL).
  DECLARE v_after VARBINARY(1500) DEFAULT COALESCE(p_after, '');
  DECLARE v_behind VARBINARY(1500) DEFAULT v_after;
  DECLARE v_until VARBINARY(1500);
  DECLARE v_of, v_scopes, v_names LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
    ROLLBACK;
    RESIGNAL;
  END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  IF p_suspects THEN
    SELECT r.scope_id, r.id INTO v_scope, v_id FROM webhook_row r FORCE INDEX (webhook_row_when)
      WHERE r.crashes IS NOT NULL AND (r.suspect_at <= v_now OR r.suspect_at > v_far)
      ORDER BY r.crashes, r.due_at, r.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF v_id IS NOT NULL THEN
      UPDATE webhook_row r SET r.suspect_at = v_now + p_hold WHERE r.scope_id = v_scope AND r.kind = 'r' AND r.id = v_id;
      SET v_names = CONCAT(',', JSON_ARRAY(1, v_scope, 'r', CONVERT(v_id USING utf8mb4)));
    END IF;
  ELSE
    SELECT r.due_at INTO v_next FROM webhook_row r FORCE INDEX (webhook_row_when)
      WHERE r.crashes IS NULL AND r.due_at > v_now ORDER BY r.due_at LIMIT 1;
    SELECT COUNT(*), CONCAT('[', GROUP_CONCAT(DISTINCT d.of), ']') INTO v_few, v_of FROM (
      (SELECT r.due_scope AS of FROM webhook_row r FORCE INDEX (webhook_row_when)
        WHERE r.crashes IS NULL AND r.due_at <= v_now ORDER BY r.due_at LIMIT 64)
      UNION ALL (SELECT r.due_scope FROM webhook_row r FORCE INDEX (webhook_row_when)
        WHERE r.crashes IS NULL AND r.due_at > v_far ORDER BY r.due_at LIMIT 64)) d;
    IF v_few >= 64 THEN SET v_of = NULL; END IF;
    look: WHILE v_few > 0 AND v_found < p_most DO
      SET v_scope = NULL, v_id = NULL;
      IF v_is_again THEN
        IF v_at = v_count THEN
          IF v_found = v_before THEN LEAVE look; END IF;
          SET v_at = 0, v_before = v_found;
        END IF;
        SET v_at = v_at + 1, v_scope = SUBSTRING_INDEX(SUBSTRING_INDEX(v_scopes, ',', v_at), ',', -1);
      ELSEIF v_of IS NULL THEN
        SELECT s.id, s.sender INTO v_scope, v_behind FROM webhook_scope s FORCE INDEX (webhook_scope_name)
          WHERE s.sender > v_behind AND s.keyid = '' AND (v_until IS NULL OR s.sender <= v_until) AND COALESCE(
            (SELECT 1 FROM webhook_row r FORCE INDEX (webhook_row_due) WHERE r.due_scope = s.id AND r.due_at <= v_now LIMIT 1),
            (SELECT 1 FROM webhook_row r FORCE INDEX (webhook_row_due) WHERE r.due_scope = s.id AND r.due_at > v_far LIMIT 1)) = 1
          ORDER BY s.sender LIMIT 1;
      ELSE
        SELECT s.id, s.sender INTO v_scope, v_behind FROM JSON_TABLE(v_of, '$[*]' COLUMNS (id INT PATH '$')) e
          STRAIGHT_JOIN webhook_scope s ON s.id = e.id
          WHERE s.sender > v_behind AND (v_until IS NULL OR s.sender <= v_until) ORDER BY s.sender LIMIT 1;
      END IF;
      IF v_scope IS NULL THEN
        IF v_until IS NULL THEN SET v_until = v_after, v_behind = '';
        ELSEIF v_found = 0 THEN LEAVE look;
        ELSE SET v_is_again = TRUE, v_before = v_found;
        END IF;
        ITERATE look;
      END IF;
      SELECT r.id INTO v_id FROM webhook_row r FORCE INDEX (webhook_row_due) WHERE r.due_scope = v_scope
        AND r.due_at <= v_now ORDER BY r.due_at, r.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
      IF v_id IS NULL THEN
        SELECT r.id INTO v_id FROM webhook_row r FORCE INDEX (webhook_row_due) WHERE r.due_scope = v_scope
          AND r.due_at > v_far ORDER BY r.due_at, r.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
      END IF;
      IF v_id IS NOT NULL THEN
        UPDATE webhook_row r SET r.due_at = v_now + p_hold WHERE r.scope_id = v_scope AND r.kind = 'r' AND r.id = v_id;
        SET v_found = v_found + 1,
          v_names = CONCAT(v_names, ',', JSON_ARRAY(1, v_scope, 'r', CONVERT(v_id USING utf8mb4)));
        IF NOT v_is_again THEN SET v_scopes = CONCAT(v_scopes, v_scope, ','), v_count = v_count + 1; END IF;
      END IF;
    END WHILE look;
  END IF;
  COMMIT;
  -- By a SELECT of its own: what an IF or a SET looks up it locks, the whole index here.
  IF v_found >= p_most AND NOT p_suspects THEN
    SELECT r.due_at INTO v_due FROM webhook_row r FORCE INDEX (webhook_row_when)
      WHERE r.crashes IS NULL AND (r.due_at <= v_now OR r.due_at > v_far) LIMIT 1;
    IF v_due IS NOT NULL THEN SET v_next = v_now; END IF;
  END IF;
  SELECT COUNT(*) > 0 INTO v_has_suspect FROM (SELECT 1 FROM webhook_row r FORCE INDEX (webhook_row_when)
    WHERE r.crashes IS NOT NULL AND (r.suspect_at <= v_now OR r.suspect_at > v_far) LIMIT 1) d;
  SET v_names = CONCAT('[', SUBSTRING(v_names, 2), ']');
  SELECT v_now AS now, v_next AS next, CAST(v_names AS BINARY) AS names, v_has_suspect AS hasSuspect;
  IF v_names <> '[]' THEN CALL webhook_look(v_names, NULL); END IF;
END;;

-- Expired rows of a scope, or of all key ids (0), or of those of a sender (its scope, negative), some at a time. Answers
-- how many.
DROP PROCEDURE IF EXISTS webhook_clear;;
CREATE PROCEDURE webhook_clear(p_scope INT, p_most INT, p_offset BIGINT)
SQL SECURITY INVOKER
BEGIN
  DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 + p_offset;
  DECLARE v_scope, v_before, v_left, v_deleted, v_nonces, v_size INT DEFAULT 0;
  DECLARE v_bytes BIGINT;
  DECLARE v_is_over BOOLEAN DEFAULT FALSE;
  DECLARE v_kind BINARY(1);
  DECLARE v_id VARBINARY(1536);
  DECLARE v_tally LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE c_scopes CURSOR FOR SELECT c.id FROM webhook_scope c WHERE c.id = p_scope OR (p_scope = 0 AND c.keyid <> '')
    OR (p_scope < 0 AND c.keyid <> '' AND c.sender = (SELECT o.sender FROM webhook_scope o WHERE o.id = -p_scope));
  DECLARE c_rows CURSOR FOR SELECT r.kind, r.id, r.bytes FROM webhook_row r FORCE INDEX (webhook_row_expiry)
    WHERE r.scope_id = v_scope AND r.expires_at <= v_now ORDER BY r.expires_at LIMIT v_left FOR UPDATE SKIP LOCKED;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_is_over = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
    ROLLBACK;
    RESIGNAL;
  END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  OPEN c_scopes;
  FETCH c_scopes INTO v_scope;
  WHILE NOT v_is_over AND v_deleted < p_most DO
    SET v_left = p_most - v_deleted, v_before = v_deleted, v_bytes = 0;
    OPEN c_rows;
    FETCH c_rows INTO v_kind, v_id, v_size;
    WHILE NOT v_is_over DO
      DELETE FROM webhook_row WHERE scope_id = v_scope AND kind = v_kind AND id = v_id;
      SET v_deleted = v_deleted + 1, v_bytes = v_bytes + v_size, v_nonces = v_nonces + (v_kind = 'n');
      FETCH c_rows INTO v_kind, v_id, v_size;
    END WHILE;
    CLOSE c_rows;
    IF v_deleted > v_before THEN SET v_tally = CONCAT(v_tally, JSON_ARRAY(v_scope, v_deleted - v_before, v_bytes), ','); END IF;
    SET v_is_over = FALSE;
    FETCH c_scopes INTO v_scope;
  END WHILE;
  CLOSE c_scopes;
  IF v_deleted > 0 THEN
    INSERT INTO webhook_tally (scope_id, stripe, entries, bytes)
      SELECT e.scope, CONNECTION_ID() % 16, -SUM(e.entries), -SUM(e.bytes)
      FROM JSON_TABLE(CONCAT('[', v_tally, JSON_ARRAY(0, v_nonces, 0), ']'), '$[*]' COLUMNS (scope INT PATH '$[0]',
        entries BIGINT PATH '$[1]', bytes BIGINT PATH '$[2]')) e WHERE e.entries <> 0 GROUP BY e.scope ORDER BY e.scope
      ON DUPLICATE KEY UPDATE webhook_tally.entries = webhook_tally.entries + VALUES(entries),
        webhook_tally.bytes = webhook_tally.bytes + VALUES(bytes);
  END IF;
  COMMIT;
  SELECT v_deleted AS deleted;
END;;
