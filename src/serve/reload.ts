// Reads the configuration again, and replaces the instance if the configuration has no mistake (serve.md §1.8). `serve`
// calls it at SIGHUP.
import { isDeepStrictEqual } from 'node:util';
import { type ConfigSource, readConfig } from './config/read-config.ts';
import { createInstance, ended, type Instance, type InstanceParts } from './instance.ts';
import { adviceOf } from './within.ts';

/** The settings and functions that a reload needs. */
export interface ReloadParts extends Omit<InstanceParts, 'loads'> {
  readonly source: ConfigSource;
  /** Returns the instance (receiver, store and sink) that currently serves. */
  readonly current: () => Instance;
  /** Routes deliveries to the new instance. Resolves when the former instance has ended its work. */
  readonly swap: (next: Instance) => Promise<void>;
  readonly isStopping: () => boolean;
}

/** The members of the configuration that cannot change while the process listens. */
const FIXED = ['listen', 'health'] as const;

/**
 * Reads the configuration again, makes an instance, and waits for its store. @throws Error (rejects) with the mistake
 */
async function load({ source, current, ...parts }: ReloadParts, loads: number): Promise<Instance> {
  const read = readConfig(source);
  if ('mistakes' in read) throw new Error(read.mistakes.join(' '));
  const changed = FIXED.find((name) => !isDeepStrictEqual(read.config[name], current().config[name]));
  if (changed !== undefined) {
    throw new Error(`${source.file}: ${changed} has changed. Start the process anew, or write what it was.`);
  }
  const next = await createInstance(read.config, { ...parts, loads });
  try {
    const { storeId } = await next.receiver.ready();
    const former = current().storeId();
    if (former !== undefined && storeId !== former) {
      throw new Error(
        `${source.file}: store is another one, and events may wait in the former. Start the process anew once \`inbox stats\` shows that nothing waits there.`,
      );
    }
    return next;
  } catch (error) {
    await ended(next.stop(), parts);
    throw error;
  }
}

/**
 * Makes the function that reads the configuration again (serve.md §1.8). Reloads run one after the other. If there is a
 * mistake, nothing changes, and the alarm `config_rejected` reports it.
 */
export function createReload(parts: ReloadParts): () => Promise<void> {
  const { log, swap, isStopping } = parts;
  let loads = 0;
  let last = Promise.resolve();

  async function reload(): Promise<void> {
    if (isStopping()) return;
    try {
      loads += 1;
      const next = await load(parts, loads);
      if (isStopping()) return await ended(next.stop(), parts);
      const over = swap(next);
      log.logger.info({}, 'the configuration was read again, and holds from now on');
      await over;
    } catch (error) {
      const message = `the configuration was not taken, and the former one holds: ${adviceOf(error, parts.source.file)}`;
      log.alarm({ code: 'config_rejected', message });
    }
  }

  return () => (last = last.then(reload));
}
