// The process that runs the handlers: a container or a virtual machine that keeps running. One is enough, two are safer.
import { pool, receiver } from './receiver.ts';

await receiver.start();
console.log('working');

async function stop(): Promise<void> {
  await receiver.stop(); // handlers under way finish; what has not begun is the next worker's
  await pool.end();
}
process.once('SIGTERM', () => void stop());
