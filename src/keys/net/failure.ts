const CLOSED = 'the connection was closed before the whole answer had come';

/** Said plainer than the runtime does, and in no words of the counterparty's: the names in a certificate are its own. */
const PLAIN: Readonly<Record<string, string>> = {
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  ERR_STREAM_PREMATURE_CLOSE: CLOSED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  HPE_HEADER_OVERFLOW: 'the headers are larger than 16 KiB',
};

/** A failure of the network as an `Error` whose message is fit for the owner's log. */
export function plainFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('the transport failed');
  const { code } = error as { readonly code?: unknown };
  const plain = typeof code === 'string' && Object.hasOwn(PLAIN, code) ? PLAIN[code] : undefined;
  return plain === undefined ? error : new Error(plain);
}
