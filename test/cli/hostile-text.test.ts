import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type CliProcess, main } from '../../src/cli/run.ts';
import { createFakeSeller } from '../../src/testing/fake-seller.ts';
import { HOSTILE, everywhere, MARK } from '../support/hostile-text.ts';
import { BODY, captured, keys, NOW, signed, text } from './explain/captures.ts';
import { tempFolder } from './temp-folder.ts';

/*
 * Hostile text in every place of what the command line reads of others. It prints lines of its own: none of them may be begun by
 * such a text, and none has a character that a terminal acts on.
 */

const ACTED_ON =
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]/u;

/** Lines of a text that is printed: one is at most what a message may have, and what is ours around it. */
const MOST = 9_000;

async function printed(args: readonly string[], cwd: string): Promise<string> {
  let all = '';
  const stream = { isTTY: false, write: (text: string) => ((all += text), true) };
  const { env, stdin } = process;
  await main(args, { env, stdin, cwd: () => cwd, stdout: stream, stderr: stream } as unknown as CliProcess);
  const lines = all.split('\n');
  const wrong = lines.filter(
    (line) => ACTED_ON.test(line) || line.length > MOST || /^\W*pass {2}step forged/.test(line),
  );
  expect(wrong.map((line) => JSON.stringify(line.slice(0, 300)))).toEqual([]);
  return all;
}

async function har(): Promise<object> {
  const { method, url, headers, body } = await signed();
  return {
    startedDateTime: new Date(NOW).toISOString(),
    request: {
      method,
      url,
      headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
      postData: { mimeType: 'application/json', text: text(body) },
    },
  };
}

async function vector(): Promise<object> {
  const { headers, body, url } = await signed();
  return {
    name: 'n',
    reference_now: NOW / 1000,
    request: { method: 'POST', url, headers, body: text(body) },
    jwks_ref: ['first'],
    expected_outcome: { success: true },
  };
}

it.each([
  ['a HAR entry', har, ['explain']],
  ['a vector', vector, ['explain']],
  ['a vector that is run', vector, ['vectors', 'run']],
] as const)('%s: what is printed of it is lines of ours', async (_, make, verb) => {
  using folder = tempFolder();
  const { ed25519 } = await keys();
  writeFileSync(folder.file('keys.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
  let marked = 0;
  for (const json of everywhere(await make())) {
    writeFileSync(folder.file('it.json'), JSON.stringify(json));
    const more = verb[0] === 'explain' ? ['--keys', 'keys.json'] : [];
    const all = await printed([...verb, 'it.json', ...more], folder.path);
    if (all.includes(MARK)) marked += 1;
  }
  expect(marked).toBeGreaterThan(0);
});

it('a body and its members, and a curl command', async () => {
  using folder = tempFolder();
  const { ed25519 } = await keys();
  writeFileSync(folder.file('keys.json'), JSON.stringify({ keys: [ed25519.publicJwk] }));
  for (const [at, json] of everywhere(JSON.parse(BODY)).entries()) {
    const delivery = captured(await signed({ body: JSON.stringify(json) }));
    const lines = delivery.headers.map(([name, value]) => `-H '${name}: ${value}'`).join(' ');
    const body = text(delivery.body).replaceAll("'", String.raw`'\''`);
    writeFileSync(
      folder.file('it.sh'),
      `curl -X '${at === 0 ? HOSTILE : 'POST'}' https://buyer.example${delivery.target} ${lines} --data-raw '${body}'`,
    );
    await printed(['explain', 'it.sh', '--keys', 'keys.json'], folder.path);
  }
});

it('a seller’s documents', async () => {
  using folder = tempFolder();
  await using seller = await createFakeSeller();
  let marked = 0;
  for (const path of ['/.well-known/brand.json', '/.well-known/jwks.json']) {
    const published = seller.documents.get(path);
    const given: unknown = typeof published === 'function' ? await (published as () => unknown)() : published;
    for (const document of everywhere(given)) {
      seller.documents.set(path, document);
      const all = await printed(['keys', 'check', seller.agentUrl, '--allow-loopback'], folder.path);
      if (all.includes(MARK)) marked += 1;
    }
    seller.documents.set(path, published);
  }
  expect(marked).toBeGreaterThan(0);
});
