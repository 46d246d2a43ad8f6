import { quoted } from '../auth/rfc9421/refuse.ts';
import { putBounded } from '../bounded.ts';
import type { SenderEntry } from '../senders.ts';
import type { Allowance } from './allowance.ts';
import type { Candidate, KeyRequest, SenderKey } from './contract.ts';
import { createFirstSeen, type FirstSeen, keyName } from './first-seen.ts';
import { within } from './freshness.ts';
import { askOther, type NewKey, type OwnerSources, type Word } from './other-senders.ts';
import { settledWithin } from './timeout.ts';

export interface KeyOwnersContext extends Omit<OwnerSources, 'firstSeen'> {
  /** Of the delivery that waits. */
  readonly allowanceOf: (request: KeyRequest) => Allowance;
  /** Besides the ms for one fetch those until a sender that had no good answer is asked again. */
  readonly limits: OwnerSources['limits'] & { readonly cooldownMs: number };
  /** Unix ms. */
  readonly now: () => number;
  /** Whether one delivery may wait for what another began: see `CacheOptions.sharedFetches`. */
  readonly shared: boolean;
}

/** Whose a key is, where a URL has several senders (verification.md §2.36). */
export interface KeyOwners extends Pick<FirstSeen, 'landed'> {
  /** Whether all the others were asked. */
  isOwn(candidate: Candidate, senders: readonly SenderEntry[]): boolean;
  /** Why a signature of this key is not, or not yet, its sender's; undefined where it is. Never rejects. */
  firstUse(candidate: Candidate, request: KeyRequest): Promise<string | undefined>;
  /** Asks about those that publish a key which is known to be another candidate's, for the alarm; nobody waits. */
  noteShared(candidates: readonly Candidate[], request: KeyRequest): void;
}

/** What one other sender said of a key. */
interface Asked {
  word?: Word;
  /** When it said so, Unix ms. */
  at: number;
  asking?: Promise<void> | undefined;
}

interface Claim extends NewKey {
  /** By agent URL. */
  readonly others: Map<string, Asked>;
}

/** As many as documents are; what is forgotten is asked again. */
const MAX_CLAIMS = 10_000;

export function createKeyOwners(context: KeyOwnersContext): KeyOwners {
  const { cache } = context;
  const firstSeen = createFirstSeen(() => cache.order());
  const desk: Desk = { ...context, firstSeen };
  const claims = new Map<string, Claim>();
  const nameOf = ({ sender, key }: Candidate): string => `${sender.agentUrl} ${keyOf(key)}`;
  const claimOf = (candidate: Candidate): Claim => {
    const name = nameOf(candidate);
    const claim = { candidate, order: cache.order(), others: new Map<string, Asked>() };
    return claims.get(name) ?? putBounded(claims, name, claim, MAX_CLAIMS);
  };
  const isOwn: KeyOwners['isOwn'] = (candidate, senders) => {
    const said = claims.get(nameOf(candidate))?.others;
    return (
      said !== undefined && others(candidate, senders).every((it) => said.get(it.agentUrl)?.word === 'clear')
    );
  };
  const firstUse: KeyOwners['firstUse'] = async (candidate, request) => {
    const claim = claimOf(candidate);
    const asked = others(candidate, request.senders);
    const answered = Promise.all(asked.map(async (other) => ask(desk, claim, other)));
    await settledWithin(answered, context.allowanceOf(request).waitMs());
    return doubt(claim, asked);
  };
  return {
    landed: (copy, before) => firstSeen.landed(copy, before),
    isOwn,
    firstUse,
    noteShared: (candidates, request) => {
      const own = candidates.filter((candidate) => isOwn(candidate, request.senders));
      const keys = new Set(own.map(({ key }) => keyOf(key)));
      for (const candidate of candidates) {
        if (!own.includes(candidate) && keys.has(keyOf(candidate.key))) void firstUse(candidate, request);
      }
    },
  };
}

interface Desk extends KeyOwnersContext {
  readonly firstSeen: FirstSeen;
}

function keyOf({ kid, jwk }: SenderKey): string {
  return keyName(kid, jwk);
}

function others({ sender }: Candidate, senders: readonly SenderEntry[]): readonly SenderEntry[] {
  return senders.filter(({ agentUrl }) => agentUrl !== sender.agentUrl);
}

/** Asks one of the others where that is due. Resolves when it has answered; at once where it had answered before. */
async function ask(desk: Desk, claim: Claim, other: SenderEntry): Promise<void> {
  const { now, limits, shared } = desk;
  const { agentUrl } = other;
  const asked: Asked = claim.others.get(agentUrl) ?? { at: 0 };
  claim.others.set(agentUrl, asked);
  const { word } = asked;
  if (word === 'clear' || (word !== undefined && within(now(), asked.at, limits.cooldownMs))) return;
  const asking = asked.asking ?? keepWord(desk, claim, other, asked);
  if (shared) asked.asking = asking;
  if (word === undefined) await asking;
}

async function keepWord(desk: Desk, claim: Claim, other: SenderEntry, asked: Asked): Promise<void> {
  const again = asked.word !== undefined;
  asked.word = await askOther(desk, claim, other, again);
  asked.at = desk.now();
  asked.asking = undefined;
}

/** For the owner's log. */
function doubt({ candidate, others: said }: Claim, asked: readonly SenderEntry[]): string | undefined {
  const names = (wanted: Word | undefined): string =>
    asked
      .map(({ agentUrl }) => agentUrl)
      .filter((agentUrl) => said.get(agentUrl)?.word === wanted)
      .join(', ');
  const what = `the key ${quoted(candidate.key.kid)} of ${candidate.sender.agentUrl}`;
  const [sharing, silent] = [names('shared'), names(undefined)];
  if (sharing !== '') return `${what} is published by ${sharing} too`;
  return silent === '' ? undefined : `${what} is new here, and has to be asked of ${silent} first`;
}
