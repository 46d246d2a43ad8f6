import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { httpText } from '../../../src/cli/for-tests.ts';
import { type SignedDelivery, signHmac } from '../../../src/sender/sign.ts';
import { createFakeSeller, samplePayloads } from '../../../src/testing/index.ts';
import { tempFolder } from '../temp-folder.ts';
import { keys, NOW, signed, URL_GIVEN } from './captures.ts';
import { explainHere } from './run-here.ts';

describe('explain: the time of receipt', () => {
  async function checkFive(now: number, delivery = signed(), more: readonly string[] = []) {
    using folder = tempFolder();
    const { ed25519 } = await keys();
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
    const args = ['-', '--keys', folder.file('jwks.json'), '--url', URL_GIVEN, ...more];
    const ended = await explainHere(args, httpText(await delivery), () => now);
    if (ended.code === 2) throw new Error(ended.message);
    const { steps, findings } = ended.explanation;
    const verdict = steps.find(({ id }) => id === '5')?.verdict;
    return { code: ended.code, verdict, causes: findings.map(({ cause }) => cause), text: ended.text };
  }

  it('leaves check 5 open for a delivery that has expired by now, and does the others', async () => {
    const ended = await checkFive(NOW + 86_400_000);
    expect(ended).toMatchObject({ code: 0, verdict: 'open', causes: [] });
    expect(ended.text).toContain('unless it has received it before, it came before it expired, and its key');
  });

  it('checks it by --received-at, and by the current time when it has not expired', async () => {
    const told = ['--received-at', new Date(NOW).toISOString()];
    expect(await checkFive(NOW + 86_400_000, signed(), told)).toMatchObject({ code: 0, verdict: 'pass' });
    expect(await checkFive(NOW + 30_000)).toMatchObject({ code: 0, verdict: 'pass' });
    const ahead = signed({ now: () => NOW + 7_200_000 });
    expect(await checkFive(NOW, ahead)).toMatchObject({ code: 1, verdict: 'fail', causes: ['clock-zone'] });
  });

  it('says no figure for a clock where the moment of receipt is not known', async () => {
    const ahead = signed({ now: () => NOW + 600_000 });
    const late = await checkFive(NOW + 149_000, ahead);
    expect(late).toMatchObject({ code: 1, verdict: 'fail', causes: ['clock-off'] });
    expect(late.text).toContain(
      "created is still 451 s ahead of this machine's clock: at the moment of receipt",
    );
    expect(late.text).toContain('--received-at');
    const told = await checkFive(NOW + 149_000, ahead, ['--received-at', new Date(NOW).toISOString()]);
    expect(told.text).toContain('created is 600 s ahead of the moment of receipt');
  });

  it('takes http for a capture of this machine, and https for any other', async () => {
    const url = 'http://127.0.0.1:3000/webhooks/proto';
    using folder = tempFolder();
    const { ed25519 } = await keys();
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
    const made = await signed({ url });
    const capture = httpText(made);
    const verdict = async (text: string): Promise<unknown> => {
      const ended = await explainHere(['-', '--keys', folder.file('jwks.json')], text, () => NOW);
      return ended.code === 2 ? ended.message : ended.explanation.findings.map(({ cause }) => cause);
    };
    expect(capture).toContain('Host: 127.0.0.1:3000');
    expect(await verdict(capture)).toEqual([]);
    expect(await verdict(capture.replace('Host: 127.0.0.1:3000', 'Host: 127.0.0.1.example'))).not.toEqual([]);
  });

  it('fails a delivery that is wrong at any time, also an expired one', async () => {
    const tooLong = signed({ lifetimeMs: 3_600_000 });
    expect(await checkFive(NOW + 86_400_000, tooLong)).toMatchObject({
      code: 1,
      verdict: 'fail',
      causes: ['validity-too-long'],
    });
    const inMs = signed({ params: { created: NOW, expires: NOW + 300_000 } });
    expect(await checkFive(NOW + 86_400_000, inMs)).toMatchObject({
      verdict: 'fail',
      causes: ['clock-milliseconds'],
    });
  });
});

describe('explain --dir', () => {
  it("fetches the agent's documents once, not once a file", async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    using folder = tempFolder();
    const payload = seller.payloads.tool('completed');
    for (const name of ['a.http', 'b.http', 'c.http']) {
      writeFileSync(folder.file(name), httpText(await seller.sign(payload)));
    }
    const url = URL_GIVEN.replace('https:', 'http:');
    const args = ['--dir', folder.path, '--agent-url', seller.agentUrl, '--allow-loopback', '--url', url];
    const ended = await explainHere(args);
    expect(ended).toMatchObject({
      code: 1,
      explanation: { captures: 3, causes: [{ cause: 'scheme', files: { length: 3 } }] },
    });
    expect(seller.fetches('/.well-known/jwks.json')).toBe(1);
    expect(seller.fetches('/.well-known/brand.json')).toBe(1);
  });
});

