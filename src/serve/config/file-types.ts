// Types of the configuration file of `serve`, after its defaults were added.

/** The place from which a secret is read: an environment variable or a file. */
export type SecretPlace = { readonly env: string } | { readonly file: string };

/** The place of one secret, or the places of a new secret and the former one, in this order. */
export type SecretPlaces = readonly SecretPlace[];

/** The legacy authentication of a seller, as the configuration file has it. */
export type AuthInFile =
  | { readonly hmac: { readonly secrets: SecretPlaces } }
  | { readonly bearer: { readonly tokens: SecretPlaces; readonly header?: string | undefined } }
  | { readonly reports: { readonly secrets: SecretPlaces } };

/**
 * A seller in the configuration file. Unlike the library's `Sender`, it names the places of its secrets, and has a path
 * if sellers have paths.
 */
export interface SellerInFile {
  readonly agentUrl: string;
  readonly path?: string | undefined;
  readonly auth?: AuthInFile | undefined;
  readonly brandJsonUrl?: string | undefined;
  readonly edition?: string | undefined;
  readonly format?: 'tool' | 'agent' | undefined;
  readonly pins?: readonly Readonly<Record<string, unknown>>[] | undefined;
  readonly publishers?: readonly string[] | undefined;
  readonly revocation?:
    | {
        readonly url?: string | undefined;
        readonly discover?: boolean | undefined;
        readonly revokedKids?: readonly string[] | undefined;
      }
    | undefined;
  readonly notificationToken?:
    { readonly tokens: SecretPlaces; readonly onMismatch?: 'warn' | 'refuse' | undefined } | undefined;
}

/** The store, as the configuration file has it. */
export type StoreInFile =
  | { readonly sqlite: string }
  | {
      readonly postgres: {
        readonly url: SecretPlace;
        readonly schema?: string | undefined;
        readonly connections: number;
      };
    }
  | { readonly mysql: { readonly url: SecretPlace; readonly connections: number } }
  | {
      readonly redis: {
        readonly url: SecretPlace;
        readonly prefix?: string | undefined;
        readonly waitReplicas?: number | undefined;
      };
    };

/** The numbers that every sink (destination of events) has. */
export interface SinkNumbers {
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly attempts: number;
}

/** The sink (destination of events), as the configuration file has it. A text is the path of a module. */
export type SinkInFile =
  | string
  | (SinkNumbers & { readonly module: string })
  | (SinkNumbers & {
      readonly url: string;
      readonly secrets: SecretPlaces;
      readonly headers?: Readonly<Record<string, SecretPlace>> | undefined;
    });

/** The address and port at which `serve` listens. */
export interface ListenInFile {
  readonly host: string;
  readonly port: number;
}

/** The whole configuration file, with all defaults. */
export interface ConfigInFile {
  readonly publicUrl: string | readonly string[];
  readonly sellers: readonly SellerInFile[];
  readonly sink: SinkInFile;
  readonly listen: ListenInFile;
  readonly health: ListenInFile & { readonly metrics: boolean };
  readonly store: StoreInFile;
  readonly durability?:
    | {
        readonly require?: 'process' | 'disk' | 'failover' | undefined;
        readonly declared?: 'process' | 'disk' | 'failover' | undefined;
      }
    | undefined;
  readonly events?: readonly string[] | undefined;
  readonly expectStoreId?: string | undefined;
  readonly limits: {
    readonly maxBodyBytes: number;
    readonly maxRecordsPerSender: number;
    readonly maxPendingBytesPerSender: number;
    readonly retentionMs: number;
  };
  readonly hostCheck: 'strict' | 'off';
  readonly allowLoopback: boolean;
}
