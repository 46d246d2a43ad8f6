import { Client } from 'pg';
import { sharedPostgres } from '../support/shared-postgres.ts';

/** A database of one test's own, on the server that the test files of a run share. */
export interface OwnDatabase extends AsyncDisposable {
  readonly url: string;
  readonly drop: () => Promise<void>;
}

/** @param folder `inject('shared')`. */
export async function ownDatabase(folder: string, name: string): Promise<OwnDatabase> {
  const server = await sharedPostgres(folder);
  const asOwner = async (sql: string): Promise<void> => {
    const client = new Client({ connectionString: server });
    await client.connect();
    await client.query(sql);
    await client.end();
  };
  const database = `example_${name}_${process.pid}`;
  await asOwner(`CREATE DATABASE ${database}`);
  const url = new URL(server);
  url.pathname = `/${database}`;
  const drop = (): Promise<void> => asOwner(`DROP DATABASE ${database} WITH (FORCE)`);
  return { url: url.href, drop, [Symbol.asyncDispose]: drop };
}
