-- Everything that Landfast keeps. Text is compared as bytes (COLLATE "C"), which is the order of
-- keys and therefore the order of locks. A text that PostgreSQL cannot hold (a NUL, bytes that are
-- not UTF-8), and one that begins with \x, is kept as \x and its bytes in hexadecimal, as psql
-- shows them.

CREATE TABLE landfast.meta (
	key   text PRIMARY KEY,
	value text COLLATE "C" NOT NULL
);

INSERT INTO landfast.meta VALUES
	('forgotten', ''),  -- the greatest batch id that was removed from applied
	('usable_by', '1'); -- the schema version of the oldest program that may still use this; each step says

CREATE TABLE landfast.records (
	level   smallint NOT NULL,          -- 1 catalog, 2 warehouse, 3 namespace, 4 table name, 5 pointer, 6 dying, 7 location, 8 once, 9 unsynced, 10 duty
	path    text COLLATE "C" NOT NULL,
	version text COLLATE "C" NOT NULL,  -- the id of the batch that wrote it
	id      text COLLATE "C" NOT NULL,  -- the incarnation
	value   text NOT NULL,              -- JSON
	PRIMARY KEY (level, path)
) WITH (fillfactor = 80); -- room for the next version of a row beside it: no index is written

-- The batches whose outcome is settled, until they are forgotten.
CREATE TABLE landfast.applied (
	batch_id   text COLLATE "C" PRIMARY KEY,
	void       boolean NOT NULL, -- it was declared not applied, and never can be
	operations text              -- those decided in it, as JSON
);

-- Applies a batch: one call is one transaction. It gives nothing where the batch is applied (also
-- where it was before), {0} where it was declared not applied, and otherwise the numbers of the
-- conditions that do not hold. SQLSTATE LF001 asks for the same call once more, with locks that exclude
-- Live and updates of kind 4; LF003 says that the id is forgotten.
--
-- Rows are locked in the order of their keys, which is that of lock_path, and in one mode for each level. A
-- row that is not there yet is not locked, and need not be: whoever names its version or its incarnation
-- has seen it committed before the call. What the conditions rest on is read by a later statement than
-- those that waited for locks, which is true only under READ COMMITTED.
--
-- Who finds that the batch is applied writes, too: it locks the row. So its own COMMIT is not answered before
-- the batch is on the disks, and the standbys, that synchronous_commit asks for: the transaction that applied
-- it may have been let go before (its backend was terminated, or canceled, while it waited for a standby).
--
-- A plan is kept for as long as its connection, and may have been made while the table was empty. So
-- the statements are written such that a row is always found by its whole key, and the settings leave
-- the planner no other way.
CREATE FUNCTION landfast.apply_1(
	batch text, ops text,
	waiter text,            -- application_name while this runs
	wait_ms integer,        -- the longest wait for rows that other transactions have locked, all together
	lock_level smallint[], lock_path text[], lock_mode smallint[],
	cond_kind text[], cond_level smallint[], cond_path text[], cond_want text[],
	write_level smallint[], write_path text[], write_id text[], write_value text[],
	write_kind smallint[]   -- 1 insert, 2 delete, 3 update of a record that keeps its id, 4 update
) RETURNS integer[]
LANGUAGE plpgsql
SET enable_indexscan = on SET enable_nestloop = on SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off SET jit = off
AS $$
DECLARE
	wait_now integer := wait_ms;
	wait_end timestamptz := statement_timestamp() + wait_ms * interval '1 ms';
	failed   integer[];
	inserted boolean := false;
	is_void  boolean;
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE 'a batch must run at isolation level read committed' USING ERRCODE = 'LF002';
	END IF;
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	PERFORM set_config('application_name', waiter, true), set_config('lock_timeout', wait_ms::text, true);

	FOR n IN 1 .. coalesce(cardinality(lock_level), 0) LOOP
		IF n > 1 AND wait_now > 1 AND clock_timestamp() > wait_end - wait_now * interval '1 ms' + interval '1 ms' THEN
			wait_now := greatest(1, extract(epoch FROM wait_end - clock_timestamp()) * 1000)::integer;
			PERFORM set_config('lock_timeout', wait_now::text, true);
		END IF;
		CASE lock_mode[n]
			WHEN 1 THEN PERFORM FROM landfast.records r WHERE r.level = lock_level[n] AND r.path = lock_path[n] FOR KEY SHARE;
			WHEN 2 THEN PERFORM FROM landfast.records r WHERE r.level = lock_level[n] AND r.path = lock_path[n] FOR SHARE;
			WHEN 3 THEN PERFORM FROM landfast.records r WHERE r.level = lock_level[n] AND r.path = lock_path[n] FOR NO KEY UPDATE;
			WHEN 4 THEN PERFORM FROM landfast.records r WHERE r.level = lock_level[n] AND r.path = lock_path[n] FOR UPDATE;
		END CASE;
	END LOOP;

	SELECT array_agg(c.nth::integer) INTO failed
	FROM unnest(cond_kind, cond_level, cond_path, cond_want) WITH ORDINALITY AS c (kind, level, path, want, nth)
	WHERE CASE c.kind
		WHEN 'is' THEN coalesce((SELECT r.version FROM landfast.records r WHERE r.level = c.level AND r.path = c.path), '') <> c.want
		WHEN 'live' THEN coalesce((SELECT r.id FROM landfast.records r WHERE r.level = c.level AND r.path = c.path), '') <> c.want
		WHEN 'empty' THEN coalesce(starts_with((
			SELECT r.path FROM landfast.records r
			WHERE r.level = c.level AND r.path >= c.path
			AND NOT EXISTS (SELECT FROM unnest(write_level, write_path) AS w (level, path) WHERE w.level = r.level AND w.path = r.path)
			ORDER BY r.path LIMIT 1), c.path), false)
	END;

	IF failed IS NULL THEN
		INSERT INTO landfast.applied VALUES (batch, false, ops) ON CONFLICT DO NOTHING;
		inserted := FOUND;
	END IF;
	IF NOT inserted THEN
		-- By a later statement than the insertion, which may have waited for another's.
		SELECT a.void INTO is_void FROM landfast.applied a WHERE a.batch_id = batch FOR UPDATE;
		IF FOUND THEN
			RETURN CASE WHEN is_void THEN '{0}' ELSE '{}' END::integer[];
		END IF;
	END IF;
	-- After the insertion: it waits for whoever is forgetting the same id.
	IF batch <= (SELECT m.value FROM landfast.meta m WHERE m.key = 'forgotten') THEN
		RAISE 'the id is older than what is remembered' USING ERRCODE = 'LF003';
	END IF;
	IF NOT inserted THEN
		RETURN failed;
	END IF;

	FOR n IN 1 .. coalesce(cardinality(write_level), 0) LOOP
		CASE write_kind[n]
			WHEN 1 THEN
				INSERT INTO landfast.records VALUES (write_level[n], write_path[n], batch, write_id[n], write_value[n]) ON CONFLICT DO NOTHING;
			WHEN 2 THEN
				DELETE FROM landfast.records r WHERE r.level = write_level[n] AND r.path = write_path[n];
			WHEN 3 THEN
				UPDATE landfast.records r SET version = batch, value = write_value[n]
				WHERE r.level = write_level[n] AND r.path = write_path[n] AND r.id = write_id[n];
			WHEN 4 THEN
				UPDATE landfast.records r SET version = batch, id = write_id[n], value = write_value[n]
				WHERE r.level = write_level[n] AND r.path = write_path[n];
		END CASE;
		IF NOT FOUND THEN -- made since the conditions were read, or of another incarnation
			RAISE 'a record was not written' USING ERRCODE = 'LF001';
		END IF;
	END LOOP;
	RETURN '{}';
