import { createCipheriv, createDecipheriv } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RegistrationError } from '../../src/registrations/index.ts';
import { seal, type SealedPlace, secretIdOf, secretsOf, unseal } from '../../src/registrations/for-tests.ts';
import { counted, FOREIGN, hashes, hkdf, idOf, NEWEST, OLDER } from './kit.ts';

const secrets = secretsOf([NEWEST, OLDER], hashes);
const before = secretsOf([OLDER], hashes);

const PLACE: SealedPlace = { purpose: 'arguments', sender: 'https://seller.example/mcp', id: 'operation-1' };
const BOUND = Buffer.from('["arguments","https://seller.example/mcp","operation-1"]');
const TEXT = '{"budget":1000,"name":"Frühling 🌱"}';

async function codeOf(reading: Promise<unknown>): Promise<string> {
  const error = await reading.then(
    () => expect.fail('it was read'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RegistrationError);
  expect((error as Error).message).not.toContain('budget');
  return (error as RegistrationError).code;
}

describe('what is kept encrypted', () => {
  it("is AES-256-GCM under the purpose's key, bound to its row: node:crypto reads it", async () => {
    const bytes = Buffer.from(await seal(secrets, PLACE, TEXT, counted()), 'base64url');
    expect(bytes.subarray(0, 4)).toEqual(idOf(NEWEST));
    expect(bytes.subarray(4, 16)).toEqual(Buffer.from('000102030405060708090a0b', 'hex'));
    const open = createDecipheriv('aes-256-gcm', hkdf(NEWEST, 'arguments'), bytes.subarray(4, 16));
    open.setAAD(BOUND).setAuthTag(bytes.subarray(-16));
    expect(Buffer.concat([open.update(bytes.subarray(16, -16)), open.final()]).toString()).toBe(TEXT);
  });

  it('is read as node:crypto wrote it', async () => {
    const nonce = Buffer.alloc(12, 7);
    const cipher = createCipheriv('aes-256-gcm', hkdf(OLDER, 'arguments'), nonce).setAAD(BOUND);
    const sealed = Buffer.concat([
      idOf(OLDER),
      nonce,
      cipher.update(TEXT),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    expect(await unseal(secrets, PLACE, sealed.toString('base64url'))).toBe(TEXT);
  });

  it.each(['', 'x', TEXT, 'x'.repeat(256 * 1024)])('is what it was (%#)', async (text) => {
    expect(await unseal(secrets, PLACE, await seal(secrets, PLACE, text, counted()))).toBe(text);
  });

  it('is read under an older secret, and names it', async () => {
    const sealed = await seal(before, PLACE, TEXT, counted());
    expect(secretIdOf(sealed)).toBe(before.newest.id);
    expect(await unseal(secrets, PLACE, sealed)).toBe(TEXT);
  });

  it('without its secret is `secret_missing`', async () => {
    const sealed = await seal(secrets, PLACE, TEXT, counted());
    expect(await codeOf(unseal(before, PLACE, sealed))).toBe('secret_missing');
    expect(await codeOf(unseal(secretsOf([FOREIGN], hashes), PLACE, sealed))).toBe('secret_missing');
  });

  it.each([
    { purpose: 'credentials' },
    { sender: 'https://other.example/mcp' },
    { id: 'operation-2' },
    // The parts of a place do not run into each other.
    { sender: 'https://seller.example/mcp","operation-1', id: '' },
  ] as const)('in the place of another (%j) is `sealed_text_invalid`', async (other) => {
    const sealed = await seal(secrets, PLACE, TEXT, counted());
    expect(await codeOf(unseal(secrets, { ...PLACE, ...other }, sealed))).toBe('sealed_text_invalid');
  });

  it('with any byte behind the id of its secret changed is `sealed_text_invalid`', async () => {
    const bytes = Buffer.from(await seal(secrets, PLACE, 'text', counted()), 'base64url');
    for (let at = 4; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 0x80;
      expect(await codeOf(unseal(secrets, PLACE, changed.toString('base64url')))).toBe('sealed_text_invalid');
    }
  });

  it('cut, or no base64, is `sealed_text_invalid`', async () => {
    const sealed = await seal(secrets, PLACE, TEXT, counted());
    for (const cut of [sealed.slice(0, 40), sealed.slice(0, -4), '', '%', 'AAAA']) {
      expect(await codeOf(unseal(secrets, PLACE, cut)), cut).toBe('sealed_text_invalid');
    }
    expect(secretIdOf('AAAA')).toBeUndefined();
    expect(secretIdOf('%')).toBeUndefined();
  });

  it('is another text each time', async () => {
    const random = counted();
    expect(await seal(secrets, PLACE, TEXT, random)).not.toBe(await seal(secrets, PLACE, TEXT, random));
  });
});
