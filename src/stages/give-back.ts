// Returns a leased event to the queue without running it, so that no attempt is charged (admission.md §4.3).
// Called by the receiver, the worker and redrives, for example if this process must not run the event now.

import type { Config } from '../config/resolve-options.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Store } from '../stores/store.ts';
import type { EventName } from './running.ts';

interface GiveBackContext {
  readonly store: Pick<Store, 'fail'>;
  readonly config: Pick<Config, 'retry' | 'retentionMs'>;
  readonly logger: SafeLogger;
}

/** The lease of an event whose handler was not started. */
interface Unstarted extends EventName {
  readonly owner: string;
}

/**
 * Puts an event back into the queue, because its handler was not called. No attempt is charged. Never rejects.
 * @param backoffMs time for which workers do not lease the event.
 */
export async function giveBack(
  { sender, key, owner }: Unstarted,
  { store, config, logger }: GiveBackContext,
  backoffMs = 0,
): Promise<void> {
  const { retry, retentionMs } = config;
  const unstarted = { permanent: false, unstarted: true, backoffMs };
  try {
    await store.fail({ sender, key, owner, ...unstarted, retry, retentionMs });
  } catch (error) {
    logger.warn(
      { err: error, sender, key },
      'an event could not be returned to the queue: it is due again when its lease ends',
    );
  }
}
