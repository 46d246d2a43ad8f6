// Defines a seller as callers name it, and checks its members. All methods of registrations that take a seller use this
// file.
import { requireAgent, requireUrl } from '../config/public-url.ts';
import { oneOf } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Transport } from '../events/event.ts';
import { editionFor, type EditionName } from '../shared/editions.ts';
import { RegistrationError } from './registrations-errors.ts';
import type { LegacyAuthentication } from './request.ts';

/**
 * The way in which a seller authenticates its webhooks: a signature by RFC 9421, or the deprecated HMAC or bearer
 * token. It is the member `scheme` of the request to `registrations.create`.
 */
export type RouteScheme = 'signature' | LegacyAuthentication['scheme'];

/**
 * A seller that you call, for `registrations.create`, `adopt` and `reportingWebhook`: its agent URL, and facts about
 * it if they differ from the defaults.
 */
export interface Seller {
  /** The seller's agent URL as in `agents[].url` of its brand.json, byte for byte. */
  readonly agentUrl: string;
  /** The URL of the seller's brand.json. This member, `edition` and `format` have the same meaning as in `Sender`. */
  readonly brandJsonUrl?: string | undefined;
  readonly edition?: EditionName | undefined;
  readonly format?: Transport | undefined;
}

export const SCHEMES: readonly RouteScheme[] = ['signature', 'HMAC-SHA256', 'Bearer'];

/** The first minor version 3.x of the protocol in which a `reporting_webhook` need not have `authentication`. */
const SIGNS_REPORTS = 3;

/**
 * True if the seller is known to accept a `reporting_webhook` without `authentication`. Such a seller signs its
 * reports.
 * @param declared the edition that the seller declares. It is used only if the owner gives no `edition`.
 */
export function signsReports({ edition }: Seller, declared?: string): boolean {
  return Number(/^3\.(\d+)$/.exec(edition ?? declared ?? '')?.[1]) >= SIGNS_REPORTS;
}

/** Returns only those members of a seller that are stored. */
export const sellerIn = ({ agentUrl, brandJsonUrl, edition, format }: Seller): Seller => ({
  agentUrl,
  ...(brandJsonUrl && { brandJsonUrl }),
  ...(edition && { edition }),
  ...(format && { format }),
});

/** Runs a check of arguments. @throws RegistrationError `request_invalid` in place of the check's ConfigError. */
export function checked<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw requestInvalid(error);
  }
}

/** Turns a ConfigError into a RegistrationError about an argument. Any other error is returned unchanged. */
export function requestInvalid(error: unknown): unknown {
  return error instanceof ConfigError
    ? new RegistrationError('request_invalid', error.message, { cause: error })
    : error;
}

/**
 * Checks a seller. Without this check a mistake would show only when deliveries are refused.
 * @throws RegistrationError
 */
export function requireSeller(seller: Seller, scheme: RouteScheme, allowLoopback: boolean): void {
  const { agentUrl, brandJsonUrl, edition, format } = seller;
  checked(() => {
    requireAgent('agentUrl', agentUrl, allowLoopback);
    if (brandJsonUrl !== undefined) requireUrl('brandJsonUrl', brandJsonUrl, allowLoopback);
    if (edition !== undefined) editionFor(edition, 'edition');
    oneOf('format', format, ['tool', 'agent']);
    oneOf('scheme', scheme, SCHEMES);
  });
}
