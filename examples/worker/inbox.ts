// The process that runs the handlers: Node on a machine that keeps running. One is enough, two are safer.
import { Pool } from 'pg';
import { postgresStore } from 'proto-webhooks/postgres';
import { receiverOn } from './receiver.ts';

const pool = new Pool({ connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 3000 });
const receiver = receiverOn(postgresStore({ pool }), process.env);

await receiver.start();
console.log('working');

async function stop(): Promise<void> {
  await receiver.stop(); // handlers under way finish; what has not begun is the next worker's
  await pool.end();
}
process.once('SIGTERM', () => void stop());
