import { lookAgain } from '../look-again.ts';
import { whileRunning } from '../schema-version.ts';
import type { Answer, Call, CallJson } from './call.ts';
import { answerOf } from './call.ts';
import type { PgPool } from './client.ts';
import { queryOnce } from './client.ts';
import { endAnswers, endParameters, loneEnd } from './ends.ts';
import { asFault } from './faults.ts';
import { freshAnswers, freshParameters, loneParameters } from './fresh.ts';
import { checkVersion, quoted } from './schema.ts';
import type { Settings } from './settings.ts';
import { SETTINGS_SQL } from './settings.ts';

export interface ServerOptions {
  readonly pool: PgPool;
  readonly schema: string;
  readonly timeoutMs: number;
  readonly clockOffsetMs: () => number;
}

/** Calls of one transaction: fresh ones (`fresh.ts`), completions (`ends.ts`), the others, sorted by sender and key id. */
export interface Batch {
  readonly fresh: readonly Call[];
  readonly ends: readonly Call[];
  readonly others: readonly Call[];
}

/** Expired rows of which kind (`webhook_purge`) a batch clears away, -1 none; and at most how many. */
export interface Sweep {
  readonly turn: number;
  readonly most: number;
}

/** The store's functions, called. Every statement is a transaction by itself; nothing is left in the session. */
export interface Server {
  /** One transaction for all of them; undefined: a fresh one or a completion that has to be looked at by itself. */
  run(batch: Batch, sweep: Sweep): Promise<readonly (Answer | undefined)[]>;
  /** A function of the schema, its name without `webhook_`; a row each. */
  rows(name: string, values: readonly unknown[]): Promise<readonly Answer[]>;
  lease(call: CallJson, look: number, most: number): Promise<readonly Answer[]>;
  /** Deletes expired rows of each sender, a few at a time. @returns how many. */
  sweep(): Promise<number>;
  /** Unix ms. @throws whatever the driver throws. */
  clock(): Promise<number>;
  /** @throws whatever the driver throws. */
  readSettings(): Promise<Settings>;
  /**
   * Every 10 s, before whatever is sent: another process may have migrated the schema. Undefined: nothing to wait for.
   * @throws Fault `misconfigured` where it is not the version of this package.
   */
  known(): Promise<void> | undefined;
  /** Statements of `ctx.transaction`, without parameters: two of them travel in one message. */
  readonly begin: (call: CallJson) => string;
  readonly finish: (call: CallJson, started: string) => string;
  /** Least `synchronous_commit` of each transaction. */
  setSync(level: string): void;
}

/** Rows of each kind that one transaction of `sweep` deletes: it is over soon, and waits for nobody. */
const SWEEP_MOST = 500;

/** Of the whole time, what one lock may be waited for. */
const LOCK_SHARE = 0.75;

export function serverOf({ pool, schema, timeoutMs, clockOffsetMs }: ServerOptions): Server {
  const name = quoted(schema);
  let sync = 'off';
  // Less than the client waits: so that it is the server that gives up, and what was not answered was not done.
  const lockMs = Math.ceil(timeoutMs * LOCK_SHARE);
  const offset = (): number => Math.trunc(clockOffsetMs());
  const ask: Select = (text, values) => queryOnce(pool, timeoutMs, text, values);
  const readVersion = (): Promise<number> => versionOf(ask, name);
  const { passed: known } = lookAgain(
    async () => checkKnown(readVersion, schema),
    () => performance.now() + clockOffsetMs(),
  );
  const select: Select = (text, values) => {
    const looking = known();
    return looking ? looking.then(() => ask(text, values)) : ask(text, values);
  };
  const rows = async (what: string, values: readonly unknown[]): Promise<readonly Answer[]> =>
    (await select(`SELECT * FROM ${name}.webhook_${what}(${marks(values)})`, [...values])).map(answerOf);
  return {
    rows,
    run: runner(name, select, () => [lockMs, sync], offset),
    lease: (call, look, most) => rows('lease', [JSON.stringify(call), offset(), look, most, lockMs, sync]),
    sweep: () => sweepAll(select, name, offset),
    clock: async () => Number(answerText((await select(CLOCK_SQL, []))[0])) + offset(),
    readSettings: async () => {
      const settings = answerRow(await ask(SETTINGS_SQL, [schema])) as Settings;
      if (settings.schemaVersion === 0 || settings.grants.length > 0) return settings;
      return { ...settings, schemaVersion: await readVersion() };
    },
    known,
    begin: (call) =>
      `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${name}.webhook_holds(${literal(call)}, ${offset()}) AS started`,
    finish: (call, started) =>
      `SELECT ${name}.webhook_finish(${literal(call)}, ${offset()}, ${started}, ${lockMs}, '${sync}'); COMMIT`,
    setSync: (level) => {
      sync = level;
    },
  };
}

