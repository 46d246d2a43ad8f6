import type { Config } from '../config/resolve-options.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Store } from '../stores/store.ts';
import type { EventName } from './running.ts';

interface GiveBackContext {
  readonly store: Pick<Store, 'fail'>;
  readonly config: Pick<Config, 'retry' | 'retentionMs'>;
  readonly logger: SafeLogger;
}

/** A lease under which nothing ran. */
interface Unstarted extends EventName {
  readonly owner: string;
}

/**
 * Gives an event back that was leased for nothing: no attempt is counted. Never rejects.
 * @param backoffMs how long workers leave it alone.
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
