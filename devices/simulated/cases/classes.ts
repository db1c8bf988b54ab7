// Task classes of simulated cases: one per combination of access modes and kind of body. Neighbouring flows of one mode form a
// list, so the number of data differs among the tasks of such a class.
import {
  type Datum,
  type Flow,
  list,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../../../scheduler/index.js';
import type { CaseTask } from './program.js';

/** Classes that do not depend on a case serve all cases. */
const shared: Map<string, TaskClass> = new Map();

/** The body of classes that serve all cases. Made apart from a case, because a closure keeps what its neighbours name. */
function onlyUses(): void {}

/** Whether the body of a task does more than use its data. */
export function behaves(t: CaseTask): boolean {
  if (t.body === 'async' || t.fails === true) return true;
  return t.inserts !== undefined || t.grows !== undefined || t.makes !== undefined;
}

/** Neighbouring flows of one mode. */
interface FlowGroup {
  readonly name: string;
  readonly mode: number;
  readonly data: number[];
}

function groupsOf({ flows }: CaseTask): FlowGroup[] {
  const groups: FlowGroup[] = [];
  for (const [datum, mode] of flows) {
    const last = groups.at(-1);
    if (last?.mode === mode) last.data.push(datum);
    else groups.push({ name: `f${groups.length}`, mode, data: [datum] });
  }
  return groups;
}

/** The data of a task by the flows of its class. */
export function dataOf(
  t: CaseTask,
  datum: (d: number) => Datum | undefined,
): Record<string, unknown> {
  return Object.fromEntries(
    groupsOf(t).map(({ name, data }) => [
      name,
      data.length === 1 ? datum(data[0]) : data.map((d) => datum(d)),
    ]),
  );
}

export class CaseClasses {
  private readonly ofCase: Map<string, TaskClass> = new Map();
  private readonly behave: (n: number) => unknown;

  /** `behave` carries out the further actions of the body of task number `n` of the case. */
  constructor(behave: (n: number) => unknown) {
    this.behave = behave;
  }

  /**
   * The class for a task of a case. Its parameter `us` is its length, and `n` names it if its
   * body does more than use its data.
   */
  of(t: CaseTask): TaskClass {
    let key = behaves(t) ? `${t.body}!:` : `${t.body}:`;
    if (t.pulls === true) key = `pull ${key}`;
    for (const { mode, data } of groupsOf(t)) key += data.length === 1 ? mode : `${mode}+`;
    const classes = behaves(t) ? this.ofCase : shared;
    let cls = classes.get(key);
    if (cls === undefined) {
      cls = this.make(key, t);
      classes.set(key, cls);
    }
    return cls;
  }

  private make(key: string, t: CaseTask): TaskClass {
    const flows: Record<string, Flow> = {};
    for (const { name, mode, data } of groupsOf(t)) {
      const flow = mode === 1 ? read('u8') : mode === 2 ? write('u8') : readWrite('u8');
      flows[name] = data.length === 1 ? flow : list(flow);
    }
    const fetch = t.pulls === true ? 'pull' : 'push';
    const common = { name: key, flows, fetch, params: { us: 'f64' } } as const;
    const { behave } = this;
    const made = behaves(t)
      ? task({
          ...common,
          params: { us: 'f64', n: 'f64' },
          body: ({ n }) => behave(n as number) as undefined,
        })
      : t.body === 'script'
        ? task({ ...common, body: onlyUses })
        : t.body === 'host'
          ? task({ ...common, kernel: 'k', gpuKernel: false })
          : task({ ...common, kernel: 'k' });
    return made as unknown as TaskClass;
  }
}
