import type { Chain } from './chain.ts';

const kidsOf = ({ jwks }: Chain): ReadonlySet<string> => new Set(jwks.map((jwk) => String(jwk['kid'])));

/** Key ids that two sellers publish, in words: at one URL of a receiver only one of them can have it. */
export function sharedNotes(chain: Chain, other: Chain): string[] {
  const own = kidsOf(chain);
  const shared = [...kidsOf(other)].filter((kid) => own.has(kid));
  if (shared.length === 0) return [];
  return [
    `${other.agentUrl} publishes ${shared.map((kid) => JSON.stringify(kid)).join(', ')} too. At one URL of a receiver deliveries by it are one seller's or the other's: give each seller a URL of its own, or have one of them publish another kid.`,
  ];
}
