import type { HeaderFields } from '../../delivery.ts';
import { fieldValue } from '../../delivery.ts';
import { queryForms } from './query-forms.ts';
import { pathForms } from './path-forms.ts';
import type { Change } from './finding.ts';

/** One choice for a part of the URL: as configured (no change), or as the seller may have had it. */
export interface Choice {
  readonly text: string;
  readonly change?: Change;
}

/** Scheme, authority, path and query (with its `?`) of an absolute URL. */
export interface UrlParts {
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly query: string;
}

/** What the axes are made from. */
export interface UrlEvidence {
  /** As configured. */
  readonly parts: UrlParts;
  readonly headers: HeaderFields;
  /** Request target as captured. */
  readonly target: string;
  /** Authority of the captured URL, where it had one. */
  readonly captured: string | undefined;
}

const URL_PARTS = /^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?/i;

/** By text, not by `URL`, which would repair what went wrong. */
export function partsOf(url: string): UrlParts | undefined {
  const match = URL_PARTS.exec(url);
  if (!match) return undefined;
  const [, scheme = '', authority = '', path = '', query = ''] = match;
  return { scheme: scheme.toLowerCase(), authority, path: path || '/', query };
}

function schemes({ parts }: UrlEvidence): Choice[] {
  const other = parts.scheme === 'https' ? 'http' : 'https';
  const says = `The seller signed an ${other} URL, and the configured one says ${parts.scheme}.`;
  return [{ text: parts.scheme }, { text: other, change: { cause: 'scheme', says } }];
}

const hostOf = (authority: string): string => authority.replace(/:\d*$/, '');

/** Ports that proxies and development servers listen on. */
const USUAL_PORTS = ['', ':443', ':80', ':8443', ':8080', ':8000', ':5000', ':3000'];

function authorities({ parts, headers, captured }: UrlEvidence): Choice[] {
  const choices = new Map<string, Choice>([[parts.authority, { text: parts.authority }]]);
  const add = (text: string | undefined, change: Change): void => {
    if (text !== undefined && text !== '' && !choices.has(text)) choices.set(text, { text, change });
  };
  for (const name of ['x-forwarded-host', 'x-original-host', 'x-forwarded-server', 'forwarded']) {
    const field = fieldValue(headers, name) ?? '';
    const value = name === 'forwarded' ? /host="?([^";,]*)/i.exec(field)?.[1] : field.split(',')[0]?.trim();
    const says = `The seller signed the host ${value}, which your proxy passes on in ${name}; the configured URL says ${parts.authority}.`;
    add(value, { cause: 'forwarded-host', says });
  }
  const host = fieldValue(headers, 'host');
  for (const value of [
    host,
    captured,
    hostOf(parts.authority).startsWith('www.') ? parts.authority.slice(4) : `www.${parts.authority}`,
  ]) {
    const port = value !== undefined && hostOf(value) === hostOf(parts.authority);
    const says = `The seller signed the ${port ? 'port' : 'host'} of ${value}; the configured URL says ${parts.authority}.`;
    add(value, { cause: port ? 'port' : 'host', says });
  }
  const forwardedPort = fieldValue(headers, 'x-forwarded-port');
  for (const port of [...(forwardedPort === undefined ? [] : [`:${forwardedPort}`]), ...USUAL_PORTS]) {
    const value = hostOf(parts.authority) + port;
    add(value, {
      cause: 'port',
      says: `The seller signed ${port === '' ? 'no port' : `port ${port.slice(1)}`}; the configured URL says ${parts.authority}.`,
    });
  }
  return [...choices.values()];
}

/** The four parts of a URL, each with its choices; the first is as configured. */
export function urlAxes(evidence: UrlEvidence): readonly (readonly Choice[])[] {
  return [schemes(evidence), authorities(evidence), pathForms(evidence), queryForms(evidence)];
}

/**
 * Every combination of choices, fewest changes first.
 * @param most changes at once.
 */
export function* combinations(
  axes: readonly (readonly Choice[])[],
  most: number,
): Generator<readonly Choice[]> {
  for (let changes = 0; changes <= Math.min(most, axes.length); changes++) yield* withChanges(axes, changes);
}

function* withChanges(axes: readonly (readonly Choice[])[], changes: number): Generator<readonly Choice[]> {
  const [first, ...rest] = axes;
  if (!first) {
    if (changes === 0) yield [];
    return;
  }
  for (const [index, choice] of first.entries()) {
    const left = index === 0 ? changes : changes - 1;
    if (left < 0 || left > rest.length) continue;
    for (const tail of withChanges(rest, left)) yield [choice, ...tail];
  }
}
