// Numbers for people, as in the text reports.

/** @param {number} value @returns {string} */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** Nanoseconds with a fitting unit. @param {number} ns @returns {string} */
export function formatTime(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${digits(ns)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} us`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/** Label of a ruler mark: as many digits as neighbours `step` apart need to differ. @param {number} ns @param {number} step */
export function formatMark(ns, step) {
  const [unit, size] =
    ns < 1e3 ? ['ns', 1] : ns < 1e6 ? ['us', 1e3] : ns < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const places = Math.max(0, Math.ceil(Math.log10(Number(size) / step) - 1e-9));
  return `${(ns / Number(size)).toFixed(places)} ${unit}`;
}

/** @param {number} bytes @returns {string} */
export function formatBytes(bytes) {
  let value = bytes;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (Math.abs(value) < 1024) return unit === 'B' ? `${value} B` : `${digits(value)} ${unit}`;
    value /= 1024;
  }
  return `${digits(value)} TiB`;
}

/** @param {number} part @param {number} whole @returns {string} */
export function formatShare(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '-';
}

/** The distance between ruler marks: 1, 2 or 5 times a power of ten, at least `least`. @param {number} least */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  return 10 * power;
}
