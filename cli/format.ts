// Numbers and tables for people.

/** Bytes with a binary unit and three digits: `68.0 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0 || Number.isInteger(value)) return `${value} ${units[unit]}`;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${units[unit]}`;
}

/** A duration: `850 us`, `12.3 ms`, `4.56 s`, `2 min 5 s`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(0)} us`;
  if (seconds < 1) return `${(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds < 100) return `${seconds.toPrecision(3)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/**
 * Aligned columns, two blanks apart: the first to the left, the others to the right. Lines end in a line feed
 * and carry no trailing blanks.
 */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, c) => {
      widths[c] = Math.max(widths[c] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, c) =>
        c === 0 ? cell.padEnd(widths[c]) : cell.padStart(widths[c]),
      );
      return `${cells.join('  ').trimEnd()}\n`;
    })
    .join('');
}