describe('explain: the file that a curl command names', () => {
  const SECRET = 'what-no-capture-may-read';

  /** A capture in a folder of its own, beside which there is what it must not read. */
  async function named(name: string, from: 'file' | 'stdin' = 'file') {
    using folder = tempFolder();
    mkdirSync(folder.file('captures/sub'), { recursive: true });
    writeFileSync(folder.file('outside'), SECRET);
    writeFileSync(folder.file('captures/body.json'), '{}');
    writeFileSync(folder.file('captures/sub/body.json'), '{}');
    symlinkSync(folder.file('outside'), folder.file('captures/link'));
    symlinkSync(folder.path, folder.file('captures/folder'));
    const command = `curl ${URL_GIVEN} -H 'Content-Type: application/json' --data-binary @${name.replace('<here>', folder.path)}`;
    writeFileSync(folder.file('captures/a.sh'), command);
    const { ed25519 } = await keys();
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
    const capture = from === 'stdin' ? '-' : relative(process.cwd(), folder.file('captures/a.sh'));
    const ended = await explainHere([capture, '--keys', folder.file('jwks.json')], command);
    expect(JSON.stringify(ended)).not.toContain(SECRET);
    return ended.code === 2 ? ended.message : ended.text;
  }

  it.each(['body.json', './body.json', 'sub/body.json', 'sub/../body.json'])('%s is read', async (name) => {
    expect(await named(name)).toContain('2 bytes, captured as curl command');
  });

  it.each([
    ['../outside', 'not below'],
    ['sub/../../outside', 'not below'],
    ['<here>/outside', 'not below'],
    ['<here>/captures/body.json', 'not below'],
    ['/dev/stdin', 'not below'],
    ['-', 'not below'],
    ['link', 'a link leads to it'],
    ['folder/outside', 'a link leads to it'],
    ['sub', 'not a regular file'],
    ['nowhere', 'does not exist'],
  ])('%s is not, and the message says how to inline it', async (name, why) => {
    const message = await named(name);
    expect(message).toContain(why);
    expect(message).toMatch(/Put the body into the command, as --data-raw/);
  });

  it('none is, of a capture on standard input', async () => {
    expect(await named('body.json', 'stdin')).toMatch(/standard input has no folder.*--data-raw/);
  });
});

describe('explain: a seller that signs, and whose reports may come by HMAC', () => {
  const secret = 'a-secret-for-reports-of-32-characters';
  const payloads = samplePayloads({ now: () => NOW });
  const byHmac = (body: object, made = secret) =>
    signHmac({ url: URL_GIVEN, body, secret: made, now: () => NOW });

  async function explain(delivery: SignedDelivery, { withKeys = true, more = [] as readonly string[] } = {}) {
    using folder = tempFolder();
    const { ed25519 } = await keys();
    writeFileSync(folder.file('jwks.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
    writeFileSync(folder.file('secret'), `${secret}\n`);
    const args = ['-', '--url', URL_GIVEN, '--reports-secret-file', folder.file('secret'), ...more];
    const ownKeys = withKeys ? ['--keys', folder.file('jwks.json')] : [];
    const ended = await explainHere([...args, ...ownKeys], httpText(delivery), () => NOW);
    if (ended.code === 2) return ended.message;
    const failed = ended.explanation.steps.filter(({ verdict }) => verdict === 'fail');
    return [ended.code, ...failed.map(({ id, code }) => `${id} ${code}`)];
  }

  it('is judged by the fields, and by HMAC as a report alone', async () => {
    expect(await explain(byHmac(payloads.report()))).toEqual([0]);
    expect(await explain(byHmac(payloads.report()), { withKeys: false })).toEqual([0]);
    expect(await explain(await signed())).toEqual([0]);
    expect(await explain(byHmac(payloads.tool('completed')))).toEqual([1, 'report webhook_mode_mismatch']);
    expect(await explain(byHmac(payloads.report(), `${secret}x`))).toEqual([
      1,
      'hmac webhook_signature_invalid',
    ]);
    const both = await signed();
    const stray = { ...both, headers: { ...both.headers, 'X-PROTO-Signature': 'sha256=0' } };
    expect(await explain(stray)).toEqual([1, 'mode webhook_mode_mismatch']);
  });

  it('wants keys for what is signed, and no other secret beside it', async () => {
    expect(await explain(await signed(), { withKeys: false })).toContain('no key to verify with');
    using folder = tempFolder();
    writeFileSync(folder.file('other'), secret);
    const more = ['--hmac-secret-file', folder.file('other')];
    expect(await explain(byHmac(payloads.report()), { more })).toContain('Give one of them.');
  });
});
