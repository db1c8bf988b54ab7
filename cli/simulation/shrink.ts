// Makes a failing case smaller: leaves out tasks, data and features as long as something still goes wrong.
import type { CaseTask, SimulatedCase } from './case.js';
import { play } from './play.js';

async function fails(c: SimulatedCase): Promise<boolean> {
  return (await play(c)).problems.length > 0;
}

/** Without tasks `from .. from + count`; null when a later task would read what nobody has written. */
function without(c: SimulatedCase, from: number, count: number): SimulatedCase | null {
  const kept = c.tasks.flatMap((_, i) => (i >= from && i < from + count ? [] : [i]));
  const number = new Map(kept.map((i, at) => [i, at]));
  const written = c.data.map((d) => d.initial);
  const tasks: CaseTask[] = [];
  for (const i of kept) {
    const task = c.tasks[i];
    for (const [d, mode] of task.flows) if (mode !== 2 && !written[d]) return null;
    for (const [d, mode] of task.flows) if (mode !== 1) written[d] = true;
    const { after, ...rest } = task;
    const still = after?.flatMap((p) => number.get(p) ?? []);
    tasks.push(still === undefined || still.length === 0 ? rest : { ...rest, after: still });
  }
  return { ...c, tasks };
}

/** The smallest failing case found by leaving things out. `c` must fail. */
export async function shrink(c: SimulatedCase, attempts = 500): Promise<SimulatedCase> {
  let best = c;
  let left = attempts;
  const attempt = async (next: SimulatedCase | null): Promise<boolean> => {
    if (next === null || left-- <= 0 || !(await fails(next))) return false;
    best = next;
    return true;
  };
  for (let size = best.tasks.length >> 1; size >= 1 && left > 0; size >>= 1) {
    for (let from = best.tasks.length - size; from >= 0 && left > 0; ) {
      await attempt(without(best, from, size));
      from = Math.min(from - size, best.tasks.length - size);
    }
  }
  const { adversary } = best;
  await attempt({
    ...best,
    adversary: { ...adversary, spread: 0, holdBack: 0, stall: 0, spurious: 0 },
  });
  await attempt({ ...best, checked: false });
  await attempt({ ...best, reads: [] });
  await attempt({ ...best, smallRings: false });
  return best;
}
