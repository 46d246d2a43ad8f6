// One part of one section in a process of its own: what one compiles or leaves in memory is not measured by the next.
const [section = '', part = ''] = process.argv.slice(2);

// An orderly end for each signal: servers that were started end with this process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
process.once('disconnect', () => process.exit());

const { SECTIONS } = await import('./sections.ts');
const known = SECTIONS[section];
if (!known) throw new Error(`no section ${section}`);
const { measure } = await known.load();
process.send?.(await measure(part), () => process.disconnect());
