// Task classes of simulated cases: one per combination of access modes and kind of body.
import {
  type Flow,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../../../scheduler/index.js';
import type { CaseTask } from './program.js';

/** Classes that do not depend on a case serve all cases. */
const shared: Map<string, TaskClass> = new Map();

/** Whether the body of a task does more than use its data. */
export function behaves(t: CaseTask): boolean {
  if (t.body === 'async' || t.fails === true) return true;
  return t.inserts !== undefined || t.grows !== undefined || t.makes !== undefined;
}

export class CaseClasses {
  private readonly ofCase: Map<string, TaskClass> = new Map();
  private readonly behave: (n: number) => unknown;

  /** `behave` carries out the further actions of the body of task number `n` of the case. */
  constructor(behave: (n: number) => unknown) {
    this.behave = behave;
  }

  /**
   * The class for a task of a case. Its flows are f0, f1, ..., its parameter `us` is its length, and `n` names it if its
   * body does more than use its data.
   */
  of(t: CaseTask): TaskClass {
    let key = behaves(t) ? `${t.body}!:` : `${t.body}:`;
    for (const [, mode] of t.flows) key += mode;
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
    t.flows.forEach(([, mode], i) => {
      flows[`f${i}`] = mode === 1 ? read('u8') : mode === 2 ? write('u8') : readWrite('u8');
    });
    const common = { name: key, flows, params: { us: 'f64' } } as const;
    const { behave } = this;
    const made = behaves(t)
      ? task({
          ...common,
          params: { us: 'f64', n: 'f64' },
          body: ({ n }) => behave(n as number) as undefined,
        })
      : t.body === 'script'
        ? task({ ...common, body: () => {} })
        : t.body === 'host'
          ? task({ ...common, kernel: 'k', gpuKernel: false })
          : task({ ...common, kernel: 'k' });
    return made as unknown as TaskClass;
  }
}
