import type { Verification } from '../crypto/engine.ts';
import { ConfigError } from '../errors.ts';
import type { ReceiverOptions } from '../options.ts';
import { oneOf } from './validate.ts';

/** Where signatures are verified. @throws ConfigError also where `sodium` is no libsodium, or could never be used. */
export function verificationOf({ verification, sodium }: ReceiverOptions): Verification {
  const where = oneOf('verification', verification, ['main', 'pool', 'auto']) ?? 'auto';
  if (sodium === undefined) return where;
  if (typeof sodium?.crypto_sign_verify_detached !== 'function') {
    throw new ConfigError(
      "sodium: has no function crypto_sign_verify_detached. Pass the module: import sodium from 'sodium-native'.",
    );
  }
  if (where === 'pool') {
    throw new ConfigError(
      "sodium: works in the main thread, so verification: 'pool' would leave it without work. Leave one of the two out.",
    );
  }
  return where;
}
