import { ED25519_CASES } from '../crypto/ed25519-cases.ts';
import { P256_CASES } from '../crypto/p256-cases.ts';
import { setup } from './setup.ts';
import { type Check, type Checks, type EngineName, envelope, type Library, same } from './kit.ts';

const URL_GIVEN = 'https://buyer.example/hook';
const ALL: readonly EngineName[] = ['native', 'webcrypto', 'noble'];

/** verification.md §3.5: every engine gives the same verdict on every input. */
const oneVerdict =
  (options: Parameters<Library['rfc9421']['createEngine']>[1]): Check =>
  async ({ rfc9421 }, { engines }) => {
    for (const name of engines) {
      const engine = await rfc9421.createEngine(name, options);
      for (const { name: about, jwk, message, signature, expected } of [...ED25519_CASES, ...P256_CASES]) {
        const key = await engine.importKey(jwk);
        const verdict = typeof key === 'string' ? 'refused' : await engine.verify(key, message, signature);
        same(verdict, expected, `${name}, ${about}:`);
      }
    }
  };

/** Also where several are on their way at once, and where the runtime has no pool. */
const anyThread: Check = async (lib) => {
  for (const verification of ['main', 'pool', 'auto'] as const) {
    const { deliver, receiver } = await setup(lib, { verification });
    const answers = await Promise.all(Array.from({ length: 20 }, () => deliver()));
    same(
      answers,
      answers.map(() => '200'),
      `${verification}:`,
    );
    await receiver.stop();
  }
};

const chosen: Check = async ({ rfc9421 }, { engines }) => {
  same((await rfc9421.createEngine()).name, engines[0]);
  for (const name of ALL) {
    const made = await rfc9421.createEngine(name).then(
      (engine) => engine.name,
      (error: unknown) => (error instanceof Error ? error.name : 'no error'),
    );
    same(made, engines.includes(name) ? name : 'ConfigError');
  }
};

const signed: Check = async ({ rfc9421, sender }, { engines }) => {
  const foreign = await sender.generateKey('ed25519');
  for (const alg of ['ed25519', 'ecdsa-p256-sha256'] as const) {
    const pair = await sender.generateKey(alg);
    const delivery = await sender.signDelivery({ url: URL_GIVEN, body: envelope(), key: pair.privateJwk });
    for (const name of engines) {
      const engine = await rfc9421.createEngine(name);
      const said = async (message: object, jwk = pair.publicJwk): Promise<string> => {
        const verdict = await rfc9421.verifySignature({ ...delivery, ...message }, jwk, { engine });
        return verdict.kind === 'verified' ? 'verified' : verdict.code;
      };
      same(await said({}), 'verified', `${name}, ${alg}:`);
      same(await said({ body: new Uint8Array(3) }), 'webhook_signature_digest_mismatch');
      same(await said({ method: 'PUT' }), 'webhook_signature_invalid');
      same((await said({}, { ...foreign.publicJwk, kid: pair.publicJwk['kid'] })) === 'verified', false);
    }
  }
};

export const ENGINE_CHECKS: Checks = {
  'the engines that the runtime has, and the fastest of them by default': chosen,
  'one verdict on every edge case of keys and signatures (verification.md §3.5)': oneVerdict({}),
  'the same verdicts where engines may use the thread pool': oneVerdict({ useThreadPool: () => true }),
  'verification on the main thread, in the pool, or as it pays: deliveries are accepted': anyThread,
  'signed messages verify, changed ones do not, under every engine': signed,
};
