// Loads the code that finds keys when the first signing sender is used, because that code is half of the package.
// Called by the receiver and the verifier, which use it as an ordinary `KeyResolver`.

import { once } from '../shared/single-flight.ts';
import type { KeyResolver } from './key-resolver.ts';
import type { KeyResolverOptions } from './resolver.ts';

/** A key resolver whose code is loaded when it is first needed. */
export function keysOnDemand(options: KeyResolverOptions): KeyResolver {
  let stopped = false;
  let made: KeyResolver | undefined;
  const keys = once(async () => {
    const { createKeyResolver } = await import('./resolver.ts');
    made ??= createKeyResolver(options);
    if (stopped) made.stop();
    return made;
  });
  const loaded = async <T>(ask: (made: KeyResolver) => T | Promise<T>): Promise<T> => await ask(await keys());
  return {
    // Once the code is loaded, cached results are returned without a promise.
    find: (...args) => (made ? made.find(...args) : loaded((it) => it.find(...args))),
    findReplaced: async (...args) => (await keys()).findReplaced(...args),
    revocation: (...args) => (made ? made.revocation(...args) : loaded((it) => it.revocation(...args))),
    freshUntil: async (sender) => await made?.freshUntil(sender),
    verified: (...args) => made?.verified?.(...args),
    pressure: () => made?.pressure?.(),
    whose: (keyid, senders) => made?.whose(keyid, senders),
    warm: async (senders) => {
      if (senders.some(({ auth }) => auth.scheme === 'signature')) await (await keys()).warm(senders);
    },
    stop: () => {
      stopped = true;
      made?.stop();
    },
    resume: () => {
      stopped = false;
      made?.resume();
    },
  };
}
