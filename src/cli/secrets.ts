import type { Command } from 'commander';
import type { SenderAuth } from '../senders.ts';
import { readSecret } from './files.ts';
import type { CliContext } from './shell.ts';

/** Where legacy credentials are read from; never from the command line itself. */
export interface SecretFlags {
  readonly hmacSecretFile?: string;
  readonly hmacSecretEnv?: string;
  readonly bearerTokenFile?: string;
  readonly bearerTokenEnv?: string;
}

/** Adds the options of `SecretFlags`. */
export function addSecretFlags(verb: Command): Command {
  return verb
    .option('--hmac-secret-file <file>', 'legacy HMAC: file with the secret')
    .option('--hmac-secret-env <name>', 'legacy HMAC: environment variable with the secret')
    .option('--bearer-token-file <file>', 'legacy bearer: file with the token')
    .option('--bearer-token-env <name>', 'legacy bearer: environment variable with the token');
}

/** @returns undefined where none is named: signatures. */
export async function secretsOf(flags: SecretFlags, context: CliContext): Promise<SenderAuth | undefined> {
  const secret = await readSecret({ file: flags.hmacSecretFile, env: flags.hmacSecretEnv }, context);
  if (secret !== undefined) return { hmac: { secret } };
  const token = await readSecret({ file: flags.bearerTokenFile, env: flags.bearerTokenEnv }, context);
  return token === undefined ? undefined : { bearer: { token } };
}
