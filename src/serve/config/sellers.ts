import {
  ConfigError,
  createVerifier,
  type Sender,
  type SenderSource,
  type VerifierOptions,
} from '../../index.ts';
import type { AuthInFile, ConfigInFile, SecretPlace, SellerInFile } from './definition.ts';
import type { Secrets } from './secrets.ts';
import type { Mistake, Path } from './yaml-text.ts';

/** The current secret, and the former one. */
function both(
  places: readonly SecretPlace[],
  path: Path,
  { read }: Secrets,
): readonly [string, string | undefined] {
  const [current = '', former] = places.map((place, index) => read(place, [...path, index]));
  return [current, former];
}

function authOf(auth: AuthInFile, path: Path, from: Secrets): NonNullable<Sender['auth']> {
  if ('bearer' in auth) {
    const [token, previousToken] = both(auth.bearer.tokens, [...path, 'bearer', 'tokens'], from);
    const { header } = auth.bearer;
    return {
      bearer: {
        token,
        ...(previousToken !== undefined && { previousToken }),
        ...(header !== undefined && { header }),
      },
    };
  }
  const name = 'hmac' in auth ? 'hmac' : 'reports';
  const places = 'hmac' in auth ? auth.hmac.secrets : auth.reports.secrets;
  const [secret, previousSecret] = both(places, [...path, name, 'secrets'], from);
  const pair = { secret, ...(previousSecret !== undefined && { previousSecret }) };
  return 'hmac' in auth ? { hmac: pair } : { reports: pair };
}

/** A seller as the library takes it. */
function senderOf(seller: SellerInFile, path: Path, from: Secrets): Sender {
  const { path: _, auth, notificationToken, ...rest } = seller;
  const sender: Record<string, unknown> = { ...rest };
  if (auth) sender['auth'] = authOf(auth, [...path, 'auth'], from);
  if (notificationToken) {
    const { tokens, onMismatch } = notificationToken;
    const [token, previousToken] = both(tokens, [...path, 'notificationToken', 'tokens'], from);
    sender['notificationToken'] = {
      token,
      ...(previousToken !== undefined && { previousToken }),
      ...(onMismatch !== undefined && { onMismatch }),
    };
  }
  return sender as unknown as Sender;
}

/** What the library refuses, at the member that it is about: it checks URLs, keys and credentials. */
function refusedBy(options: VerifierOptions, placeOf: (rest: string) => Path): Mistake[] {
  try {
    createVerifier(options);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [, where = '', text = error.message] = /^(\S+): (.*)$/s.exec(error.message) ?? [];
    // A URL of a message may have a password in it.
    return [{ path: placeOf(where), text: text.replaceAll(/\/\/[^/\s"']*@/g, '//…@') }];
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

const partsOf = (where: string): string[] => where.match(/[A-Za-z]+|\d+/g) ?? [];

const kindOf = ({ auth }: SellerInFile): string => (auth ? (Object.keys(auth)[0] ?? '') : 'signatures');

const PATHS = 'Let publicUrl end in /*, and give each seller its path: path: /webhooks/seller.';

/** Sellers have a path each, or none has; those of one URL prove themselves in one way. */
function togetherMistakes(sellers: readonly SellerInFile[]): Mistake[] {
  const hasPaths = sellers.some(({ path }) => path !== undefined);
  const kinds = new Map<string | undefined, string>();
  return sellers.flatMap((one, index) => {
    const at: Path = ['sellers', index];
    if (hasPaths && one.path === undefined) {
      return { path: at, text: 'has no path, and another seller has one. Give each its path, or none.' };
    }
    const first = kinds.get(one.path) ?? kindOf(one);
    kinds.set(one.path, first);
    if (first === kindOf(one)) return [];
    return {
      path: [...at, 'auth'],
      text: `another seller at the same URL has another kind of auth (${first}). ${PATHS}`,
    };
  });
}

function sourceOf(sellers: readonly SellerInFile[], senders: readonly Sender[]): SenderSource {
  if (sellers.every(({ path }) => path === undefined)) return senders;
  const byPath: Record<string, Sender[]> = Object.create(null) as Record<string, Sender[]>;
  for (const [index, { path = '' }] of sellers.entries()) {
    (byPath[path] ??= []).push(senders[index] as Sender);
  }
  return { ...byPath };
}

/** The sellers for the library, and what is wrong with them and with `publicUrl`. */
export function sellersOf(
  { publicUrl, sellers, allowLoopback }: ConfigInFile,
  from: Secrets,
): { readonly senders: SenderSource; readonly mistakes: readonly Mistake[] } {
  const given = sellers.map((one, index) => senderOf(one, ['sellers', index], from));
  const senders = sourceOf(sellers, given);
  const common = { allowLoopback, logger: SILENT };
  const sample = { publicUrl: 'https://buyer.example/', senders: [{ agentUrl: 'https://seller.example/' }] };
  const mistakes = [
    ...refusedBy({ ...sample, ...common, publicUrl }, () => ['publicUrl']),
    // A secret that is not there was told.
    ...(from.mistakes.length > 0
      ? []
      : given.flatMap((one, index) =>
          refusedBy({ ...sample, ...common, senders: [one] }, (where) => [
            'sellers',
            index,
            ...partsOf(where).slice(2),
          ]),
        )),
    ...togetherMistakes(sellers),
  ];
  const rest =
    mistakes.length + from.mistakes.length > 0
      ? []
      : refusedBy({ ...common, publicUrl, senders }, (where) => placeByPath(where, sellers));
  return { senders, mistakes: [...mistakes, ...rest] };
}

/** `senders["/webhooks/a"]` is about the sellers with that path. */
function placeByPath(where: string, sellers: readonly SellerInFile[]): Path {
  if (where === 'publicUrl') return ['publicUrl'];
  const index = sellers.findIndex(({ path }) => path !== undefined && where.includes(JSON.stringify(path)));
  return index === -1 ? ['sellers'] : ['sellers', index, 'path'];
}
