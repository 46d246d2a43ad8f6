// Turns the option `senders`, a list or a function, into entries for a URL (admission.md §2.10, §2.11). A URL has at
// most 32 senders (verification.md §5.8, §5.9). The files senders.ts and senders-by-path.ts call this one.
import { hmacSecretsOf } from '../auth/credentials.ts';
import { ConfigError } from '../shared/errors.ts';
import { type Edition, editionFor } from '../shared/editions.ts';
import type { Protocols } from '../shared/wire-names.ts';
import { checkPins } from '../keys/pinned-jwks.ts';
import type { SenderSource, SendersByPath } from './receiver-options.ts';
import type { Sender, SenderEntry, SenderRevocation } from './sender-entry.ts';
import { requireWithin } from './defaults.ts';
import { authPolicy, tokenPolicy } from './auth.ts';
import { requireAgent, requireUrl } from './public-url.ts';
import { describeMissing, onlyKnown, oneOf, wholeNumber } from './validate.ts';

export interface SenderDefaults {
  readonly protocols: Protocols;
  readonly edition: Edition;
  readonly allowLoopback: boolean;
  readonly maxNoncesPerKey: number;
  /** The upper limit of each sender's `maxNoncesPerKey`. */
  readonly maxNoncesPerSender: number;
}

/**
 * Finds the senders that may call a URL; all have the same scheme. `forUrl` never throws, and rejects with ConfigError
 * if the owner's function makes a mistake.
 */
export interface ResolveSenders {
  /**
   * The senders of a static list, which are known before the first delivery. Absent for a function or a list by path.
   */
  readonly fixed?: readonly SenderEntry[];
  /**
   * Returns the senders for a URL. A list with one more than `MAX_SENDERS` means that further senders were left out
   * (verification.md §5.9).
   */
  readonly forUrl: (targetUri: string) => readonly SenderEntry[] | Promise<readonly SenderEntry[]>;
}

const SENDER_NAMES: Readonly<Record<keyof Sender, true>> = {
  agentUrl: true,
  brandJsonUrl: true,
  auth: true,
  edition: true,
  format: true,
  pins: true,
  publishers: true,
  revocation: true,
  notificationToken: true,
  maxNoncesPerKey: true,
};

/**
 * The most senders of one URL. An unknown `keyid` or a new key may cost a fetch for each of them (verification.md
 * §5.8).
 */
export const MAX_SENDERS = 32;

function senderEntry(sender: Sender, where: string, defaults: SenderDefaults): SenderEntry {
  if (typeof sender !== 'object' || sender === null) {
    throw new ConfigError(`${where}: must be an object like { agentUrl: 'https://seller.example/mcp' }.`);
  }
  onlyKnown(where, sender, SENDER_NAMES);
  requireAgent(`${where}.agentUrl`, sender.agentUrl, defaults.allowLoopback);
  if (sender.brandJsonUrl !== undefined) {
    requireUrl(`${where}.brandJsonUrl`, sender.brandJsonUrl, defaults.allowLoopback);
  }
  checkRevocation(`${where}.revocation`, sender.revocation, defaults.allowLoopback);
  const auth = authPolicy(`${where}.auth`, sender.auth, defaults.protocols);
  const entry: SenderEntry = {
    agentUrl: sender.agentUrl,
    auth,
    edition: sender.edition === undefined ? defaults.edition : editionFor(sender.edition, `${where}.edition`),
    maxNoncesPerKey: wholeNumber(
      `${where}.maxNoncesPerKey`,
      sender.maxNoncesPerKey,
      defaults.maxNoncesPerKey,
    ),
    ...(sender.brandJsonUrl !== undefined && { brandJsonUrl: sender.brandJsonUrl }),
    ...(sender.format !== undefined && { format: sender.format }),
    ...(sender.pins !== undefined && { pins: sender.pins }),
    ...(sender.publishers !== undefined && {
      publishers: publisherDomains(`${where}.publishers`, sender.publishers),
    }),
    ...(sender.revocation !== undefined && { revocation: sender.revocation }),
    ...tokenPolicy(`${where}.notificationToken`, sender.notificationToken, auth),
  };
  const { maxNoncesPerSender } = defaults;
  requireWithin(
    [`${where}.maxNoncesPerKey`, entry.maxNoncesPerKey],
    ['maxNoncesPerSender', maxNoncesPerSender],
  );
  oneOf(`${where}.format`, sender.format, ['tool', 'agent']);
  checkPins(entry);
  return entry;
}

function credentials(entry: SenderEntry): readonly string[] {
  return entry.auth.scheme === 'bearer' ? entry.auth.tokens : hmacSecretsOf(entry.auth);
}

/**
 * Returns a name for the way in which a sender is authenticated: its schemes, and for a bearer token its header. The
 * name must be the same for all senders of one URL.
 */
function kindOf({ auth }: SenderEntry): string {
  if (auth.scheme === 'bearer') return `bearer ${auth.header ?? ''}`;
  return auth.scheme === 'signature' && auth.reportSecrets ? 'signature, HMAC for reports' : auth.scheme;
}

