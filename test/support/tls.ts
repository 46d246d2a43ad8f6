import './reflect-metadata.ts';
import type { webcrypto } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import * as x509 from '@peculiar/x509';
import { onTestFinished } from 'vitest';

const KEY = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;

/** What a server proves itself with, PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

export interface IssueOptions {
  /** It ran out yesterday. */
  readonly expired?: boolean;
  /** By its own key and not the authority's. */
  readonly selfSigned?: boolean;
}

/** A certificate authority that nobody trusts but who is given its `pem`. */
export interface TestCa {
  readonly pem: string;
  /** A certificate for these host names and addresses. */
  readonly issue: (hosts: readonly string[], options?: IssueOptions) => Promise<Identity>;
}

export async function createTestCa(): Promise<TestCa> {
  const keys = await generateKeys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test authority',
    ...validity(),
    keys,
    signingAlgorithm: KEY,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  return {
    pem: root.toString('pem'),
    issue: async (hosts, options = {}) => {
      const own = await generateKeys();
      const cert = await x509.X509CertificateGenerator.create({
        subject: 'CN=Test server',
        issuer: options.selfSigned ? 'CN=Test server' : root.subject,
        ...validity(options.expired ? -10 * DAY_MS : 0),
        publicKey: own.publicKey,
        signingKey: options.selfSigned ? own.privateKey : keys.privateKey,
        signingAlgorithm: KEY,
        extensions: [
          new x509.SubjectAlternativeNameExtension(
            hosts.map((host) => ({ type: nameType(host), value: host })),
          ),
        ],
      });
      const pkcs8 = await crypto.subtle.exportKey('pkcs8', own.privateKey);
      return { cert: cert.toString('pem'), key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY') };
    },
  };
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await crypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
}

function validity(shiftMs = 0): { notBefore: Date; notAfter: Date } {
  const now = Date.now() + shiftMs;
  return { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + DAY_MS) };
}

function nameType(host: string): 'dns' | 'ip' {
  return /:|^[\d.]+$/.test(host) ? 'ip' : 'dns';
}

/** A server on loopback, and what it saw of its clients. */
export interface LoopbackServer {
  readonly port: number;
  /** Connections so far, those that sent nothing included. */
  readonly connections: () => number;
  /** Connections that are open now. */
  readonly open: () => number;
  /** The name that each TLS handshake asked for; false where it named none. */
  readonly serverNames: readonly (string | false | null)[];
  /** Resolves when every connection so far is closed. */
  readonly idle: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** An HTTPS server: real handshakes, real HTTP. */
export async function startHttpsServer(
  identity: Identity,
  listener: RequestListener,
): Promise<LoopbackServer> {
  const http = createServer(listener);
  return await startTlsServer(identity, (socket) => {
    http.emit('connection', socket);
  });
}

/** A TLS server whose bytes after the handshake are the test's. */
export async function startTlsServer(
  identity: Identity,
  onSecure: (socket: TLSSocket) => void,
): Promise<LoopbackServer> {
  const serverNames: (string | false | null)[] = [];
  const server = createTlsServer({ ...identity, ALPNProtocols: ['http/1.1'] }, (socket) => {
    serverNames.push(socket.servername);
    socket.on('error', () => undefined);
    onSecure(socket);
  });
  server.on('tlsClientError', () => undefined);
  return await listening(server, serverNames);
}

/** Puts a server on loopback until the test ends. */
export async function listening(
  server: Server,
  serverNames: readonly (string | false | null)[] = [],
): Promise<LoopbackServer> {
  const open = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    for (const socket of open) socket.destroy();
    await once(server, 'close');
  };
  onTestFinished(close);
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => open.size,
    serverNames,
    idle: async () => {
      await Promise.all([...open].map(async (socket) => await closed(socket)));
    },
    close,
  };
}

async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once('close', () => {
      resolve();
    });
  });
}
