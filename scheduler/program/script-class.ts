// Task classes on script workers: the worker loads the module that exports the class, and calls its body with views of the
// data.
//
// Invariants: a view is a view of host memory itself, never of a copy. In checked runs it lives no longer than its body: later
// every access throws.
import { workerData } from 'node:worker_threads';
import type { ScriptClass } from '../../devices/backend.js';
import { HeadraceError } from '../../devices/errors.js';
import { HostViews } from '../../devices/native/host-views.js';
import type { ForgettingSpace, RunBody } from '../../devices/native/script-server.js';
import { describeThrown } from '../../trace/thrown.js';
import { promiseOf } from '../engine/thenable.js';
import { workerContext } from './body-context.js';
import { shapeWith } from './class-shapes.js';
import { type AnyElementArray, elementBytes, viewAs } from './element-type.js';
import { mortalView } from './mortal-view.js';
import { withReadFlowsChecked } from './read-flows.js';
import { argumentOf, type TaskClass } from './task-class.js';

/** What a class's module must export again on a worker. */
export function scriptClassOf(cls: TaskClass, module: string): ScriptClass {
  return { name: cls.name, module, flows: cls.flowNames, signature: signatureOf(cls) };
}

function signatureOf({ flowNames, modes, elements, paramNames, definition }: TaskClass): string {
  const types = paramNames.map((name) => definition.params?.[name]);
  return JSON.stringify([flowNames, modes, elements, paramNames, types]);
}

/** Whether this thread is a script worker. */
export function isScriptWorker(): boolean {
  const data: unknown = workerData;
  return typeof data === 'object' && data !== null && 'scriptWorker' in data;
}

/** The error of a program that opens a runtime while a script worker loads its module. */
export function refusedOnWorker(): HeadraceError {
  return new HeadraceError('ERR_SCRIPT_RUNTIME', 'a script worker cannot open a runtime', {
    remedy:
      'script workers load the module of a task class: put the class into a module of its own, without the program',
  });
}

/**
 * Loads the module of a class, and makes the runner of its body.
 * @throws HeadraceError `ERR_SCRIPT_MODULE`
 */
export async function loadScriptClass(
  wanted: ScriptClass,
  space: ForgettingSpace,
  checked: boolean,
): Promise<RunBody> {
  const cls = await exportedClass(wanted);
  return checked ? checkedRunner(cls, space) : plainRunner(cls, new HostViews(space));
}

async function exportedClass(wanted: ScriptClass): Promise<TaskClass> {
  const { name, module } = wanted;
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(module)) as typeof exported;
  } catch (cause) {
    throw new HeadraceError(
      'ERR_SCRIPT_MODULE',
      `a script worker cannot load the module of task class '${name}', ${module}: ${describeThrown(cause)}`,
      { cause },
    );
  }
  // The named exports of a module of the older kind may be known only as properties of its default export.
  const older = exported['default'] as typeof exported | null | undefined;
  const found = (exported[name] ?? older?.[name]) as TaskClass | null | undefined;
  const remedy = `write \`export const ${name} = task({ name: '${name}', module: import.meta.url, ... })\``;
  if (typeof found?.definition?.body !== 'function') {
    throw new HeadraceError(
      'ERR_SCRIPT_MODULE',
      `module ${module} does not export task class '${name}'`,
      { remedy },
    );
  }
  const cls = shapeWith(found, wanted.flows);
  if (signatureOf(cls) !== wanted.signature) {
    throw new HeadraceError(
      'ERR_SCRIPT_MODULE',
      `module ${module} exports a task class '${name}' with other flows or parameters`,
      { remedy },
    );
  }
  return cls;
}

type Arguments = Record<string, unknown>;
type Body = (args: Arguments, context: object) => unknown;

/** Adds the parameters, which begin at `at`. */
function addParameters(cls: TaskClass, args: Arguments, from: Float64Array, at: number): void {
  const { paramNames } = cls;
  const types = cls.definition.params;
  for (let i = 0; i < paramNames.length; i++)
    args[paramNames[i]] = argumentOf(types?.[paramNames[i]], from[at + i]);
}

function plainRunner(cls: TaskClass, views: HostViews): RunBody {
  const body = cls.definition.body as unknown as Body;
  const { flowNames, elements } = cls;
  const each = elements.map(elementBytes);
  const context = workerContext(cls.name);
  return (from, flows, count) => {
    const args: Arguments = {};
    const lengths = count - flows;
    for (let i = 0; i < flows; i++) {
      const bytes = from[lengths + i] * each[i];
      args[flowNames[i]] = viewAs(elements[i], views.at(from[i], bytes));
    }
    addParameters(cls, args, from, flows);
    return promiseOf(body(args, context));
  };
}

function checkedRunner(cls: TaskClass, space: ForgettingSpace): RunBody {
  const body = withReadFlowsChecked(cls, cls.definition.body as never);
  const { flowNames, elements } = cls;
  const each = elements.map(elementBytes);
  const context = workerContext(cls.name);
  return (from, flows, count) => {
    const args: Arguments = {};
    const lengths = count - flows;
    const ends: (() => void)[] = [];
    for (let i = 0; i < flows; i++) {
      const buffer = space.hostView(from[i], from[lengths + i] * each[i]);
      const array: AnyElementArray = viewAs(elements[i], new Uint8Array(buffer));
      const { view, end } = mortalView(array, `flow '${flowNames[i]}' of task class '${cls.name}'`);
      args[flowNames[i]] = view;
      ends.push(() => {
        end();
        space.forget(buffer);
      });
    }
    addParameters(cls, args, from, flows);
    const over = (): void => {
      for (const end of ends) end();
    };
    let later: PromiseLike<unknown> | undefined;
    try {
      later = promiseOf(body(args, context));
    } finally {
      if (later === undefined) over();
    }
    return later === undefined ? undefined : Promise.resolve(later).finally(over);
  };
}
