// Performs check 9: fetches and polls revocation lists, and decides if a key is revoked (verification.md §2.9, §5.24
// to §5.26).
// Called by the resolver; `revocation-list.ts` parses a list, `revocation-registers.ts` keeps the lists in force.

import type { AlarmCode } from '../shared/codes.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { processTimer } from '../shared/single-flight.ts';
import { type Schedule, settledWithin } from '../shared/time-limits.ts';
import type { KeyRequest, KeyResolver, RevocationState } from './key-resolver.ts';
import type { CacheLimits, Copy, DocumentKind } from './document.ts';
import { MIN_LIFE_MS } from './lifetimes.ts';
import type { DocumentCache } from './document-cache.ts';
import { type DeliveryBudget, unlimitedBudget } from './safe-fetch.ts';
import { absentAsEmpty, checkSignature, type PublishedList, revocationKind } from './revocation-list.ts';
import {
  createListSources,
  createRegisters,
  isFresh,
  type ListSourceOptions,
  MAX_KID_CHARACTERS,
  MAX_KIDS,
  type Register,
  registerBytes,
  type Registers,
  take,
} from './revocation-registers.ts';
import type { SenderKeys } from './sender-keys.ts';
import { isError } from '../shared/realms.ts';

interface RevocationOptions extends ListSourceOptions {
  /** The cache of key documents, which caches the lists too. */
  readonly documents: DocumentCache;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  readonly raiseAlarm: RaiseAlarm;
  /** Time limit of one fetch, in ms. */
  readonly deadlineMs: number;
  readonly limits: Pick<CacheLimits, 'patienceMs'>;
  readonly keys: SenderKeys;
  /** Returns the limits of waiting time for the delivery that needs a list. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  /** Starts the timers for polling. Default: `processTimer`. */
  readonly schedule?: Schedule;
}

/** Performs check 9, revocation (verification.md §2.9), with the lists of verification.md §5.24 to §5.26. */
interface Revocations {
  /**
   * Decides if a key is revoked. Waits up to `deadlineMs` for a list that is required and no longer fresh, otherwise
   * only `patienceMs`. The delivery's remaining waiting time limits both.
   */
  readonly check: KeyResolver['revocation'];
  /** Fetches the sender's list and keeps it fresh. Never rejects. */
  readonly warm: (sender: SenderEntry) => Promise<void>;
  readonly stop: () => void;
  readonly resume: () => void;
}

interface Context {
  readonly options: RevocationOptions;
  readonly cache: DocumentCache;
  readonly kind: DocumentKind<PublishedList>;
  /** The states of all lists. Their URLs come only from configuration and from documents of configured senders. */
  readonly registers: Registers;
  readonly poll: Poll;
}

export function createRevocations(options: RevocationOptions): Revocations {
  const { now, documents: cache, schedule = processTimer } = options;
  const sourcesOf = createListSources(options);
  const forget = (url: string): void => {
    cache.forget(kind, url);
    cache.reserve(kind, url, 0);
  };
  const registers = createRegisters({ now, sourcesOf, forget });
  // A missing list is a failure only if one is required, unlike any other missing document.
  const kind = { ...revocationKind(registers), through: absentAsEmpty };
  const dueAt = (url: string): number | undefined =>
    registers.isPolled(url) ? (cache.cached(kind, url)?.freshUntil ?? now()) : undefined;
  const repoll = async (url: string): Promise<void> => {
    const register = registers.get(url);
    const [sender] = register?.senders.values() ?? [];
    if (register !== undefined && sender !== undefined) await refresh(context, register, sender);
  };
  const poll = createPoll({ now, schedule, dueAt, refresh: repoll });
  const context: Context = { options, cache, kind, registers, poll };
  return {
    check: (sender, keyid, request) => {
      if (sender.revocation?.revokedKids?.includes(keyid) === true) return 'revoked';
      const used = registers.use(sourcesOf(sender), sender);
      if (used.every((register) => isCurrent(context, register))) {
        return strictest(used.map((register) => stateOf(context, register, sender, keyid)));
      }
      return refreshedState(context, used, { sender, keyid, request });
    },
    warm: async (sender) => {
      const used = registers.use(sourcesOf(sender), sender);
      await Promise.all(used.map(async (register) => refresh(context, register, sender)));
    },
    stop: () => {
      poll.stop();
    },
    resume: poll.resume,
  };
}

interface RevocationQuery {
  readonly sender: SenderEntry;
  readonly keyid: string;
  readonly request: KeyRequest | undefined;
}

/** Returns the strictest of the states by several lists: a key that any list revokes is revoked. */
export function strictest(states: readonly RevocationState[]): RevocationState {
  if (states.includes('revoked')) return 'revoked';
  return states.includes('stale') ? 'stale' : 'valid';
}

async function refreshedState(
  context: Context,
  registers: readonly Register[],
  { sender, keyid, request }: RevocationQuery,
): Promise<RevocationState> {
  const { limits, now, deadlineMs, budgetOf } = context.options;
  const left = request === undefined ? deadlineMs : budgetOf(request).waitMs();
  const refreshed = registers.map(async (register) => {
    const decides = register.required && !isFresh(register, now());
    const waitMs = Math.min(left, decides ? deadlineMs : limits.patienceMs);
    await settledWithin(refresh(context, register, sender), waitMs);
    return stateOf(context, register, sender, keyid);
  });
  return strictest(await Promise.all(refreshed));
}

