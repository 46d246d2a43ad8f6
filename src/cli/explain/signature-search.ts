import { signatureBase } from '../../auth/rfc9421/signature-base.ts';
import { canonicalOrUndefined } from '../../config/public-url.ts';
import type { Budget } from './budget.ts';
import type { Finding } from './finding.ts';
import { otherTrials, rawTrials, type Scene, type Trial } from './signature-trials.ts';
import { combinations, urlAxes } from './url-axes.ts';

/** What the receiver itself says of such a URL: verification.md §2.34. */
const FOUND_BY_RECEIVER =
  'Until a delivery of this sender has verified, the receiver says so itself: 503 misconfigured, alarm public_url_mismatch.';
const FOUND_HERE_ALONE = 'The receiver cannot find this by itself: it answers 401.';

const asIs = (base: string): string => base;

/** Bounds the search: about two seconds of Ed25519 on a slow machine. */
const MOST_TRIALS = 8_000;
/** What a trial costs, in bytes hashed: for itself, and for each character of its URL and base. */
const TRIAL_COST = 1_024;
const CHAR_COST = 8;
/** Of the URL, at once: a proxy that ends TLS, renames the host and cuts a prefix. */
const MOST_URL_CHANGES = 3;

async function verifies(
  { method, components, params, engine }: Scene,
  trial: Trial,
  budget: Budget,
): Promise<boolean> {
  const facts = { method, target: trial.target, headers: trial.headers };
  const base = signatureBase(components, facts, params);
  if (base === undefined || !budget.take(CHAR_COST * base.length)) return false;
  return engine.verify(trial.key.key, new TextEncoder().encode(trial.edit(base)), trial.signature);
}

function* urlTrials(scene: Scene, plain: Trial, budget: Budget): Generator<Trial> {
  for (const choices of combinations(urlAxes(scene.evidence), MOST_URL_CHANGES)) {
    const [scheme, authority, path, query] = choices.map(({ text }) => text);
    const length = choices.reduce((sum, { text }) => sum + text.length, 0);
    if (!budget.take(TRIAL_COST + CHAR_COST * length)) return;
    const target = canonicalOrUndefined(`${scheme}://${authority}${path}${query}`);
    const known = target && scene.tried.has(target.targetUri) ? FOUND_BY_RECEIVER : FOUND_HERE_ALONE;
    const mended =
      scene.target.targetUri.startsWith('https:') && scheme === 'http'
        ? `publicUrl has to be https: no receiver has ${target?.targetUri}. Give the seller the https URL.`
        : `Set publicUrl to exactly the URL that the seller was given: '${target?.targetUri}'. Behind a router that cuts the path, with a publicUrl that ends in /*, pass the whole one (Express: req.originalUrl).`;
    const fix = `${mended} ${known}`;
    const changes = choices.flatMap(({ change }) => (change ? [{ ...change, fix }] : []));
    if (target && changes.length > 0) yield { ...plain, target, changes };
  }
}

function* trials(scene: Scene, budget: Budget): Generator<Trial> {
  const named = scene.keys.find(({ kid }) => kid === scene.keyid);
  const [key = scene.keys[0]] = [named];
  if (!key) return;
  const { target, headers, signature } = scene;
  const plain: Trial = { target, headers, signature, key, edit: asIs, changes: [] };
  yield* otherTrials(scene, plain);
  yield* urlTrials(scene, plain, budget);
  yield* rawTrials(scene, plain);
}

/**
 * Tries the usual slips until one of them, or a combination of those in a URL, makes the signature verify.
 * @returns what it was, or undefined.
 */
export async function searchSignature(
  scene: Scene,
  step: string,
  budget: Budget,
): Promise<readonly Finding[] | undefined> {
  let left = MOST_TRIALS;
  for (const trial of trials(scene, budget)) {
    if (left-- <= 0) return undefined;
    if (await verifies(scene, trial, budget)) {
      return trial.changes.map((change) => ({ step, proved: true, fix: '', ...change }));
    }
  }
  return undefined;
}
