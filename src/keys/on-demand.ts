import { once } from '../once.ts';
import type { KeyResolver } from './contract.ts';
import type { KeyResolverOptions } from './resolver.ts';

/**
 * The keys of senders that sign. Their code, half of the package, is loaded when the first such sender is there: legacy
 * senders have no keys.
 * @param shared see `once`.
 */
export function keysOnDemand(options: KeyResolverOptions, shared: boolean): KeyResolver {
  let stopped = false;
  let made: KeyResolver | undefined;
  const keys = once(async () => {
    const { createKeyResolver } = await import('./resolver.ts');
    made ??= createKeyResolver(options);
    if (stopped) made.stop();
    return made;
  }, shared);
  const loaded = async <T>(ask: (made: KeyResolver) => T | Promise<T>): Promise<T> => await ask(await keys());
  return {
    // Once the code is there a delivery waits for nothing that needs no waiting.
    find: (...given) => (made ? made.find(...given) : loaded((it) => it.find(...given))),
    findReplaced: async (...given) => (await keys()).findReplaced(...given),
    revocation: (...given) => (made ? made.revocation(...given) : loaded((it) => it.revocation(...given))),
    whose: (keyid, senders) => made?.whose(keyid, senders),
    warm: async (senders) => {
      if (senders.some(({ auth }) => auth.scheme === 'signature')) await (await keys()).warm(senders);
    },
    stop: () => {
      stopped = true;
      made?.stop();
    },
  };
}