/** As `webhook_now` has it; no function of the schema, so that it needs no migration. */
const CLOCK_SQL = 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS answer';

async function versionOf(ask: Select, name: string): Promise<number> {
  const text = `SELECT coalesce(max(version), 0)::text AS answer FROM ${name}.webhook_schema`;
  return answerRow(await ask(text, [])) as number;
}

async function checkKnown(readVersion: () => Promise<number>, schema: string): Promise<void> {
  try {
    checkVersion(await readVersion(), schema);
  } catch (error) {
    throw asFault(whileRunning(error));
  }
}

/** By one of four functions: one fresh call alone, one completion alone, sets of them, and neither (`migrations/README.md`). */
function runner(
  name: string,
  select: Select,
  settings: () => readonly unknown[],
  offset: () => number,
): Server['run'] {
  const answer = async (what: string, values: unknown[]): Promise<string | null> =>
    answerText((await select(`SELECT ${name}.webhook_run_${what}(${marks(values)}) AS answer`, values))[0]);
  return async ({ fresh, ends, others }, { turn, most }) => {
    const times = [offset(), turn, most, ...settings()];
    if (fresh.length + ends.length + others.length === 1) {
      const [first] = fresh;
      if (first) return freshAnswers(fresh, await answer('lone', [...loneParameters(first), ...times]));
      const [last] = ends;
      if (last) return endAnswers(ends, await answer('done', [...loneEnd(last), offset(), ...settings()]));
    }
    const { json, bodies, places } = packed(fresh, others);
    const values = [json, bodies, ...times];
    if (fresh.length + ends.length === 0)
      return (await select(`SELECT * FROM ${name}.webhook_run(${marks(values)})`, values)).map(answerOf);
    values.push(...freshParameters(fresh, places), ...endParameters(ends));
    const [row, ...rows] = await select(`SELECT * FROM ${name}.webhook_run_sets(${marks(values)})`, values);
    const [admitted, ended] = answerText(row)?.split(';') ?? [];
    return [...freshAnswers(fresh, admitted), ...endAnswers(ends, ended), ...rows.map(answerOf)];
  };
}

const answerText = (row: unknown): string | null => (row as { readonly answer: string | null }).answer;

const marks = (values: readonly unknown[]): string => values.map((_, index) => `$${index + 1}`).join(', ');

type Select = (text: string, values: unknown[]) => Promise<readonly unknown[]>;

/** Each round is a transaction of its own, for one sender: others wait for no row of it. */
async function sweepAll(select: Select, name: string, offset: () => number): Promise<number> {
  const text = `SELECT ${name}.webhook_sweep($1, $2, $3)::text AS deleted`;
  const senders = await select(`SELECT id FROM ${name}.webhook_sender ORDER BY id`, []);
  let deleted = 0;
  for (const { id } of senders as { readonly id: number }[]) {
    for (let last = 1; last > 0; deleted += last) {
      const [row] = (await select(text, [id, SWEEP_MOST, offset()])) as { readonly deleted: string }[];
      last = Number(row?.deleted ?? 0);
    }
  }
  return deleted;
}

function answerRow(rows: readonly unknown[]): unknown {
  return JSON.parse((rows[0] as { readonly answer: string }).answer);
}

/** Bodies travel side by side in one parameter, which the driver sends as bytes; an array of them would be text. */
function packed(
  fresh: readonly Call[],
  others: readonly Call[],
): { readonly json: string | null; readonly bodies: Uint8Array; readonly places: readonly number[] } {
  const all = fresh.length > 0 ? [...fresh, ...others] : others;
  let at = 0;
  const places = all.map(({ body }) => {
    at += body?.length ?? 0;
    return at - (body?.length ?? 0);
  });
  const bodies = new Uint8Array(at);
  for (const [index, { body }] of all.entries()) if (body) bodies.set(body, places[index] ?? 0);
  const items = others.map(({ json, body }, index) => {
    if (!body) return json;
    return { ...json, body_at: places[fresh.length + index] ?? 0, body_bytes: body.length };
  });
  return { json: items.length > 0 ? JSON.stringify(items) : null, bodies, places };
}

/** JSON as an SQL expression in which nothing can end it: hex digits. */
function literal(call: CallJson): string {
  const bytes = new TextEncoder().encode(JSON.stringify(call));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return `convert_from(decode('${hex}', 'hex'), 'UTF8')::jsonb`;
}
