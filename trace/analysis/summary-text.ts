// Prints summaries, critical paths and differences for a terminal.
import type { CriticalPath, PathStep } from './critical-path.js';
import type { Change, TraceDiff } from './diff.js';
import type { TraceSummary } from './summary.js';
import { formatBytes, formatShare, formatTime, table } from './text.js';
import { IdleReasonNumber, idleReasons, reasonText } from './waits.js';

/** The summary as text of several sections; ends with a newline. */
export function summaryText(summary: TraceSummary): string {
  const { bounds, makespan } = summary;
  const sections = [
    [
      `${summary.program}: ${summary.tasks} tasks, ${summary.ranks} ${summary.ranks === 1 ? 'rank' : 'ranks'}` +
        (summary.simulated ? ', simulated time' : ''),
      ...(summary.failed + summary.cancelled > 0
        ? [`  ${summary.failed} failed, ${summary.cancelled} cancelled`]
        : []),
      ...summary.plans.map(
        ({ plan, plays, iterations, tasks }) =>
          `  plan '${plan}'${' '.repeat(Math.max(1, 15 - plan.length))}${plays} ${plays === 1 ? 'play' : 'plays'}, ` +
          `${iterations} ${iterations === 1 ? 'iteration' : 'iterations'}, ${tasks} of the tasks`,
      ),
      `  makespan              ${formatTime(makespan)}`,
      `  critical-path bound   ${formatTime(bounds.criticalPath)}`,
      `  area bound            ${formatTime(bounds.area)}`,
      `  efficiency            ${formatShare(bounds.efficiency, 1)} of the lanes' time in kernels`,
      `  against the bounds    ${formatShare(bounds.ofBound, 1)} (100 % = no schedule could be faster)`,
      `  ready to running      p50 ${formatTime(summary.latency.p50)}, p99 ${formatTime(summary.latency.p99)}`,
    ].join('\n'),
    laneSection(summary),
    idleSection(summary),
    classSection(summary),
    slowSection(summary),
    trafficSection(summary),
    transferLaneSection(summary),
    memorySection(summary),
    overlapSection(summary),
    summary.problems.length > 0
      ? `Incomplete:\n${summary.problems.map((problem) => `  ${problem}`).join('\n')}`
      : '',
  ];
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`;
}

function laneSection(summary: TraceSummary): string {
  const shown = idleReasons.filter((reason) => summary.lanes.some((lane) => lane.idle[reason] > 0));
  const stretched = summary.lanes.some((lane) => lane.stretched > 0);
  const rows = summary.lanes.map((lane) => [
    lane.lane,
    String(lane.tasks),
    formatShare(lane.busy, summary.makespan),
    ...(stretched ? [formatShare(lane.stretched, summary.makespan)] : []),
    ...shown.map((reason) => formatShare(lane.idle[reason], summary.makespan)),
  ]);
  return `Lanes (share of the makespan)\n${table(['lane', 'tasks', 'busy', ...(stretched ? ['stretched'] : []), ...shown], rows)}`;
}

function idleSection(summary: TraceSummary): string {
  // Lanes of a kind without tasks (host workers of a run on GPUs) would hide all others.
  const lanes = summary.lanes.filter((lane) => lane.used);
  const total = lanes.length * summary.makespan;
  const lines = summary.advice
    .filter(({ share }) => share >= 0.01)
    .sort((a, b) => b.share - a.share)
    .map(
      ({ nanoseconds, reason, text }) =>
        `  ${formatShare(nanoseconds, total).padStart(7)}  ${reasonText(reason)}: ${text}`,
    );
  if (summary.stretched >= 0.01 * total && total > 0) {
    const { text } = summary.advice[IdleReasonNumber.stolen];
    lines.push(
      `  ${formatShare(summary.stretched, total).padStart(7)}  stretched (kernel under way, thread without a core): ${text}`,
    );
  }
  if (lines.length === 0) return '';
  const unused = summary.lanes.length - lanes.length;
  const title =
    unused > 0 ? `Idle time of the lanes in use (${unused} others left out)` : 'Idle time';
  return `${title}, and its remedies\n${lines.join('\n')}`;
}

function classSection(summary: TraceSummary): string {
  const rows = summary.classes.map((use) => [
    use.name,
    String(use.count),
    formatTime(use.total),
    formatTime(use.mean),
    formatTime(use.p50),
    formatTime(use.p99),
    formatTime(use.maximum),
  ]);
  if (rows.length === 0) return '';
  return `Task classes (kernel time)\n${table(['class', 'count', 'total', 'mean', 'p50', 'p99', 'max'], rows)}`;
}

function slowSection(summary: TraceSummary): string {
  if (summary.slowest.length === 0) return '';
  const rows = summary.slowest
    .slice(0, 5)
    .map((task) => [task.task, task.lane, formatTime(task.start), formatTime(task.nanoseconds)]);
  return `Slowest tasks\n${table(['task', 'lane', 'at', 'took'], rows)}`;
}

function trafficSection(summary: TraceSummary): string {
  const { traffic } = summary;
  const rows = Object.keys(traffic.bytes)
    .filter((kind) => traffic.bytes[kind] > 0)
    .map((kind) => [kind, String(traffic.transfers[kind]), formatBytes(traffic.bytes[kind])]);
  const required = (['h2d', 'd2h', 'd2d', 'network'] as const)
    .filter((way) => traffic.moved[way] > 0 || traffic.required[way] > 0)
    .map((way) => [
      way,
      formatBytes(traffic.moved[way]),
      formatBytes(traffic.required[way]),
      traffic.required[way] > 0
        ? `${(traffic.moved[way] / traffic.required[way]).toFixed(2)} x`
        : '-',
    ]);
  if (rows.length === 0) return '';
  return [
    `Bytes by kind\n${table(['kind', 'transfers', 'bytes'], rows)}`,
    `Moved and required (with endless memory and no repetition)\n${table(['way', 'moved', 'required', 'ratio'], required)}`,
    `Evictions ${traffic.evictions.count} (${formatBytes(traffic.evictions.bytes)} dropped), ` +
      `spills ${traffic.spills.count} (${formatBytes(traffic.spills.bytes)} written back)`,
  ].join('\n\n');
}

function transferLaneSection(summary: TraceSummary): string {
  const rows = summary.transferLanes
    .filter((lane) => lane.transfers > 0)
    .map((lane) => [
      lane.lane,
      String(lane.transfers),
      formatBytes(lane.bytes),
      formatShare(lane.busy, summary.makespan),
      `${(lane.bandwidth / 1e9).toFixed(2)} GB/s`,
    ]);
  if (rows.length === 0) return '';
  return `Transfer lanes\n${table(['lane', 'transfers', 'bytes', 'busy', 'while busy'], rows)}`;
}

function memorySection(summary: TraceSummary): string {
  const rows = summary.memory
    .filter((use) => use.samples > 0)
    .map((use) => [
      use.space,
      formatBytes(use.highWater),
      formatBytes(use.capacity),
      formatShare(use.highWater, use.capacity),
      formatBytes(use.pinned),
      formatBytes(use.dirty),
    ]);
  if (rows.length === 0) return '';
  return `Memory high-water\n${table(['space', 'used', 'of', '', 'pinned', 'dirty'], rows)}`;
}

function overlapSection(summary: TraceSummary): string {
  const rows = summary.overlap
    .filter((entry) => entry.communication > 0)
    .map((entry) => [
      entry.where,
      formatTime(entry.communication),
      formatTime(entry.execution),
      formatShare(entry.both, entry.communication),
    ]);
  if (rows.length === 0) return '';
  return `Communication hidden behind execution\n${table(['where', 'communication', 'execution', 'hidden'], rows)}`;
}

/** The critical path as text; steps in the middle are left out beyond `limit`. */
export function criticalPathText(path: CriticalPath, limit = 40): string {
  const { steps, makespan } = path;
  const reasons = idleReasons
    .filter((reason) => path.gapReasons[reason] > 0)
    .sort((a, b) => path.gapReasons[b] - path.gapReasons[a])
    .map((reason) => `${reasonText(reason)} ${formatTime(path.gapReasons[reason])}`);
  const head = [
    `Critical path: ${steps.length} steps, ${formatTime(makespan)}`,
    `  kernels    ${formatTime(path.kernels).padStart(9)}  ${formatShare(path.kernels, makespan)}`,
    `  transfers  ${formatTime(path.transfers).padStart(9)}  ${formatShare(path.transfers, makespan)}`,
    `  gaps       ${formatTime(path.gaps).padStart(9)}  ${formatShare(path.gaps, makespan)}${reasons.length > 0 ? `  (${reasons.join(', ')})` : ''}`,
    `  tail       ${formatTime(path.tail).padStart(9)}  ${formatShare(path.tail, makespan)}`,
  ].join('\n');
  const classes = path.classes.map((use) => [
    use.name,
    String(use.count),
    formatTime(use.total),
    formatShare(use.total, makespan),
  ]);
  const half = Math.floor(limit / 2);
  const shown =
    steps.length <= limit ? steps : [...steps.slice(0, half), ...steps.slice(steps.length - half)];
  const rows = shown.map(stepRow);
  if (shown.length < steps.length) {
    rows.splice(half, 0, [`... ${steps.length - shown.length} more ...`]);
  }
  const tables = [
    classes.length > 0 ? table(['class on the path', 'tasks', 'time', 'share'], classes) : '',
    rows.length > 0
      ? table(['step', 'at', 'took', 'gap before', 'released by', 'gap', 'lane'], rows)
      : '',
  ];
  return `${[head, ...tables.filter((text) => text !== '')].join('\n\n')}\n`;
}

function stepRow(step: PathStep): string[] {
  const gap = idleReasons
    .filter((reason) => (step.gapReasons[reason] ?? 0) > 0)
    .sort((a, b) => (step.gapReasons[b] ?? 0) - (step.gapReasons[a] ?? 0));
  return [
    step.name,
    formatTime(step.start),
    formatTime(step.end - step.start),
    formatTime(step.gap),
    step.releasedBy,
    gap.join('+'),
    step.lane,
  ];
}

/** The difference as text. */
export function diffText(diff: TraceDiff): string {
  const time = (list: readonly Change[]): string[][] => rowsOf(list, formatTime);
  const sections: [string, string[][]][] = [
    [
      '',
      [
        ...time([diff.makespan, diff.criticalPath]),
        ...rowsOf([diff.efficiency], (value) => formatShare(value, 1)),
        ...rowsOf([diff.tasks, diff.evictions, diff.spills], String),
      ],
    ],
    ['Idle time by reason, lanes in use', time(diff.idle)],
    ['Kernel time by class', time(diff.classTotal)],
    ['Tasks by class', rowsOf(diff.classCount, String)],
    ['Mean kernel time by class', time(diff.classMean)],
    ['Busy time by lane', time(diff.lanes)],
    ['Bytes by kind', rowsOf(diff.bytes, formatBytes)],
    ['Memory high-water', rowsOf(diff.memory, formatBytes)],
  ];
  const parts = sections
    .filter(([, rows]) => rows.length > 0)
    .map(
      ([title, rows]) =>
        `${title === '' ? '' : `${title}\n`}${table(['', 'A', 'B', 'change', ''], rows)}`,
    );
  if (diff.options.length > 0) {
    const rows = diff.options.map(({ name, a, b }) => [name, a, b]);
    parts.push(`Options that differ\n${table(['option', 'A', 'B'], rows)}`);
  }
  return `${parts.join('\n\n')}\n`;
}

// Rows that are zero on both sides tell nothing.
function rowsOf(list: readonly Change[], format: (value: number) => string): string[][] {
  return list
    .filter(({ a, b }) => a !== 0 || b !== 0)
    .map(({ name, a, b, change }) => [
      name,
      format(a),
      format(b),
      change === 0 ? '=' : `${change > 0 ? '+' : '-'}${format(Math.abs(change))}`,
      a !== 0 && change !== 0 ? `${change > 0 ? '+' : ''}${((100 * change) / a).toFixed(1)} %` : '',
    ]);
}