function stateOf(context: Context, register: Register, sender: SenderEntry, keyid: string): RevocationState {
  // A revoked key stays revoked, even if the list is too old to prove other keys valid.
  if (register.inForce?.kids.has(keyid) === true) return 'revoked';
  if (isFresh(register, context.options.now())) {
    register.reported = false;
    return 'valid';
  }
  // No list was ever served, or the server was never reached. A list is then not required, so the key counts as valid.
  if (!register.required) return 'valid';
  reportStale(context, register, sender);
  return 'stale';
}

/** True if the last copy was processed and is still fresh. Then the check needs neither a promise nor a timer. */
function isCurrent({ cache, kind }: Context, { url, processed }: Register): boolean {
  const copy = cache.cached(kind, url);
  return copy !== undefined && copy.fetchNumber === processed && cache.isFresh(copy);
}

/** Fetches the list if it is due, and puts it into force. Never rejects. */
async function refresh(context: Context, register: Register, sender: SenderEntry): Promise<void> {
  const { cache, kind, poll } = context;
  try {
    const answer = await cache.current(kind, register.url, unlimitedBudget(sender.agentUrl));
    if (answer.ok) await takeCopy(context, register, answer.copy, sender);
    else register.invalidReason = answer.reason;
  } catch (error) {
    // A local fault, for example a library that could not be loaded. The list in force stays in force.
    register.invalidReason = isError(error) ? error.message : 'failed';
  }
  poll.keep(register.url);
}

/** Processes a copy once. Puts its list into force if the list has a valid signature or no signature. */
async function takeCopy(
  context: Context,
  register: Register,
  copy: Copy<PublishedList>,
  sender: SenderEntry,
): Promise<void> {
  const { list } = copy.value;
  if (copy.fetchNumber <= register.processed) return;
  if (list === undefined) {
    register.processed = copy.fetchNumber;
    return;
  }
  const verdict = await checkSignature(context.options.keys, register, copy, sender);
  // During the check of the signature, another delivery has processed this copy or a later one.
  if (copy.fetchNumber <= register.processed) return;
  if (verdict !== 'good' && verdict.undecided) {
    register.invalidReason = verdict.invalidReason;
    return;
  }
  register.processed = copy.fetchNumber;
  const taken = verdict === 'good' ? take(register, list, copy.fetchedAt) : verdict;
  context.cache.reserve(context.kind, register.url, registerBytes(register));
  const invalidReason = typeof taken === 'object' ? taken.invalidReason : undefined;
  if (invalidReason !== undefined && invalidReason !== register.invalidReason)
    report(context, register, 'key_document_invalid', invalidReason);
  if (taken === 'overflow') report(context, register, 'revocation_overflow', OVERFLOW);
  register.invalidReason = invalidReason;
}

const OVERFLOW = `lists with the same updated revoke more than ${MAX_KIDS} key ids, or ${MAX_KID_CHARACTERS} characters of them, together. From now on only the newest counts, and keys that only an earlier one revoked verify again. The seller has to raise updated with each list`;

function report({ options, kind }: Context, { url }: Register, code: AlarmCode, what: string): void {
  const message = `revocation list at ${url}: ${what}.`;
  options.raiseAlarm({ code, message, url, document: kind.name });
}

function reportStale({ options }: Context, register: Register, sender: SenderEntry): void {
  if (register.reported) return;
  register.reported = true;
  const { url, inForce, invalidReason } = register;
  const age = inForce === undefined ? 'it could never be fetched' : 'it is past next_update and its grace';
  const why = invalidReason === undefined ? age : `${age} (${invalidReason})`;
  const message = `revocation list at ${url}: ${why}. Deliveries of ${sender.agentUrl} are answered 503 until it is fresh.`;
  options.raiseAlarm({ code: 'revocation_stale', message, sender: sender.agentUrl, url });
}

/** Fetches lists when they are due, with or without deliveries. */
interface Poll {
  /** Ensures that the list at `url` is fetched when it is due. */
  keep(url: string): void;
  stop(): void;
  /** Starts polling again after `stop`, for the lists that were polled before. */
  readonly resume: () => void;
}

interface PollOptions {
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  readonly schedule: Schedule;
  /**
   * Returns the time (Unix ms) at which the list has to be fetched next. Undefined if the list is no longer needed.
   */
  readonly dueAt: (url: string) => number | undefined;
  /** Fetches the list if it is due. Never rejects. */
  readonly refresh: (url: string) => Promise<void>;
}

/**
 * Polls with one timer per list; the timers never keep the process alive. On a runtime that ends timers with their
 * request, a list is still refreshed when it is used.
 */
function createPoll({ now, schedule, dueAt, refresh }: PollOptions): Poll {
  const waiting = new Map<string, () => void>();
  let stopped = false;
  let keptBefore: readonly string[] = [];
  const keep = (url: string): void => {
    const due = dueAt(url);
    if (stopped || due === undefined || waiting.has(url)) return;
    const ms = due - now();
    // A list that is already overdue here could not be fetched just now. It is tried once a minute, because the cache
    // remembers a failure for at most a minute.
    waiting.set(
      url,
      schedule(() => void run(url), ms > 0 ? ms : MIN_LIFE_MS),
    );
  };
  const run = async (url: string): Promise<void> => {
    const own = waiting.get(url);
    if (dueAt(url) !== undefined) await refresh(url);
    // Another timer waits if the poll was stopped and resumed meanwhile.
    if (waiting.get(url) === own) waiting.delete(url);
    keep(url);
  };
  return {
    keep,
    stop: () => {
      stopped = true;
      keptBefore = [...keptBefore, ...waiting.keys()];
      for (const cancel of waiting.values()) cancel();
      waiting.clear();
    },
    resume: () => {
      stopped = false;
      for (const url of keptBefore) keep(url);
      keptBefore = [];
    },
  };
}
