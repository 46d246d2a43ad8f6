// Turns the sellers of the configuration file into the library's senders, and lets the library check them.
// `read-config.ts` calls it.
import { createVerifier, type Sender, type SendersByPath, type SenderSource } from '../../index.ts';
import type { AuthInFile, ConfigInFile, SecretPlace, SellerInFile } from './file-types.ts';
import type { Findings } from './findings.ts';
import type { Path } from './yaml-text.ts';

/**
 * Returns the secrets at these places: the current one, and the former one (undefined if only one place is given). A
 * secret that cannot be read is returned as '', and `secret` reports it.
 */
function both(
  places: readonly SecretPlace[],
  path: Path,
  { secret }: Findings,
): readonly [string, string | undefined] {
  const [current = '', former] = places.map((place, index) => secret(place, [...path, index]) ?? '');
  return [current, former];
}

function authOf(auth: AuthInFile, path: Path, found: Findings): NonNullable<Sender['auth']> {
  if ('bearer' in auth) {
    const [token, previousToken] = both(auth.bearer.tokens, [...path, 'bearer', 'tokens'], found);
    const { header } = auth.bearer;
    return {
      bearer: { token, ...(previousToken !== undefined && { previousToken }), ...(header && { header }) },
    };
  }
  const [name, { secrets }] =
    'hmac' in auth ? (['hmac', auth.hmac] as const) : (['reports', auth.reports] as const);
  const [secret, previousSecret] = both(secrets, [...path, name, 'secrets'], found);
  const pair = { secret, ...(previousSecret !== undefined && { previousSecret }) };
  return name === 'hmac' ? { hmac: pair } : { reports: pair };
}

/** Returns a seller of the configuration file as a `Sender` of the library. */
function senderOf(seller: SellerInFile, path: Path, found: Findings): Sender {
  const { path: _, auth, notificationToken, ...rest } = seller;
  const sender: Record<string, unknown> = { ...rest };
  if (auth) sender['auth'] = authOf(auth, [...path, 'auth'], found);
  if (notificationToken) {
    const { tokens, onMismatch } = notificationToken;
    const [token, previousToken] = both(tokens, [...path, 'notificationToken', 'tokens'], found);
    sender['notificationToken'] = {
      token,
      ...(previousToken !== undefined && { previousToken }),
      ...(onMismatch && { onMismatch }),
    };
  }
  // The type is not checked here, because the library checks the sender later, and more strictly than the definition of
  // the file does.
  return sender as unknown as Sender;
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

const kindOf = ({ auth }: SellerInFile): string => (auth ? (Object.keys(auth)[0] ?? '') : 'signatures');

/**
 * Checks sellers together: either all have a path, or none has one. Sellers at the same URL must authenticate in the
 * same way.
 */
function checkTogether(sellers: readonly SellerInFile[], { wrong }: Findings): void {
  const hasPaths = sellers.some(({ path }) => path !== undefined);
  const kinds = new Map<string | undefined, string>();
  for (const [index, one] of sellers.entries()) {
    const kind = kinds.get(one.path) ?? kindOf(one);
    kinds.set(one.path, kind);
    if (hasPaths && one.path === undefined) {
      wrong(['sellers', index], 'has no path, and another seller has one. Write path: /… here too.');
    } else if (kind !== kindOf(one)) {
      wrong(
        ['sellers', index, 'auth'],
        `another seller of the same URL has another kind of auth (${kind}). Let publicUrl end in /*, and write a path for each seller: path: /webhooks/seller.`,
      );
    }
  }
}

function sourceOf(sellers: readonly SellerInFile[], senders: readonly Sender[]): SenderSource {
  if (sellers.every(({ path }) => path === undefined)) return senders;
  return Object.groupBy(senders, (_, index) => sellers[index]?.path ?? '') as SendersByPath;
}

/**
 * Returns the path in the file for an error message of the library. `senders["/webhooks/a"]` is about the sellers with
 * that path.
 */
function placeByPath(name: string, sellers: readonly SellerInFile[]): Path {
  if (name === 'publicUrl') return ['publicUrl'];
  const index = sellers.findIndex(({ path }) => path !== undefined && name.includes(JSON.stringify(path)));
  return index === -1 ? ['sellers'] : ['sellers', index, 'path'];
}

/** Returns the parts behind the index in a name of the library, e.g. `auth` and `hmac` for `senders[0].auth.hmac`. */
const partsOf = (name: string): string[] => name.match(/[A-Za-z]+|\d+/g)?.slice(2) ?? [];

const SAMPLE = { publicUrl: 'https://buyer.example/', senders: [{ agentUrl: 'https://seller.example/' }] };

/**
 * Returns the sellers as senders of the library, which checks URLs, keys and credentials.
 * @param isWhole true if the file has no other mistake, so that all sellers are complete.
 */
export function sellersOf(
  { publicUrl, sellers, allowLoopback }: Pick<ConfigInFile, 'publicUrl' | 'sellers' | 'allowLoopback'>,
  isWhole: boolean,
  found: Findings,
): SenderSource {
  const common = { ...SAMPLE, allowLoopback, logger: SILENT };
  found.refusedBy(
    () => createVerifier({ ...common, publicUrl }),
    () => ['publicUrl'],
  );
  const given = sellers.map((one, index) => {
    const before = found.mistakes.length;
    const sender = senderOf(one, ['sellers', index], found);
    if (found.mistakes.length > before) return sender;
    found.refusedBy(
      () => createVerifier({ ...common, senders: [sender] }),
      (name) => ['sellers', index, ...partsOf(name)],
    );
    return sender;
  });
  if (isWhole) checkTogether(sellers, found);
  const senders = sourceOf(sellers, given);
  if (isWhole && found.mistakes.length === 0) {
    found.refusedBy(
      () => createVerifier({ ...common, publicUrl, senders }),
      (name) => placeByPath(name, sellers),
    );
  }
  return senders;
}
