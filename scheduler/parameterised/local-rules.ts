// Whether a rank may start with its own tasks: it enumerates those, in an order that all ranks share, and finds what its neighbours
// send and take in the edges. All ranks come to the same answer, because they have the same classes.

import type { GraphClass } from './graph-class.js';

/**
 * Why every rank must walk over all tasks of an instance, in words; undefined if a rank can look at its own tasks only.
 * @internal
 */
export function whyNotLocal(classes: readonly GraphClass[]): string | undefined {
  for (const cls of classes) {
    const what = lackOf(cls);
    if (what !== undefined) return `class '${cls.name}' ${what}`;
  }
  return undefined;
}

function lackOf({ order, on, runs, to, isWritten, datum }: GraphClass): string | undefined {
  if (order === undefined) return 'has no `order`';
  if (on === undefined) return 'has no `on`';
  const modes = Object.values(runs.definition.flows).map(({ mode }) => mode);
  if (modes.includes('reduce')) return 'has a flow that reduces';
  for (const [f, flow] of runs.flowNames.entries()) {
    if (isWritten[f] && datum[f] === undefined) return `has no \`datum\` for its flow '${flow}'`;
    if (!isWritten[f] && to[f] !== undefined) return `passes on what it reads as '${flow}'`;
  }
  return undefined;
}
