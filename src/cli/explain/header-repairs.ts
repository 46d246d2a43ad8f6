import { encodeBase64 } from '../../codec/base64.ts';
import type { Change } from './finding.ts';
import { byteForms, sequenceText } from './signature-forms.ts';

type Headers = readonly (readonly [string, string])[];

/** Headers with one thing mended. */
export interface Repair {
  readonly headers: Headers;
  readonly change: Change;
}

/** The two fields that hold a byte sequence, and its label in them. */
const SEQUENCES = [
  { field: 'signature', label: 'sig1', name: 'Signature' },
  { field: 'content-digest', label: 'sha-256', name: 'Content-Digest' },
] as const;

function replaced(headers: Headers, field: string, value: string): Headers {
  return headers.map(([name, line]) => (name.toLowerCase() === field ? [name, value] : [name, line]));
}

/** What can be done about headers that cannot be read: one repair at a time, then both fields together. */
export function repairs(headers: Headers): Repair[] {
  const made: Repair[] = [];
  for (const { field, label, name } of SEQUENCES) {
    const line = headers.find(([given]) => given.toLowerCase() === field)?.[1];
    const text = line === undefined ? undefined : sequenceText(line.replace(/^SHA-256=/i, 'sha-256='), label);
    if (text === undefined) continue;
    const bare: Change = {
      cause: 'headers',
      says: `${name} is not written as ${label}=:…:.`,
      fix: `The seller has to write ${name}: ${label}=:<base64url>: (RFC 8941 §3.3.5).`,
    };
    made.push({ headers: replaced(headers, field, `${label}=:${text}:`), change: bare });
    for (const { bytes, change } of byteForms(text, name)) {
      made.push({ headers: replaced(headers, field, `${label}=:${encodeBase64(bytes)}:`), change });
    }
  }
  const [first] = made;
  if (first) for (const repair of made.slice(1)) made.push(...both(first, repair));
  return made;
}

/** A sender that writes one field in its own way writes the other so too. */
function both(first: Repair, second: Repair): Repair[] {
  if (first.change.cause !== second.change.cause) return [];
  const headers = first.headers.map((pair, i): readonly [string, string] => {
    const other = second.headers[i] ?? pair;
    return pair[0].toLowerCase() === 'content-digest' ? other : pair;
  });
  return [
    {
      headers,
      change: {
        ...first.change,
        says: first.change.says.replace(/^Signature is/, 'Signature and Content-Digest are'),
      },
    },
  ];
}
