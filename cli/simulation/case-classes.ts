// Task classes of simulated cases: one per combination of access modes and kind of body, made once per process.
import { type Flow, read, readWrite, type TaskClass, task, write } from '../../scheduler/index.js';
import type { CaseTask } from './case.js';

const classes: Map<string, TaskClass> = new Map();

/** The class for a task of a case; its flows are f0, f1, ... and its parameter `us` is its length. */
export function caseClass(t: CaseTask): TaskClass {
  const key = `${t.body}:${t.flows.map(([, mode]) => mode).join('')}`;
  let cls = classes.get(key);
  if (cls === undefined) {
    const flows: Record<string, Flow> = {};
    t.flows.forEach(([, mode], i) => {
      flows[`f${i}`] = mode === 1 ? read('u8') : mode === 2 ? write('u8') : readWrite('u8');
    });
    const shared = { name: key, flows, params: { us: 'f64' } } as const;
    const made =
      t.body === 'script'
        ? task({ ...shared, body: () => {} })
        : t.body === 'host'
          ? task({ ...shared, kernel: 'k', gpuKernel: false })
          : task({ ...shared, kernel: 'k' });
    cls = made as unknown as TaskClass;
    classes.set(key, cls);
  }
  return cls;
}
