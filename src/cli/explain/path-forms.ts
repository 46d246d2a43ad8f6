import { fieldValue } from '../../delivery.ts';
import type { Change } from './finding.ts';
import type { Choice, UrlEvidence } from './url-axes.ts';

/** Headers in which proxies and platforms pass on the path as it was before they changed it. */
const ORIGINAL_PATH = [
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
  'x-forwarded-uri',
  'x-envoy-original-path',
];

/** Prefixes that routers, gateways and stages usually cut off. */
const USUAL_PREFIXES = [
  '/api',
  '/v1',
  '/api/v1',
  '/webhooks',
  '/webhook',
  '/hooks',
  '/app',
  '/prod',
  '/production',
  '/stage',
  '/staging',
  '/dev',
  '/default',
  '/latest',
  '/public',
  '/proto',
];

/** Each is tried with each host and query: nobody's router cuts off more. */
const MOST_CUTS = 32;

const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');

function joined(prefix: string, path: string): string {
  return prefix.replace(/\/$/, '') + path;
}

/** A path and its spellings that differ in percent-encoding alone. */
function spellings(path: string): string[] {
  const made = [path.replace(/%2F/gi, '/'), path.replaceAll('+', '%20'), path.replaceAll('%20', '+')];
  try {
    const plain = decodeURI(path);
    made.push(encodeURI(plain), plain.split('/').map(encodeURIComponent).join('/'));
  } catch {
    // Not UTF-8 behind its percent signs: nothing to decode.
  }
  return made;
}

/** The path as configured, and as the seller may have signed it. */
export function pathForms({ parts, headers, target }: UrlEvidence): Choice[] {
  const { path } = parts;
  const choices = new Map<string, Choice>([[path, { text: path }]]);
  const add = (text: string, cause: Change['cause'], says: string): void => {
    if (text.startsWith('/') && !choices.has(text)) choices.set(text, { text, change: { cause, says } });
  };
  const slashed = path.endsWith('/') ? path.slice(0, -1) || '/' : `${path}/`;
  add(slashed, 'trailing-slash', `The seller signed the path ${slashed}; the configured URL has ${path}.`);
  const prefixed = (text: string, how: string): void =>
    add(text, 'path-prefix', `The seller signed the path ${text}${how}; the configured URL has ${path}.`);
  for (const name of ORIGINAL_PATH) {
    const value = fieldValue(headers, name);
    if (value !== undefined) prefixed(pathOf(value), `, which your proxy passes on in ${name}`);
  }
  prefixed(pathOf(target), ', as it was received');
  const forwarded = fieldValue(headers, 'x-forwarded-prefix');
  for (const prefix of [...(forwarded === undefined ? [] : [forwarded]), ...USUAL_PREFIXES]) {
    prefixed(joined(prefix, path), `: a router or proxy of yours cuts ${prefix} off`);
  }
  const segments = path.split('/').slice(1);
  for (let cut = 1; cut < Math.min(segments.length, MOST_CUTS + 1); cut++) {
    prefixed(`/${segments.slice(cut).join('/')}`, `, without /${segments.slice(0, cut).join('/')}`);
  }
  for (const text of spellings(path)) {
    add(text, 'path-encoding', `The seller signed the path as ${text}; the configured URL writes ${path}.`);
  }
  return [...choices.values()];
}