/** Checks the senders of one URL together: one kind of auth, and no agent or secret twice. */
function checkTogether(entries: readonly SenderEntry[], where = 'senders'): void {
  if (new Set(entries.map(kindOf)).size > 1) {
    throw new ConfigError(
      `${where}: several kinds of auth on one URL. The registered kind decides before any header is looked at, so give each kind a path of its own: publicUrl: '…/*', senders: { '/…/a': [ … ], '/…/b': [ … ] }.`,
    );
  }
  const agents = new Set<string>();
  const owners = new Map<string, string>();
  for (const entry of entries) {
    if (agents.has(entry.agentUrl)) {
      throw new ConfigError(`${where}: ${entry.agentUrl} is listed twice for one URL. Keep one entry.`);
    }
    agents.add(entry.agentUrl);
    for (const credential of credentials(entry)) {
      const owner = owners.get(credential);
      if (owner !== undefined && owner !== entry.agentUrl) {
        throw new ConfigError(
          `${where}: ${owner} and ${entry.agentUrl} have the same secret, so neither proves who sent. Give each its own.`,
        );
      }
      owners.set(credential, entry.agentUrl);
    }
  }
}

/**
 * Returns the senders of one URL.
 * @throws ConfigError that names `where`, unless the value is a list of 1 to `MAX_SENDERS` valid senders that may share
 * a URL.
 */
export function senderList(
  where: string,
  list: unknown,
  defaults: SenderDefaults,
): readonly [SenderEntry, ...SenderEntry[]] {
  if (!Array.isArray(list)) {
    throw new ConfigError(`${where}: ${describeMissing(list, 'an array')}. ${EXAMPLE}`);
  }
  if (list.length > MAX_SENDERS) {
    throw new ConfigError(
      `${where}: ${list.length} on one URL, at most ${MAX_SENDERS}. Give each seller a path of its own: publicUrl: '…/*', senders: { '/…/a': [ … ], '/…/b': [ … ] }.`,
    );
  }
  const entries = list.map((sender: Sender, index) => senderEntry(sender, `${where}[${index}]`, defaults));
  const [first, ...others] = entries;
  if (!first) throw new ConfigError(`${where}: missing. ${EXAMPLE}`);
  checkTogether(entries, where);
  return [first, ...others];
}

const EXAMPLE = "Give at least one: [{ agentUrl: 'https://seller.example/mcp' }].";

/**
 * Reads a list or a function of senders. A list is validated now, the results of a function at each call. Each `Sender`
 * object is validated once.
 */
export function senderSource(
  source: Exclude<SenderSource, SendersByPath> | undefined,
  defaults: SenderDefaults,
): ResolveSenders {
  if (typeof source === 'function') return selectedSenders(source, defaults);
  if (!Array.isArray(source)) {
    throw new ConfigError(
      `senders: ${describeMissing(source, 'an array, an object of paths, or a function')}. ${EXAMPLE}`,
    );
  }
  const fixed = senderList('senders', source, defaults);
  return { fixed, forUrl: () => fixed };
}

function selectedSenders(
  select: Extract<SenderSource, (...args: never) => unknown>,
  defaults: SenderDefaults,
): ResolveSenders {
  const known = new WeakMap<Sender, SenderEntry>();
  return {
    async forUrl(targetUri) {
      const selected = await select(new URL(targetUri));
      if (!Array.isArray(selected))
        throw new ConfigError('senders: the function must return an array of senders.');
      const entries = selected.slice(0, MAX_SENDERS + 1).map((sender: Sender, index) => {
        const entry = known.get(sender) ?? senderEntry(sender, `senders[${index}]`, defaults);
        known.set(sender, entry);
        return entry;
      });
      checkTogether(entries);
      return entries;
    },
  };
}

/** The most publishers of a sender. Each costs a fetch per hour, and one more if a key is unknown. */
const MAX_PUBLISHERS = 100;

/**
 * Returns publisher domains as `URL` writes hosts, each once.
 * @throws ConfigError that names `where` for anything but a list of `host` or `host:port`.
 */
export function publisherDomains(where: string, publishers: unknown): readonly string[] {
  if (!Array.isArray(publishers) || publishers.length > MAX_PUBLISHERS) {
    throw new ConfigError(
      `${where}: must be an array of at most ${MAX_PUBLISHERS} domains, e.g. ['publisher.example'].`,
    );
  }
  return [...new Set(publishers.map((domain: unknown) => hostOf(where, domain)))];
}

function hostOf(where: string, domain: unknown): string {
  const url = `https://${String(domain)}`;
  if (typeof domain !== 'string' || !/^[^\s/?#@\\]+$/.test(domain) || !URL.canParse(url)) {
    throw new ConfigError(
      `${where}: ${JSON.stringify(domain)} is not a domain. Give the name alone, e.g. 'publisher.example'.`,
    );
  }
  return new URL(url).host;
}

const REVOCATION_NAMES: Readonly<Record<keyof SenderRevocation, true>> = {
  url: true,
  discover: true,
  revokedKids: true,
};

/**
 * Checks the option `revocation`, because a mistake in it would leave a revoked key in force.
 * @throws ConfigError that names `where`.
 */
export function checkRevocation(
  where: string,
  revocation: SenderRevocation | undefined,
  allowLoopback: boolean,
): void {
  if (revocation === undefined) return;
  if (typeof revocation !== 'object' || revocation === null) {
    throw new ConfigError(`${where}: must be an object like { revokedKids: ['…'] }.`);
  }
  onlyKnown(where, revocation, REVOCATION_NAMES);
  const { url, discover, revokedKids } = revocation;
  if (url !== undefined) requireUrl(`${where}.url`, url, allowLoopback);
  if (discover !== undefined && typeof discover !== 'boolean') {
    throw new ConfigError(`${where}.discover: must be true or false.`);
  }
  const strings = Array.isArray(revokedKids) && revokedKids.every((kid) => typeof kid === 'string');
  if (revokedKids !== undefined && !strings) {
    throw new ConfigError(`${where}.revokedKids: must be an array of key ids.`);
  }
}
