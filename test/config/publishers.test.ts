import { describe, expect, it } from 'vitest';
import { publisherDomains, resolveOptions } from '../../src/config/for-tests.ts';
import { ConfigError, type Sender } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';

describe('publishers: domains whose adagents.json may pin keys', () => {
  it('takes hosts, as URLs write them, each once', () => {
    expect(
      publisherDomains('p', [
        'News.example',
        'news.example',
        'a.example:8443',
        'bücher.example',
        '127.0.0.1:3000',
      ]),
    ).toEqual(['news.example', 'a.example:8443', 'xn--bcher-kva.example', '127.0.0.1:3000']);
    expect(publisherDomains('p', [])).toEqual([]);
  });

  it.each([
    'https://news.example',
    'news.example/',
    'news.example/x',
    'user@news.example',
    'news.example?x',
    'news.example#x',
    'news.example\\x',
    'news example',
    'news\t.example',
    'news.example:99999',
    '',
    7,
    null,
  ])('refuses %j', (domain) => {
    expect(() => publisherDomains('senders[0].publishers', [domain])).toThrow(ConfigError);
    expect(() => publisherDomains('senders[0].publishers', [domain])).toThrow(
      /^senders\[0\]\.publishers: .*not a domain/,
    );
  });

  it.each([['news.example'], [{}], [Array.from({ length: 101 }, (_, index) => `p${index}.example`)]])(
    'refuses what is not a list of at most 100',
    (publishers) => {
      expect(() => publisherDomains('p', publishers)).toThrow(/array of at most 100/);
    },
  );

  it('is kept for the sender, and a mistake is found at construction', () => {
    const options = (sender: Partial<Sender>) => ({
      publicUrl: 'https://buyer.example/webhooks',
      senders: [{ agentUrl: 'https://seller.example/mcp', ...sender }],
      store: memoryStore(),
      handlers: { other: () => {} },
    });
    expect(resolveOptions(options({ publishers: ['News.example'] })).senders.fixed).toMatchObject([
      { publishers: ['news.example'] },
    ]);
    expect(resolveOptions(options({})).senders.fixed?.[0]).not.toHaveProperty('publishers');
    expect(() => resolveOptions(options({ publishers: ['https://news.example'] }))).toThrow(
      /senders\[0\]\.publishers/,
    );
  });
});
