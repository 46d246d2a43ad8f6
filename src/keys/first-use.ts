import { once } from '../single-flight.ts';
import type { Candidate, KeyRequest, KeySearch } from './contract.ts';
import type { DocumentKind } from './document.ts';
import { JWKS, type KeySet } from './jwks.ts';
import type { KeyOwners, KeyOwnersContext } from './key-owners.ts';

interface FirstUse {
  /** JWKS that records when which key was first seen. */
  readonly jwks: DocumentKind<KeySet>;
  /** The same search, with `firstUse` on candidates that are not known to be their sender's own. */
  readonly guard: (search: KeySearch, request: KeyRequest) => KeySearch;
}

/**
 * A registered seller can publish another seller's key as its own. Where a URL has several senders, the others are asked
 * before a sender's key is used for the first time (verification.md §2.36). The code that asks is loaded when needed.
 */
export function createFirstUse(context: () => KeyOwnersContext): FirstUse {
  let made: KeyOwners | undefined;
  const owners = once(async () => {
    const { createKeyOwners } = await import('./key-owners.ts');
    return (made ??= createKeyOwners(context()));
  });
  return {
    jwks: { ...JWKS, onReplaced: (copy, before) => made?.onReplaced(copy, before) },
    guard: (search, request) => {
      const { candidates } = search;
      const isOwn = (candidate: Candidate): boolean => made?.isOwn(candidate, request.senders) === true;
      if (request.senders.length === 1 || candidates.every(isOwn)) return search;
      made?.noteShared(candidates, request);
      const firstUse = async (candidate: Candidate): Promise<string | undefined> =>
        (await owners()).firstUse(candidate, request);
      return {
        ...search,
        candidates: candidates.map((candidate) =>
          isOwn(candidate) ? candidate : { ...candidate, firstUse: () => firstUse(candidate) },
        ),
      };
    },
  };
}
