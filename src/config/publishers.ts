import { ConfigError } from '../errors.ts';

/** Each costs a fetch an hour, and one more where a key is unknown. */
const MAX_PUBLISHERS = 100;

/**
 * Publisher domains as `URL` writes hosts, each once.
 * @throws ConfigError naming `where` for anything but a list of `host` or `host:port`.
 */
export function publisherDomains(where: string, publishers: unknown): readonly string[] {
  if (!Array.isArray(publishers) || publishers.length > MAX_PUBLISHERS) {
    throw new ConfigError(
      `${where}: must be an array of at most ${MAX_PUBLISHERS} domains, e.g. ['publisher.example'].`,
    );
  }
  return [...new Set(publishers.map((domain: unknown) => host(where, domain)))];
}

function host(where: string, domain: unknown): string {
  const url = `https://${String(domain)}`;
  if (typeof domain !== 'string' || !/^[^\s/?#@\\]+$/.test(domain) || !URL.canParse(url)) {
    throw new ConfigError(
      `${where}: ${JSON.stringify(domain)} is not a domain. Give the name alone, e.g. 'publisher.example'.`,
    );
  }
  return new URL(url).host;
}
