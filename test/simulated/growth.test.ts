// The extension of the window for bodies, in virtual time, and the guards of its moving rows: without each guard a check
// fails.
import '../support/removable-guards.js';
import { afterEach, describe, expect, test } from 'vitest';
import type { Guards } from '../../devices/guards.js';
import { guardNames, setGuard } from '../../devices/simulated/cases/set-guard.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { presets } from '../../devices/simulated/machine/presets.js';
import {
  type Flow,
  type Graph,
  type Program,
  Runtime,
  read,
  readWrite,
  type TaskClass,
  task,
  write,
} from '../../index.js';
import { mergeSort, quadrature, tree } from '../support/growing.js';

const machine = { ...presets['h200-1'], gpus: 0, workers: 2, hostKernels: { '*': 1e-5 } };
/** Turns of the event loop after which a run that waits for nothing else counts as one that hangs. */
const TURNS = 5000;
let thrown: unknown;

type Opened = ReturnType<typeof Runtime.over>;

async function ending(run: PromiseLike<unknown>): Promise<string> {
  let end: string | undefined;
  run.then(
    () => {
      end = 'ok';
    },
    (error: Error) => {
      end = error.message;
    },
  );
  for (let i = 0; i < TURNS && end === undefined && thrown === undefined; i++)
    await new Promise((resolve) => setImmediate(resolve));
  return thrown === undefined ? (end ?? 'hangs') : String(thrown);
}

/** Keeps an error of the engine that would otherwise end the process. */
class Careful extends SimulatedBackend {
  override onWake(tick: () => void): void {
    super.onWake(() => {
      try {
        tick();
      } catch (error) {
        thrown ??= error;
      }
    });
  }

  override soon(tick: () => void): void {
    super.soon(() => {
      try {
        tick();
      } catch (error) {
        thrown ??= error;
      }
    });
  }
}

const open = (window = 4): Opened => Runtime.over(new Careful({ machine }), { window });

/** Kernels are under way, with others behind them, when a body extends the window. */
function chains(runtime: Opened): Program {
  const kernel = task({ name: 'kernel', flows: { x: readWrite('f64') }, kernel: 'empty' });
  const data = Array.from({ length: 3 }, () => runtime.data(new Float64Array(1)));
  let graph: Graph;
  const unfold = task({
    name: 'unfold',
    flows: {},
    body: () => {
      for (let i = 0; i < 300; i++) graph.insert(kernel, { x: data[i % 3] });
    },
  });
  return (g) => {
    graph = g;
    for (let i = 0; i < 3; i++) graph.insert(kernel, { x: data[i] });
    graph.insert(unfold, {});
    for (let i = 0; i < 300; i++) graph.insert(kernel, { x: data[i % 3] });
  };
}

/** A body extends the window while others wait for it, in rows that their numbers do not have in the larger one. */
function bodies(runtime: Opened): Program {
  const x = runtime.data(new Float64Array(1));
  let graph: Graph;
  const leaf = task({ name: 'leaf', flows: { x: readWrite('f64') }, body: () => {} });
  const grow = task({
    name: 'grow',
    flows: { x: readWrite('f64') },
    body: () => {
      for (let i = 0; i < 100; i++) graph.insert(leaf, { x });
    },
  });
  return (g) => {
    graph = g;
    for (let i = 0; i < 6; i++) graph.insert(leaf, { x });
    for (let i = 0; i < 20; i++) graph.insert(grow, { x });
  };
}

/** More parents than bodies may be under way, each of which awaits a task that it inserted. */
function parents(runtime: Opened): Program {
  let graph: Graph;
  const gate = runtime.data(new Float64Array(1));
  let begin = (): void => {};
  const hold = task({
    name: 'hold',
    flows: { gate: readWrite('f64') },
    body: () =>
      new Promise<void>((resolve) => {
        begin = resolve;
      }),
  });
  const parent = task({
    name: 'parent',
    flows: { gate: read('f64') },
    body: () =>
      new Promise<void>((resolve) => {
        graph.insert(task({ name: 'child', flows: {}, body: () => resolve() }), {});
      }),
  });
  return (g) => {
    graph = g;
    // All are ready at once, and before what they insert.
    graph.insert(hold, { gate });
    for (let i = 0; i < 100; i++) graph.insert(parent, { gate });
    begin();
  };
}

/** Parents await space before they go on, and more reads than half a window wait for what is still to be inserted. */
function spaces(runtime: Opened): Program {
  let graph: Graph;
  const node: TaskClass<{ readonly out: Flow<'f64', 'write'> }, { readonly left: 'i32' }> = task({
    name: 'node',
    flows: { out: write('f64') },
    params: { left: 'i32' },
    body: async ({ left }): Promise<void> => {
      if (left === 1) return;
      const children = [runtime.data('f64', 1), runtime.data('f64', 1)];
      for (const out of children) graph.insert(node, { out, left: left - 1 });
      const sums = children.map((child) => child.read());
      await graph.space();
      await Promise.all(sums);
    },
  });
  const root = runtime.data('f64', 1);
  return (g) => {
    graph = g;
    graph.insert(node, { out: root, left: 7 });
  };
}

afterEach(() => {
  for (const guard of guardNames) setGuard(guard, true);
  thrown = undefined;
});

describe('the extended window', () => {
  test.each([4, 16384])('trees, quadrature and sorting grow, in a window of %i', async (window) => {
    const runtime = open(window);
    const { program, seen } = tree(14);
    await runtime.run(program);
    expect(seen.ran).toBe(2 ** 14 - 1);
    const area = quadrature(1e-14);
    await runtime.run(area.program);
    expect(area.seen.sum).toBeCloseTo(2 / 3, 10);
    const sorted = runtime.data('f64', 100);
    // Simulated memory has no contents: what counts is that parents and children all end.
    const report = await runtime.run(mergeSort(runtime, new Float64Array(100), sorted));
    expect(report.tasks).toBe(63);
    await runtime.close();
  });

  const rows = [
    ['movedEdges', 'a successor is lost', bodies],
    ['movedFlight', 'a completion goes to another task', chains],
    ['spaceForBodies', 'bodies await space that only they can make', spaces],
    ['parentSlots', 'parents keep their children from starting', parents],
  ] as const satisfies readonly (readonly [keyof Guards, string, unknown])[];

  test.each(rows)('without %s: %s', async (guard, _breaks, program) => {
    const whole = open();
    expect(await ending(whole.run(program(whole)))).toBe('ok');
    setGuard(guard, false);
    const runtime = open();
    let end: string;
    try {
      end = await ending(runtime.run(program(runtime)));
    } catch (error) {
      end = String(error);
    }
    expect(end).not.toBe('ok');
  });
});
