import { type Address, parseAddress, sharesPrefix } from './address.ts';
import {
  type Block,
  IPV4_BEYOND,
  IPV4_SPECIAL,
  IPV6_BEYOND,
  IPV6_GLOBAL,
  IPV6_SPECIAL,
  type Place,
} from './special-purpose.ts';

interface ParsedBlock extends Block {
  readonly first: Address;
}

function parsed(block: Block): ParsedBlock {
  const first = parseAddress(block.network);
  if (first === undefined) throw new TypeError(`${block.network} is no address`);
  return { ...block, first };
}

/** Most specific first: a block's name is then the one that fits best. */
const BLOCKS: readonly ParsedBlock[] = [...IPV4_SPECIAL, ...IPV4_BEYOND, ...IPV6_SPECIAL, ...IPV6_BEYOND]
  .map(parsed)
  .sort((a, b) => b.prefix - a.prefix);

const GLOBAL: ParsedBlock = parsed(IPV6_GLOBAL);

const contains = (block: ParsedBlock, address: Address): boolean =>
  sharesPrefix(block.first, address, block.prefix);

/** IPv4 by what is not public, IPv6 by what is: verification.md §5.11. */
function refused(address: Address): string | undefined {
  const block = BLOCKS.find((candidate) => contains(candidate, address));
  if (block?.embeds !== undefined) return embeddedRefused(address, block, block.embeds);
  if (block !== undefined) return `${block.name}, ${block.source}`;
  return address.length === 4 || contains(GLOBAL, address) ? undefined : 'not in 2000::/3';
}

function embeddedRefused(address: Address, block: Block, places: readonly Place[]): string | undefined {
  const inside = places.map((place) => Uint8Array.from(place, (index) => address[index] ?? 0));
  // With several places the unused ones mostly begin with zeros, and 0.0.0.0/8 is nothing a translator forwards to.
  // All of them so is no address at all.
  const read = inside.filter((ipv4) => places.length === 1 || ipv4[0] !== 0);
  if (read.length === 0) return `${block.name}, ${block.source}`;
  for (const ipv4 of read) {
    const why = refused(ipv4);
    if (why !== undefined) return `${block.name} of ${ipv4.join('.')}: ${why}`;
  }
  return undefined;
}

/**
 * Judges one address, as a resolver gives it or a URL carries it without brackets.
 * @returns why it is not globally routable, for the owner's log; undefined where it is.
 */
export function addressRefused(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined ? 'not an IP address' : refused(address);
}