END
$$;

-- Says whether a batch was applied, and makes sure that otherwise it never will be. Either way it writes, as
-- apply_1 does. SQLSTATE LF003 says that its id is forgotten.
CREATE FUNCTION landfast.outcome_1(batch text, waiter text, wait_ms integer) RETURNS boolean
LANGUAGE plpgsql
SET enable_indexscan = on SET enable_seqscan = off SET jit = off
AS $$
DECLARE
	is_void boolean;
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE 'an outcome must be asked at isolation level read committed' USING ERRCODE = 'LF002';
	END IF;
	IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	PERFORM set_config('application_name', waiter, true), set_config('lock_timeout', wait_ms::text, true);
	INSERT INTO landfast.applied VALUES (batch, true) ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN
		-- By a later statement than the insertion, which may have waited for another's.
		SELECT a.void INTO is_void FROM landfast.applied a WHERE a.batch_id = batch FOR UPDATE;
		IF FOUND THEN
			RETURN NOT is_void;
		END IF;
	END IF;
	-- After the insertion: it waits for whoever is forgetting the same id.
	IF batch <= (SELECT m.value FROM landfast.meta m WHERE m.key = 'forgotten') THEN
		RAISE 'the id is older than what is remembered' USING ERRCODE = 'LF003';
	END IF;
	RETURN false;
END
$$;

-- How the ids of a time begin: they are UUIDv7s.
CREATE FUNCTION landfast.id_1(at timestamptz) RETURNS text
LANGUAGE sql STABLE
AS $$
	SELECT left(t.hex, 8) || '-' || right(t.hex, 4) FROM (SELECT lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')) t (hex)
$$;

-- Forgets at most so many batches, the oldest first, of those with ids below the horizon, and tells how
-- many; nothing where another does it just now. Whoever reads the greatest forgotten id after he wrote
-- or found no row of his own knows whether his id is forgotten.
CREATE FUNCTION landfast.forget_1(horizon text, most integer) RETURNS bigint
LANGUAGE plpgsql
SET enable_indexscan = on SET enable_seqscan = off SET jit = off
AS $$
DECLARE
	last text;
	n    bigint;
BEGIN
	PERFORM set_config('lock_timeout', '1000', true);
	PERFORM FROM landfast.meta m WHERE m.key = 'forgotten' FOR UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	SELECT max(o.batch_id) INTO last
	FROM (SELECT a.batch_id FROM landfast.applied a WHERE a.batch_id < horizon ORDER BY a.batch_id LIMIT most) o;
	DELETE FROM landfast.applied a WHERE a.batch_id <= last;
	GET DIAGNOSTICS n = ROW_COUNT;
	UPDATE landfast.meta m SET value = greatest(m.value, last) WHERE m.key = 'forgotten' AND last IS NOT NULL;
	RETURN n;
END
$$;
