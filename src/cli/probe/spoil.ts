import type { SignedDelivery } from '../../sender/sign.ts';

/** A delivery with one header replaced, or left out. */
export function withHeader(
  delivery: SignedDelivery,
  name: string,
  value: string | undefined,
): SignedDelivery {
  const kept = Object.entries(delivery.headers).filter(([own]) => own.toLowerCase() !== name.toLowerCase());
  return { ...delivery, headers: Object.fromEntries(value === undefined ? kept : [...kept, [name, value]]) };
}

/** A delivery whose header was changed after it was signed. */
export function editHeader(
  delivery: SignedDelivery,
  name: string,
  edit: (value: string) => string,
): SignedDelivery {
  return withHeader(delivery, name, edit(delivery.headers[name] ?? ''));
}

/** A delivery with other bytes than were signed. */
export function withBody(delivery: SignedDelivery, text: string): SignedDelivery {
  return { ...delivery, body: new TextEncoder().encode(text) };
}

/** An instant moved by so many ms. */
export function later(timestamp: string, ms: number): string {
  return new Date(Date.parse(timestamp) + ms).toISOString();
}
