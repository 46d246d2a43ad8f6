import { type Eventual, whenThere } from '../eventual.ts';
import { once } from '../once.ts';
import type { Candidate, KeyRequest, KeyResolver, KeySearch } from './contract.ts';
import type { DocumentKind } from './document.ts';
import { JWKS, type KeySet } from './jwks.ts';
import type { KeyOwners, KeyOwnersContext } from './key-owners.ts';

type Search = Pick<KeyResolver, 'find' | 'findReplaced'>;

interface FirstUse {
  /** JWKS, that notes when which key was first seen. */
  readonly jwks: DocumentKind<KeySet>;
  /** The same search, with `firstUse` on candidates that are not known to be their sender's own. */
  readonly guarded: <S extends Search>(search: S) => S;
}

/**
 * A registered seller can publish another one's key as its own. Where a URL has several senders, each asks the others
 * before a key of its is used for the first time (verification.md §2.36). The code of that is loaded when it happens.
 */
export function createFirstUse(context: () => KeyOwnersContext, shared: boolean): FirstUse {
  let made: KeyOwners | undefined;
  const owners = once(async () => {
    const { createKeyOwners } = await import('./key-owners.ts');
    return (made ??= createKeyOwners(context()));
  }, shared);
  const guard = (search: KeySearch, request: KeyRequest): KeySearch => {
    const { candidates } = search;
    const isOwn = (candidate: Candidate): boolean => made?.isOwn(candidate, request.senders) === true;
    if (request.senders.length === 1 || candidates.every(isOwn)) return search;
    made?.noteShared(candidates, request);
    const asked = async (candidate: Candidate): Promise<string | undefined> =>
      (await owners()).firstUse(candidate, request);
    return {
      ...search,
      candidates: candidates.map((candidate) =>
        isOwn(candidate) ? candidate : { ...candidate, firstUse: () => asked(candidate) },
      ),
    };
  };
  const guardAll = (search: Eventual<KeySearch>, request: KeyRequest): Eventual<KeySearch> =>
    whenThere(search, (found) => guard(found, request));
  return {
    jwks: { ...JWKS, landed: (copy, before) => made?.landed(copy, before) },
    guarded: (search) => ({
      ...search,
      find: (keyid, request) => guardAll(search.find(keyid, request), request),
      findReplaced: async (keyid, request, tried) =>
        guard(await search.findReplaced(keyid, request, tried), request),
    }),
  };
}
