// Selects the canonical URL of a delivery and the senders that may call it, by configuration alone (admission.md
// §2.10).
// Called by `enter` after `guard`. The code for several base URLs, and for paths under no base URL, is loaded on
// demand.

import type { Bases, PublicUrl } from '../config/public-url.ts';
import type { Head } from '../shared/delivery.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Refusal } from '../shared/outcome.ts';
import type { Guarded } from './guard.ts';
import { NO_FORM, selectAt, type SelectContext, type Selected, targetAt, urlAt } from './selected.ts';

/** Functions that few receivers and few deliveries need, so they are loaded on demand. */
type Unusual = Pick<typeof import('./several-bases.ts'), 'selectAmong'> &
  Pick<typeof import('./stray.ts'), 'refuseStray'>;

/**
 * Checks that a request URL was passed if one is needed.
 * @throws ConfigError if `publicUrl` is a prefix and the caller gave no `url`.
 */
export function requireUrl(bases: Bases, url: string | undefined): void {
  if (typeof url === 'string' || bases.every(({ kind }) => kind === 'exact')) return;
  throw new ConfigError(
    'publicUrl ends in /*, so path and query come from the request: pass them, as { url: request.url } after the headers.',
  );
}

/**
 * Selects the URL and the senders of a delivery. Returns a promise only if it has to wait for the senders.
 * @param load called for the first delivery that needs the functions of `Unusual`.
 * @throws Fault (rejects) `misconfigured` if the owner's `senders` function fails or its result does not fit, or if the
 * path belongs to no base URL. A fault of the store of registrations is thrown unchanged.
 */
export function select(
  { delivery }: Guarded,
  context: SelectContext,
  load: () => Promise<Unusual>,
): Selected | Refusal | Promise<Selected | Refusal> {
  const { bases } = context.config;
  const [base] = bases;
  if (bases.length > 1) return among(delivery, context, load);
  const target = urlAt(base, delivery.url);
  if (target) return selectAt(delivery, { base, target }, context);
  return base.kind === 'prefix' && targetAt(base, delivery.url)
    ? strayed(delivery, base, context, load)
    : NO_FORM;
}

async function among(
  delivery: Head,
  context: SelectContext,
  load: () => Promise<Unusual>,
): Promise<Selected | Refusal> {
  return (await load()).selectAmong(delivery, context);
}

async function strayed(
  delivery: Head,
  base: Extract<PublicUrl, { kind: 'prefix' }>,
  context: SelectContext,
  load: () => Promise<Unusual>,
): Promise<never> {
  return (await load()).refuseStray(delivery, [base], context);
}
