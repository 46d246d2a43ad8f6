// Requests the capabilities of sellers (`get_adcp_capabilities`) about once a day, and stores the answers
// (verification.md §5.29). Registrations and the poller make the requests. Key lookup, the choice of the protocol
// version (edition) and moves of URLs use the stored answers.
import { putBounded } from '../shared/bounded.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { requireBounded } from '../calls/bounds.ts';
import type { Hashes } from '../crypto/engine.ts';
import { agentData, stateOf } from '../events/agent-data.ts';
import {
  type Declared,
  declaredIn,
  declaredRow,
  type DeclaredRow,
  surfacesIn,
} from '../keys/declarations.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import { unwrapped } from './answer.ts';
import type { AskedSeller, CallSeller } from './call-seller.ts';

/** Requests the capabilities of sellers, and stores the answers (verification.md §5.29). */
export interface Capabilities {
  /**
   * Requests a seller's capabilities if that is due and the seller lists the operation `get_adcp_capabilities`. The
   * promise never rejects.
   */
  readonly ask: (of: AskedSeller, signal: AbortSignal) => Promise<void>;
  /** Returns the latest capabilities that the seller declared; an empty object if there are none. */
  readonly of: (agentUrl: string) => Promise<Declared>;
}

/** The property of registrations by which a poller and a reconciler get `Capabilities`. */
export const CAPABILITIES: unique symbol = Symbol.for('proto-webhooks.capabilities') as never;

export interface WithCapabilities {
  readonly [CAPABILITIES]: Capabilities;
}

interface CapabilitiesOptions {
  /** The option `call`, which calls sellers. Undefined: no capabilities are requested. */
  readonly call: CallSeller | undefined;
  readonly rows: StoreRegistrations;
  readonly hashes: Pick<Hashes, 'sha256Hex'>;
  /** Milliseconds of any clock that does not go back. */
  readonly now: () => number;
  /** The time limit for all requests about one seller's capabilities together, ms. */
  readonly limitMs: number;
}

const OPERATION = 'get_adcp_capabilities';
const DAY_MS = 86_400_000;
/** The pause after a request that got no answer, for all processes. Ms. */
const HOUR_MS = 3_600_000;
/** The largest number of sellers for which this process remembers when to read the store again. */
const MAX_SELLERS = 10_000;

export function capabilitiesOf({ call, rows, hashes, now, limitMs }: CapabilitiesOptions): Capabilities {
  // For each seller, the time on this process's clock until which the store is not read again.
  const lookAt = new Map<string, number>();

  const claim = (agentUrl: string): Promise<boolean> =>
    rows.run('', (step, at) => {
      const row = declaredIn(step, hashes, agentUrl);
      // `askAt` is at most a day ahead. A later time was written by a wrong clock, and must not delay the request for
      // long.
      if (row && row.askAt > at && row.askAt <= at + DAY_MS) return false;
      step.save(declaredRow(hashes, agentUrl, { ...row, askAt: at + HOUR_MS }, at));
      return true;
    });
  const keep = (agentUrl: string, found: Declared | undefined): Promise<void> =>
    rows.run('', (step, at) => {
      const { askAt: _before, ...known }: DeclaredRow = declaredIn(step, hashes, agentUrl) ?? { askAt: 0 };
      step.save(declaredRow(hashes, agentUrl, { ...(found ?? known), askAt: at + DAY_MS }, at));
    });
  const question = async (call: CallSeller, of: AskedSeller, signal: AbortSignal) => {
    const { agentUrl, ref, sessions } = of;
    const how = { signal, ...(ref !== undefined && { ref }), ...(sessions && { sessions }) };
    const names = await (of.names?.() ?? call.operations?.(agentUrl, how));
    if (names?.includes(OPERATION) !== true) return undefined;
    const answer = await call(agentUrl, OPERATION, {}, how);
    requireBounded(answer);
    return declaredBy(answer);
  };

  return {
    ask: async (seller, signal) => {
      const { agentUrl } = seller;
      if (signal.aborted || !call?.operations || (lookAt.get(agentUrl) ?? 0) > now()) return;
      putBounded(lookAt, agentUrl, now() + HOUR_MS, MAX_SELLERS);
      try {
        if (!(await claim(agentUrl))) return;
        const limit = {
          ms: limitMs,
          reason: `the seller did not declare its capabilities within ${limitMs} ms`,
        };
        const found = await limited(limit, signal, (within) =>
          orAborted(question(call, seller, within), within),
        );
        await keep(agentUrl, found);
      } catch {
        // The error is ignored, because the call that led to this request meets and reports the same fault. The seller
        // is asked again in an hour.
      }
    },
    of: async (agentUrl) => {
      const row = await rows.run('', (step) => declaredIn(step, hashes, agentUrl));
      return row ?? {};
    },
  };
}

