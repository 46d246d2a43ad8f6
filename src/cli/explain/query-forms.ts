import type { Choice, UrlEvidence } from './url-axes.ts';

type Rewrite = (query: string) => string;

/** One `name=value` at a time, its text changed by `change`. */
const eachPart =
  (change: Rewrite): Rewrite =>
  (query) =>
    query
      .split('&')
      .map((pair) => pair.split('=').map(change).join('='))
      .join('&');

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** How `encodeURIComponent` writes it, and what other encoders escape besides. */
const strictly: Rewrite = (text) =>
  encodeURIComponent(decoded(text)).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** What libraries and proxies make of a query. */
const REWRITES: readonly Rewrite[] = [
  (query) => new URLSearchParams(query).toString(),
  eachPart(decoded),
  eachPart((text) => encodeURIComponent(decoded(text))),
  eachPart((text) => encodeURIComponent(decoded(text.replaceAll('+', ' ')))),
  eachPart(strictly),
  (query) => query.replaceAll('+', '%20'),
  (query) => query.replaceAll('%20', '+'),
  (query) => query.replaceAll("'", '%27'),
  (query) => query.replaceAll('%27', "'"),
  (query) => query.replace(/%[0-9a-f]{2}/gi, (triplet) => triplet.toUpperCase()),
  (query) => query.replace(/%[0-9a-f]{2}/gi, (triplet) => triplet.toLowerCase()),
  (query) => query.replace(/%(2C|3A|2F|40|3B|24|21|2A|28|29|7E)/gi, decoded),
  (query) => query.replace(/[,:/@;$!*()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`),
  (query) => query.replaceAll('&amp;', '&'),
  (query) => query.split('&').toSorted().join('&'),
  (query) => query.split('&').toReversed().join('&'),
  (query) => query.replace(/=(?=&|$)/g, ''),
];

const queryOf = (target: string): string => /\?([^#]*)/.exec(target)?.[1] ?? '';

/** The query as configured, and as the seller may have signed it; with its `?` where there is one. */
export function queryForms({ parts, target }: UrlEvidence): Choice[] {
  const own = parts.query;
  const choices = new Map<string, Choice>([[own, { text: own }]]);
  const add = (text: string, cause: 'query-encoding' | 'query-dropped', says: string): void => {
    if (!choices.has(text)) choices.set(text, { text, change: { cause, says } });
  };
  const shown = (query: string): string => (query === '' ? 'no query' : `the query ${query}`);
  for (const query of [own.slice(1), queryOf(target)]) {
    const marked = query === '' ? '' : `?${query}`;
    add(marked, 'query-dropped', `The seller signed ${shown(marked)}; the configured URL has ${shown(own)}.`);
    for (const rewrite of query === '' ? [] : REWRITES) {
      const text = `?${rewrite(query)}`;
      add(
        text,
        'query-encoding',
        `The seller signed ${shown(text)}; the configured URL writes ${shown(own)}.`,
      );
    }
  }
  if (own !== '')
    add('', 'query-dropped', `The seller signed no query; the configured URL has ${shown(own)}.`);
  add('?', 'query-encoding', 'The seller signed an empty query (a ? with nothing behind it).');
  return [...choices.values()];
}
