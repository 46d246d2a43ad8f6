// A process of its own: opens a store that others have filled, accepts and completes events, and says what it holds.
import { once } from 'node:events';
import { acceptOne, acceptRequest, completeOne, requireFilled } from './accepts.ts';
import { WIDTH } from './event-figures.ts';
import { concurrently } from './measure.ts';
import { residentMiB, type ResidentJob } from './memory.ts';
import { openAt } from './places.ts';

process.once('disconnect', () => process.exit());
const [job] = (await once(process, 'message')) as [ResidentJob];
const store = await openAt(job.place);
await requireFilled(store, job.records);
await concurrently(job.count, WIDTH, async (index) => {
  const at = job.from + index;
  const request = acceptRequest({ at, task: `task-${at}` });
  await acceptOne(store, request);
  await completeOne(store, request);
});
process.send?.(await residentMiB(), () => process.exit());
