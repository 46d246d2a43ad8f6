/**
 * Whether requests may wait for each other here. On workerd a promise dies with the request that made it, and whoever
 * else waits for it hangs.
 */
export function requestsMayShare(): boolean {
  return globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
}
