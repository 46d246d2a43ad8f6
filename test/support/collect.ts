// Collects garbage at once, in a process that was started without `--expose-gc`.
// Called by tests that look at what a process holds.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

export const collect = runInNewContext('gc') as () => void;
