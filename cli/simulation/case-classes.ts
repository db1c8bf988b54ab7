// Task classes of simulated cases: one per combination of access modes and kind of body.
import { type Flow, read, readWrite, type TaskClass, task, write } from '../../scheduler/index.js';
import type { CaseTask } from './case.js';

/** Those that know nothing of a case's time serve all cases. */
const shared: Map<string, TaskClass> = new Map();

export class CaseClasses {
  private readonly ofCase: Map<string, TaskClass> = new Map();
  private readonly pause: (micros: number) => Promise<void>;

  /** `pause` resolves after so many virtual microseconds. */
  constructor(pause: (micros: number) => Promise<void>) {
    this.pause = pause;
  }

  /** The class for a task of a case; its flows are f0, f1, ... and its parameter `us` is its length. */
  of(t: CaseTask): TaskClass {
    let key = `${t.body}:`;
    for (const [, mode] of t.flows) key += mode;
    const classes = t.body === 'async' ? this.ofCase : shared;
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
    const { pause } = this;
    const made =
      t.body === 'script'
        ? task({ ...common, body: () => {} })
        : t.body === 'async'
          ? task({ ...common, body: ({ us }) => pause(us as number) })
          : t.body === 'host'
            ? task({ ...common, kernel: 'k', gpuKernel: false })
            : task({ ...common, kernel: 'k' });
    return made as unknown as TaskClass;
  }
}
