// Makes a failing case smaller: leaves out steps, tasks, data and features as long as the same violation remains.
import type { SimulatedCase } from './case.js';
import { play } from './play.js';
import { type CaseStep, type CaseTask, OWN } from './program.js';

/** Number of characters that identify a problem. */
const COMPARED = 40;

/** The first violation, without numbers; '' if there is none. */
async function failure(c: SimulatedCase): Promise<string> {
  const [first = ''] = (await play(c)).problems;
  return first.split('\n')[0].replace(/\d+/g, '').slice(0, COMPARED);
}

/** Without tasks `from .. from + count`; null if a later task would read a datum without a writer. */
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

/** Without steps `from .. from + count`: later steps omit their missing results. */
function withoutSteps(c: SimulatedCase, from: number, count: number): SimulatedCase {
  // Awaiting runs before data are used otherwise makes a program on several ranks a valid one.
  const isKept = ([what]: CaseStep, i: number): boolean =>
    i < from || i >= from + count || (what === 'await' && (c.ranks ?? 1) > 1);
  return { ...c, steps: c.steps?.filter(isKept) ?? [] };
}

function isOfData(what: CaseStep[0]): boolean {
  return ['make', 'set', 'restore', 'read', 'close'].includes(what);
}

/** Only the tasks and data that the steps name. */
function compact(c: SimulatedCase): SimulatedCase {
  const { steps = [] } = c;
  const taskAt = new Map<number, number>();
  for (const [what, , task] of steps)
    if (what === 'insert' && !taskAt.has(task)) taskAt.set(task, taskAt.size);
  const dataAt = new Map<number, number>();
  const dataOf = (t: CaseTask): number[] => [
    ...t.flows.map(([d]) => d),
    ...(t.inserts ?? []).flatMap(dataOf),
  ];
  const named = new Set([...taskAt.keys()].flatMap((i) => dataOf(c.tasks[i])));
  for (const [what, d] of steps) if (isOfData(what)) named.add(d as number);
  named.delete(OWN);
  for (const d of [...named].sort((a, b) => a - b)) dataAt.set(d, dataAt.size);
  const task = (t: CaseTask): CaseTask => {
    const { after, inserts, ...rest } = t;
    const still = after?.flatMap((p) => taskAt.get(p) ?? []) ?? [];
    return {
      ...rest,
      flows: t.flows.map(([d, mode]) => [dataAt.get(d) ?? OWN, mode]),
      ...(still.length > 0 ? { after: still } : {}),
      ...(inserts === undefined ? {} : { inserts: inserts.map(task) }),
    };
  };
  return {
    ...c,
    tasks: [...taskAt.keys()].map((i) => task(c.tasks[i])),
    data: [...dataAt.keys()].map((d) => c.data[d]),
    reads: c.reads.flatMap((d) => dataAt.get(d) ?? []),
    steps: steps.map((step): CaseStep => {
      if (step[0] === 'insert') return ['insert', step[1], taskAt.get(step[2]) as number];
      return isOfData(step[0])
        ? ([step[0], dataAt.get(step[1] as number)] as unknown as CaseStep)
        : step;
    }),
  };
}

/** The parts of tasks that may be omitted: inserted tasks, predecessors, and wishes. */
function simpler(t: CaseTask): CaseTask[] {
  const { after, inserts, device, priority, ...rest } = t;
  const list: CaseTask[] = [];
  if (after !== undefined || device !== undefined || priority !== undefined)
    list.push({ ...rest, ...(inserts === undefined ? {} : { inserts }) });
  if (inserts !== undefined) {
    const { inserts: _, ...alone } = t;
    list.push(alone);
    if (inserts.length > 1) for (const each of inserts) list.push({ ...t, inserts: [each] });
  }
  for (let i = 0; i < t.flows.length && t.flows.length > 1; i++)
    list.push({ ...t, flows: t.flows.filter((_, at) => at !== i) });
  return list;
}

/** The smallest failing case found by omissions. `c` must fail. */
export async function shrink(c: SimulatedCase, attempts = 500): Promise<SimulatedCase> {
  let best = c;
  let left = attempts;
  // Another violation in a smaller case is another defect.
  const wanted = await failure(c);
  const attempt = async (next: SimulatedCase | null): Promise<boolean> => {
    if (next === null || left-- <= 0 || (await failure(next)) !== wanted) return false;
    best = next;
    return true;
  };
  const halve = async (
    count: () => number,
    cut: (from: number, size: number) => SimulatedCase | null,
  ): Promise<void> => {
    for (let size = count() >> 1; size >= 1 && left > 0; size >>= 1) {
      for (let from = count() - size; from >= 0 && left > 0; ) {
        await attempt(cut(from, size));
        from = Math.min(from - size, count() - size);
      }
    }
  };
  if (best.steps === undefined)
    await halve(
      () => best.tasks.length,
      (from, size) => without(best, from, size),
    );
  else {
    await halve(
      () => best.steps?.length ?? 0,
      (from, size) => withoutSteps(best, from, size),
    );
    await attempt(compact(best));
    for (let i = best.tasks.length - 1; i >= 0; i--) {
      for (const task of simpler(best.tasks[i]))
        await attempt({ ...best, tasks: best.tasks.map((t, at) => (at === i ? task : t)) });
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
