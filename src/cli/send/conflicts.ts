import { MISTAKES } from '../../testing/mistakes.ts';
import type { SecretFlags } from '../secrets.ts';
import { UsageError } from '../usage-error.ts';
import type { PayloadFlags } from './payload.ts';
import type { PlanFlags } from './plan.ts';

type Flags = PayloadFlags & PlanFlags & SecretFlags;
type Flag = keyof Flags;

const SAMPLE: readonly Flag[] = ['status', 'transport'];
const SPOILT: readonly Flag[] = ['tamper', 'dupKey', 'expired', 'mistake'];
const REPEATED: readonly Flag[] = ['replay', 'duplicate'];
const SECRETS: readonly Flag[] = ['hmacSecretFile', 'hmacSecretEnv', 'bearerTokenFile', 'bearerTokenEnv'];

/** A flag, those that would be dropped beside it, and why. */
const CONFLICTS: readonly (readonly [Flag, readonly Flag[], string])[] = [
  ['body', [...SAMPLE, 'report', 'family'], 'the body is sent as it is'],
  ['report', [...SAMPLE, 'family'], 'a delivery report has one form'],
  ['family', SAMPLE, 'a webhook of another family has one form'],
  [
    'stale',
    [...SAMPLE, 'body', 'report', 'family', ...SPOILT, ...REPEATED],
    'it sends two statuses of its own, both good',
  ],
  [
    'tamper',
    ['dupKey', 'expired', 'mistake', ...REPEATED],
    'a spoilt delivery is sent once, with one mistake',
  ],
  ['dupKey', ['expired', 'mistake', ...REPEATED], 'a spoilt delivery is sent once, with one mistake'],
  ['expired', ['mistake', ...REPEATED], 'a spoilt delivery is sent once, with one mistake'],
  ['mistake', REPEATED, 'a spoilt delivery is sent once'],
  ...SECRETS.map(
    (secret) =>
      [
        secret,
        ['tamper', 'expired', 'replay'],
        'that is about signatures, not about legacy senders',
      ] as const,
  ),
];

const named = (flag: Flag): string => `--${flag.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`;

/** A mistake in headers or signature, which a legacy sender cannot make. */
const isOfSignatures = ({ mistake }: Flags): boolean => mistake !== undefined && !MISTAKES[mistake].body;

/** No flag is dropped silently. @throws UsageError for two that do not go together. */
export function requireTogether(flags: Flags): void {
  for (const [flag, others, why] of CONFLICTS) {
    const other = flags[flag] === undefined ? undefined : others.find((name) => flags[name] !== undefined);
    if (other !== undefined)
      throw new UsageError(`${named(flag)} and ${named(other)}: ${why}. Expected one of them.`);
  }
  const secret = SECRETS.find((name) => flags[name] !== undefined);
  if (secret !== undefined && isOfSignatures(flags))
    throw new UsageError(
      `${named(secret)} and --mistake ${flags.mistake}: that is about signatures, not about legacy senders. Expected one of them.`,
    );
}
