// Colours. Task classes use the palette of Okabe and Ito, idle reasons the light palette of Paul Tol: both can be told
// apart with any common colour blindness. Idle time is also lower than kernels, so colour is never the only sign.

const classesLight = [
  '#0072b2',
  '#e69f00',
  '#009e73',
  '#d55e00',
  '#cc79a7',
  '#56b4e9',
  '#c8b900',
  '#707070',
];
const classesDark = [
  '#3d9ad6',
  '#e8ab2b',
  '#1fb58b',
  '#e8763a',
  '#d794b9',
  '#7cc6f0',
  '#f0e442',
  '#a8a8a8',
];

/** Idle reasons by number: noTask, h2d, d2h, d2d, network, memory, scheduler, submission, throttled, stolen. */
const idle = [
  '#dddddd',
  '#99ddff',
  '#77aadd',
  '#44bb99',
  '#ee8866',
  '#ffaabb',
  '#eedd88',
  '#bbcc33',
  '#aaaa00',
  '#bb88cc',
];

/**
 * @typedef {object} Theme
 * @property {boolean} dark
 * @property {string} background
 * @property {string} header rank and device rows
 * @property {string} line
 * @property {string} text
 * @property {string} faint
 * @property {string} accent selection
 * @property {string} path critical path
 * @property {string} muted slices that are not in focus
 * @property {readonly string[]} classes
 * @property {readonly string[]} idle
 * @property {readonly string[]} kinds transfers by kind number
 * @property {Readonly<Record<'pinned' | 'dirty' | 'clean' | 'arriving', string>>} memory
 */

/** @param {boolean} dark @returns {Theme} */
export function makeTheme(dark) {
  const classes = dark ? classesDark : classesLight;
  const network = dark ? '#e8763a' : '#d55e00';
  return {
    dark,
    background: dark ? '#16181d' : '#ffffff',
    header: dark ? '#23262e' : '#eef1f5',
    line: dark ? '#343943' : '#d5dae1',
    text: dark ? '#e6e9ef' : '#1b1f27',
    faint: dark ? '#9aa3b2' : '#5b6472',
    accent: dark ? '#ffffff' : '#000000',
    path: dark ? '#ff5a6e' : '#c4002b',
    muted: dark ? '#3a3f49' : '#d9dde3',
    classes,
    idle: dark ? idle.map((colour) => mix(colour, '#16181d', 0.5)) : idle,
    kinds: [classes[5], classes[0], classes[2], network, network, network, network],
    memory: { pinned: classes[4], dirty: classes[3], clean: classes[5], arriving: classes[6] },
  };
}

/** @param {string} colour @returns {[number, number, number]} */
function parse(colour) {
  const value = Number.parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** `colour` with `share` of `other` mixed in. @param {string} colour @param {string} other @param {number} share */
export function mix(colour, other, share) {
  const a = parse(colour);
  const b = parse(other);
  const channel = a.map((value, i) => Math.round(value * (1 - share) + b[i] * share));
  return `#${channel.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** Black or white, whichever can be read on a colour. @param {string} colour */
export function inkOn(colour) {
  const [r, g, b] = parse(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#000000' : '#ffffff';
}

/** Names of the stages of a task, in order; the colour family of a class has one tint for each. */
export const stageNames = [
  'waits for predecessors',
  'alloc',
  'stage-in',
  'comm-in',
  'issue',
  'queue',
  'exec',
  'stage-out',
  'finalize',
];

const tints = [0.85, 0.7, 0.55, 0.45, 0.7, 0.8, 0, 0.45, 0.7];

/** Tint of a class's colour for a stage. @param {Theme} theme @param {number} taskClass @param {number} stage */
export function stageColour(theme, taskClass, stage) {
  return mix(classColour(theme, taskClass), theme.background, tints[stage]);
}

/** @param {Theme} theme @param {number} taskClass */
export function classColour(theme, taskClass) {
  const base = theme.classes[taskClass % theme.classes.length];
  // Beyond the palette the colours come again, lighter.
  const round = Math.floor(taskClass / theme.classes.length);
  return round === 0 ? base : mix(base, theme.background, Math.min(0.6, 0.3 * round));
}
