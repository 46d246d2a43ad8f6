import type { SafeLogger } from '../logging.ts';
import type { Config } from '../config/resolve.ts';
import type { Store } from '../stores/contract.ts';
import type { EventName } from './running.ts';

export interface GiveBackContext {
  readonly store: Pick<Store, 'fail'>;
  readonly config: Pick<Config, 'retry' | 'retentionMs'>;
  readonly logger: SafeLogger;
}

/** A lease under which nothing ran. */
export interface Unstarted extends EventName {
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
    logger.warn({ err: error, sender, key }, 'an event could not be given back: its lease runs out');
  }
}
