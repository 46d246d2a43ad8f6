// The peers are installed by `npm run bench` alone; these are the parts of them that are measured.
declare module 'http-message-signatures' {
  export const httpbis: {
    verifyMessage(
      config: {
        keyLookup: (parameters: { keyid?: string }) => Promise<{
          id: string;
          algs: string[];
          verify: (data: Uint8Array, signature: Uint8Array) => Promise<boolean>;
        }>;
        requiredParams?: string[];
        requiredFields?: string[];
      },
      request: { method: string; url: string; headers: Readonly<Record<string, string>> },
    ): Promise<boolean | null>;
  };
}

declare module 'web-bot-auth' {
  export function verify<T>(
    message: { method: string; url: string; headers: Headers },
    verifier: (data: string, signature: Uint8Array, parameters: object) => T | Promise<T>,
  ): Promise<T>;
}
