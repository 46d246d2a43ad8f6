/** Three digits that count, thousands with commas. */
export function number(value: number): string {
  const digits = Number(value.toPrecision(3));
  return digits.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

/** All of its digits. */
export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

function scaled(value: number, units: readonly string[]): string {
  const at = Math.min(Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)), units.length - 1);
  return `${number(value / 1000 ** at)} ${units[at]}`;
}

export const bytes = (value: number): string => scaled(value, UNITS);

export const bits = (value: number): string =>
  scaled(value, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);

/** A Markdown table. Prettier sets its columns. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = head.map((_, at) => (at === 0 ? '---' : '---:'));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}
