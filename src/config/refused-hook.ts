// Reads the option `onRefused`, a function or an object, as an object. Receivers and verifiers call it when they are
// made.
import { ConfigError } from '../shared/errors.ts';
import type { OnRefused, RefusedHook } from './receiver-options.ts';
import { onlyKnown, wholeNumber } from './validate.ts';

const WRITE = '{ handle: (delivery) => …, maxBodyBytes }';

/** Returns the hook as an object, also if it was given as a function. @throws ConfigError for anything else. */
export function refusedHook(given: OnRefused | undefined): Required<RefusedHook> | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'function') {
    if (!('maxBodyBytes' in given)) return { handle: given, maxBodyBytes: 0 };
    throw new ConfigError(`onRefused: maxBodyBytes is a member of an object: ${WRITE}.`);
  }
  const { handle, maxBodyBytes } = (given ?? {}) as Partial<RefusedHook>;
  if (typeof handle !== 'function') {
    throw new ConfigError(
      `onRefused: is neither a function nor { handle, maxBodyBytes }. Give (delivery) => …, ${WRITE}, or captureRefused(dir).`,
    );
  }
  onlyKnown('onRefused', given, { handle: true, maxBodyBytes: true });
  return { handle, maxBodyBytes: wholeNumber('onRefused.maxBodyBytes', maxBodyBytes, 0, 0) };
}