const MAX_URL = 2_048;
/** The largest number of entries of `supported_versions` that are read. */
const MAX_VERSIONS = 100;

/** Returns the capabilities in an answer, i.e. an object with the member `adcp`; undefined if there are none. */
export const capabilitiesIn = (answer: unknown): JsonObject | undefined =>
  bodiesOf(answer).find(({ adcp }) => isJsonObject(adcp));

/**
 * Returns the facts that a seller declares in an answer. Undefined if the answer has no capabilities, e.g. for an error
 * or a task.
 */
export function declaredBy(answer: unknown): Declared | undefined {
  const body = capabilitiesIn(answer);
  if (body === undefined) return undefined;
  const { adcp, identity, adcp_version: version, media_buy: mediaBuy, webhook_signing: signing } = body;
  const { brand_json_url: url, key_origins: origins } = isJsonObject(identity) ? identity : {};
  const brandJsonUrl = httpsUrl(url);
  const origin = httpsUrl(isJsonObject(origins) ? origins['webhook_signing'] : undefined);
  const surfaces = isJsonObject(mediaBuy) ? surfacesIn(mediaBuy['propagation_surfaces']) : undefined;
  const edition = editionOf(version, (adcp as JsonObject)['supported_versions']);
  const horizonMs = horizonIn(signing);
  return {
    ...(brandJsonUrl !== undefined && { brandJsonUrl }),
    ...(origin !== undefined && { keyOrigin: new URL(origin).origin }),
    ...(edition !== undefined && { edition }),
    ...(horizonMs !== undefined && { horizonMs }),
    ...(surfaces && { surfaces }),
  };
}

/** The protocol's limits for `delivery_retry_horizon_seconds`: one day and seven days. Seconds. */
const LEAST_HORIZON = 86_400;
const MOST_HORIZON = 604_800;

/**
 * Returns the time for which a seller retries a delivery, raised or cut to the protocol's limits. Undefined if the
 * seller declares none. Ms.
 */
function horizonIn(signing: unknown): number | undefined {
  const seconds = isJsonObject(signing) ? signing['delivery_retry_horizon_seconds'] : undefined;
  if (typeof seconds !== 'number' || !(seconds > 0)) return undefined;
  return Math.ceil(Math.min(Math.max(seconds, LEAST_HORIZON), MOST_HORIZON) * 1000);
}

/**
 * Returns the objects in an answer that may be the capabilities: the answer itself, its `result`, or the data of a
 * Task.
 */
function bodiesOf(answer: unknown): readonly JsonObject[] {
  const outer = unwrapped(answer);
  const layers = isJsonObject(outer) ? [outer, outer['result'], outer['task']] : [];
  const more = layers.map((layer) => (isJsonObject(layer) ? layer['task'] : undefined));
  return [...layers, ...more].filter(isJsonObject).flatMap((layer) => {
    if (stateOf(layer['status']) === undefined) return [layer];
    const { data } = agentData({ form: 'task', body: layer });
    return isJsonObject(data) ? [data, data['result']].filter(isJsonObject) : [];
  });
}

/**
 * Returns a URL as `new URL` writes it. Undefined if it is no web address, has credentials or is too long. Code that
 * fetches the URL refuses http, except for development.
 */
function httpsUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_URL || !URL.canParse(value)) return undefined;
  const { protocol, href, username, password } = new URL(value);
  const isWeb = protocol === 'https:' || protocol === 'http:';
  return isWeb && username === '' && password === '' && href.length <= MAX_URL ? href : undefined;
}

/** A release of the protocol, e.g. `3.1` or `3.1.2`; a candidate for a release does not match. */
const RELEASE = /^(\d{1,4})\.(\d{1,4})(?:\.\d{1,6})?$/;

/**
 * Returns the protocol version that an answer names. If it names none, returns the oldest version that the seller
 * supports, because its rules fit the newer versions too.
 */
function editionOf(version: unknown, supported: unknown): string | undefined {
  const said = releaseIn(version);
  if (said !== undefined || version !== undefined) return said;
  const versions: readonly unknown[] = Array.isArray(supported) ? supported.slice(0, MAX_VERSIONS) : [];
  const releases = versions.map(releaseIn).filter((one) => one !== undefined);
  return releases.sort((a, b) => rankOf(a) - rankOf(b))[0];
}

const rankOf = (edition: string): number => {
  const [major = 0, minor = 0] = edition.split('.').map(Number);
  return major * 10_000 + minor;
};

function releaseIn(version: unknown): string | undefined {
  const [, major, minor] = RELEASE.exec(typeof version === 'string' ? version : '') ?? [];
  return major === undefined ? undefined : `${Number(major)}.${Number(minor)}`;
}
