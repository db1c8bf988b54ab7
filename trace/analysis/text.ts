// Numbers and tables for people: times, sizes, shares, aligned columns. No colour: the caller's terminal decides.

/** Nanoseconds with a fitting unit and three digits: `1.23 ms`. */
export function formatTime(nanoseconds: number): string {
  const size = Math.abs(nanoseconds);
  if (size < 1e3) return `${digits(nanoseconds)} ns`;
  if (size < 1e6) return `${digits(nanoseconds / 1e3)} us`;
  if (size < 1e9) return `${digits(nanoseconds / 1e6)} ms`;
  return `${digits(nanoseconds / 1e9)} s`;
}

/** Bytes with a fitting binary unit: `24.0 MiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (Math.abs(value) < 1024) return unit === 'B' ? `${value} B` : `${digits(value)} ${unit}`;
    value /= 1024;
  }
  return `${digits(value)} TiB`;
}

/** A fraction as percent: `12.3 %`. */
export function formatShare(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '-';
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

/**
 * A table with a header row. The first column is aligned left, the others right; two spaces between columns.
 * Rows may be shorter than the header.
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((text, column) =>
    Math.max(text.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (row: readonly string[]): string =>
    widths
      .map((width, column) => {
        const text = row[column] ?? '';
        return column === 0 ? text.padEnd(width) : text.padStart(width);
      })
      .join('  ')
      .trimEnd();
  return [header, ...rows].map(line).join('\n');
}
