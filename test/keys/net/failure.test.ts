import { expect, test } from 'vitest';
import { plainFailure } from '../../../src/keys/net/connection.ts';

test.each([undefined, null, 'text', { message: 'theirs' }])(
  'what is thrown and no Error is one: %j',
  (thrown) => {
    expect(plainFailure(thrown)).toEqual(new Error('the transport failed'));
  },
);

test('codes of the runtime are said plainer, and anything else is left as it is', () => {
  const coded = (code: unknown): Error => Object.assign(new Error('as the runtime says it'), { code });
  expect(plainFailure(coded('ECONNRESET')).message).toBe(
    'the connection was closed before the whole answer had come',
  );
  expect(plainFailure(coded('ERR_TLS_CERT_ALTNAME_INVALID')).message).toBe(
    'the certificate is for another host',
  );
  for (const code of [undefined, 7, 'EOTHER', 'toString']) {
    const error = coded(code);
    expect(plainFailure(error)).toBe(error);
  }
});
