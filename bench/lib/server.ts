// A server's process: it is told once what to be, says its port, and lives until it is killed or its parent is gone.
import { once } from 'node:events';
import { listenFor, type ServerJob } from './servers.ts';

process.once('disconnect', () => process.exit());
const [job] = (await once(process, 'message')) as [ServerJob];
process.send?.(await listenFor(job));
