// Programs that pass and throw arbitrary values: no value ends the process, every wrong value is refused with a typed
// error, and the graph stays unchanged.
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  DeclaredGraph,
  type Graph,
  HeadraceError,
  Runtime,
  type RuntimeOptions,
  readWrite,
  type TaskHandle,
  TiledMatrix,
  task,
} from '../../index.js';
import { describeThrown } from '../../trace/thrown.js';
import { HOSTS, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, script, spin } from '../support/tasks.js';

const COUNT = 4;
const { options } = HOSTS[0];
const as = (value: unknown): never => value as never;

/** Values that do not even let themselves be turned into text. */
const unspeakable: readonly (readonly [string, () => unknown])[] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['a symbol', () => Symbol('s')],
  ['an object without prototype', () => Object.create(null)],
  ['an object whose toString throws', () => ({ toString: () => as(fail()) })],
  [
    'an error whose message throws',
    () => Object.defineProperty(new Error(), 'message', { get: fail }),
  ],
  ['an error whose message is no text', () => Object.assign(new Error(), { message: Symbol('m') })],
  [
    'a proxy that throws at everything',
    () => new Proxy({}, { getPrototypeOf: fail, get: fail, has: fail }),
  ],
  [
    'an error of Headrace without facts',
    () => Object.assign(new HeadraceError('E', 'e'), { details: undefined }),
  ],
];

function fail(): never {
  throw new Error('no');
}

describe('whatever is thrown', () => {
  it.each(unspeakable)('%s has words', (_, make) => {
    expect(typeof describeThrown(make())).toBe('string');
    const error = new HeadraceError('ERR_X', 'x', { cause: make() });
    expect(() => JSON.stringify(error)).not.toThrow();
  });

  it.each(unspeakable)(
    '%s from a body, a program or a signal rejects that run only',
    async (_, make) => {
      await onMachine(options, async (runtime) => {
        const datum = runtime.data(new Float64Array(COUNT));
        const bodies = [
          () => {
            throw make();
          },
          () => Promise.reject(make()),
          () => Object.defineProperty({}, 'then', { get: () => as(throws(make())) }),
          () => ({ then: () => throws(make()) }),
          () => ({ then: (_ok: unknown, no: (cause: unknown) => void) => no(make()) }),
        ];
        for (const body of bodies) {
          const run = runtime.run((graph) => {
            graph.insert(script('thrower', as(body)), { of: datum });
          });
          const error = (await soon(
            runtime,
            run.then(
              () => undefined,
              (e: unknown) => e,
            ),
          )) as HeadraceError;
          expect(error).toBeInstanceOf(HeadraceError);
          expect(error.details.task).toContain('thrower');
        }
        for (const program of bodies) {
          const run = runtime.run(as(program));
          const error = await soon(
            runtime,
            run.then(
              () => undefined,
              (e: unknown) => e,
            ),
          );
          expect(Object.prototype.toString.call(error)).toBe('[object Error]');
        }
        const stop = new AbortController();
        stop.abort(make());
        await expect(
          soon(
            runtime,
            runtime.run(() => {}, { signal: stop.signal }),
          ),
        ).rejects.toMatchObject({
          code: 'ERR_ABORTED',
        });
        await datum.set(new Float64Array(COUNT).fill(3));
        expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(3));
        await nothingLeft(runtime, [datum]);
      });
    },
  );

  it('the result of a body or program is treated like the operand of await', async () => {
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT));
      const plain = [{ then: 5 }, { then: undefined }, 7, 'then', Object.create(null), () => {}];
      const later = [
        { then: (ok: () => void) => ok() },
        {
          then: (ok: () => void, no: (cause: unknown) => void) => {
            ok();
            no(new Error('too late'));
            ok();
            throw new Error('too late');
          },
        },
        Object.assign(() => {}, { then: (ok: () => void) => ok() }),
      ];
      for (const value of [...plain, ...later]) {
        expect(
          (
            await soon(
              runtime,
              runtime.run(() => as(value)),
            )
          ).tasks,
        ).toBe(0);
        const report = await soon(
          runtime,
          runtime.run(
            (graph) =>
              void graph.insert(
                script('s', () => as(value)),
                { of: datum },
              ),
          ),
        );
        expect(report.tasks).toBe(1);
      }
      // Whoever never answers keeps its own run open; others go on, and it ends with its answer.
      let answer = (): void => {};
      const silent = { then: (ok: () => void) => (answer = ok) };
      const run = runtime.run(
        (graph) =>
          void graph.insert(
            script('silent', () => as(silent)),
            { of: datum },
          ),
      );
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(spin, { microseconds: 1 })),
      );
      run.cancel(Object.create(null));
      answer();
      await expect(soon(runtime, run)).rejects.toMatchObject({ code: 'ERR_ABORTED' });
      await nothingLeft(runtime, [datum]);
    });
  });

  it('a listener that throws, and an explain that throws, do not keep a run from ending', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    await onMachine(options, async (runtime) => {
      const good = runtime.run((graph) => void graph.insert(spin, { microseconds: 1 }));
      const bad = runtime.run(() => fail());
      for (const event of ['progress', 'end', 'error'] as const) {
        good.events.on(event, () => throws(Object.create(null)));
        bad.events.on(event, fail);
      }
      expect((await soon(runtime, good)).tasks).toBe(1);
      await expect(soon(runtime, bad)).rejects.toThrow('no');
      expect(warned.mock.calls.some(([text]) => String(text).includes("event 'end'"))).toBe(true);
      const coded = task({
        name: 'coded',
        flows: { of: readWrite('f64') },
        params: { code: 'i32' },
        kernel: 'fail',
        explain: fail,
      });
      const datum = runtime.data(new Float64Array(COUNT));
      const failed = runtime.run((graph) => void graph.insert(coded, { of: datum, code: 9 }));
      await expect(soon(runtime, failed)).rejects.toThrow('kernel returned 9');
      await nothingLeft(runtime, [datum]);
    });
    warned.mockRestore();
  });
});

function throws(value: unknown): never {
  throw value;
}

const odd: readonly (() => unknown)[] = [
  ...unspeakable.map(([, make]) => make),
  () => new Proxy([], { get: fail }),
  () => 2 ** 31,
  () => 2 ** 40,
  () => -1,
  () => 0.5,
  () => Number.NaN,
  () => 'host',
];
/** Anything that a program may have in a variable; in a box, because fast-check looks at the values it makes. */
const anything = fc.oneof(
  fc
    .anything({
      withNullPrototype: true,
      withBigInt: true,
      withTypedArray: true,
      withSparseArray: true,
    })
    .map((value) => ({ value })),
  fc.nat({ max: odd.length - 1 }).map((i) => ({ value: odd[i]() })),
);

describe('Graph.insert with anything anywhere', () => {
  it('accepts right values and refuses the rest with a typed error, and the graph stays unchanged', async () => {
    const wide = task({
      name: 'wide',
      flows: { to: readWrite('f64') },
      params: { real: 'f64', whole: 'i32', yes: 'bool' },
      body: ({ to }) => {
        to[0]++;
      },
    });
    await onMachine(options, async (runtime) => {
      const datum = runtime.data(new Float64Array(COUNT), { name: 'counter' });
      let expected = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(
            'class',
            'args',
            'to',
            'real',
            'whole',
            'yes',
            'options',
            'priority',
            'device',
            'rank',
            'after',
            'handle',
            'unknown',
          ),
          anything,
          async (where, { value }) => {
            const run = runtime.run((graph) => {
              const handle = graph.insert(wide, { to: datum, real: 1, whole: 1, yes: true });
              expected++;
              const { tasks } = runtime.engine;
              const before = tasks.next;
              try {
                insertWith(graph, wide, datum, handle, where, value);
                expected++;
              } catch (error) {
                if (!(error instanceof HeadraceError) && (error as Error).message !== 'no')
                  throw error;
                expect(tasks.next).toBe(before);
              }
              graph.insert(wide, { to: datum, real: 1, whole: 1, yes: true }, { after: [handle] });
              expected++;
            });
            await soon(runtime, run);
            expect((await datum.read())[0]).toBe(expected);
          },
        ),
        { numRuns: 400 },
      );
      await nothingLeft(runtime, [datum]);
    });
  });

  it('refuses handles that are none, naming their place', async () => {
    await onMachine(options, async (runtime) => {
      const errors: string[] = [];
      await soon(
        runtime,
        runtime.run((graph) => {
          const h = graph.insert(spin, { microseconds: 1 });
          const wrong = [
            h,
            [undefined],
            ['a'],
            [h, [h]],
            [2 ** 40],
            [0],
            [-1],
            [h + 1],
            [1.5],
            new Set([h]),
            Array<unknown>(1),
          ];
          for (const after of wrong) {
            try {
              graph.insert(spin, { microseconds: 1 }, { after: as(after) });
              errors.push('taken');
            } catch (error) {
              errors.push((error as HeadraceError).code);
            }
          }
          graph.insert(spin, { microseconds: 1 }, { after: [h, h] });
        }),
      );
      const [type, unknown] = ['ERR_ARGUMENT_TYPE', 'ERR_UNKNOWN_TASK'];
      expect(errors).toEqual([
        type,
        type,
        type,
        type,
        unknown,
        unknown,
        unknown,
        unknown,
        unknown,
        type,
        type,
      ]);
    });
  });

  it('refuses arguments whose getters insert, close or cancel', async () => {
    await onMachine(options, async (runtime) => {
      const to = runtime.data(new Float64Array(COUNT));
      const from = runtime.data(new Float64Array(COUNT).fill(1));
      const gone = runtime.data(new Float64Array(COUNT));
      const run = runtime.run((graph) => {
        const inner = (): number => {
          graph.insert(add, { to, from, count: COUNT });
          return COUNT;
        };
        const closing = (): number => {
          gone.close();
          return COUNT;
        };
        for (const count of [inner, closing]) {
          const args = Object.defineProperty({ to, from }, 'count', { get: count });
          expect(() => graph.insert(add, as(args))).toThrow('reading its arguments');
        }
        graph.insert(add, { to, from, count: COUNT });
      });
      expect((await soon(runtime, run)).tasks).toBe(2);
      expect((await to.read())[0]).toBe(2);
      const cancelled = runtime.run((graph) => {
        const count = (): number => {
          cancelled.cancel();
          return COUNT;
        };
        return Promise.resolve().then(() => {
          graph.insert(add, as(Object.defineProperty({ to, from }, 'count', { get: count })));
        });
      });
      await expect(soon(runtime, cancelled)).rejects.toMatchObject({ code: 'ERR_ABORTED' });
      expect((await to.read())[0]).toBe(2);
      await nothingLeft(runtime, [to, from]);
    });
  });
});

function insertWith(
  graph: Graph,
  cls: unknown,
  datum: unknown,
  handle: TaskHandle,
  where: string,
  value: unknown,
): void {
  const args: Record<string, unknown> = { to: datum, real: 1, whole: 1, yes: true };
  const given: Record<string, unknown> = {};
  if (where in args) args[where] = value;
  else if (where === 'handle') given['after'] = [handle, value];
  else given[where] = value;
  graph.insert(
    as(where === 'class' ? value : cls),
    as(where === 'args' ? value : args),
    as(where === 'options' ? value : where === 'class' || where === 'args' ? undefined : given),
  );
}

describe('data, matrices, runs and runtimes with anything anywhere', () => {
  it('refuse it with a typed error and stay usable', async () => {
    await onMachine(options, async (runtime) => {
      const rows = runtime.engine.directory.length;
      const refused = (action: () => unknown): void => {
        try {
          const made = action();
          if (typeof made === 'object' && made !== null && 'close' in made)
            (made.close as () => void)();
        } catch (error) {
          if (!(error instanceof HeadraceError) && (error as Error).message !== 'no') throw error;
        }
      };
      fc.assert(
        fc.property(anything, ({ value }) => {
          if (typeof value === 'number' || ArrayBuffer.isView(value)) return;
          refused(() => runtime.data(as(value)));
          refused(() => runtime.data('f64', as(value)));
          refused(() => runtime.data('f64', 2, as(value)));
          for (const name of ['name', 'device', 'rank', 'rows'])
            refused(() => runtime.data('f64', 2, as({ [name]: value })));
          refused(() => new TiledMatrix(runtime, 'f64', as(value)));
          for (const name of ['rows', 'columns', 'tile', 'grid', 'rankGrid', 'lower', 'name'])
            refused(() => new TiledMatrix(runtime, 'f64', as({ rows: 2, tile: 2, [name]: value })));
          refused(() => task(as(value)));
          for (const name of ['name', 'flows', 'params', 'body', 'kernel', 'explain', 'fetch'])
            refused(() => task(as({ name: 'x', flows: {}, kernel: 'empty', [name]: value })));
          refused(() =>
            new DeclaredGraph().add('x', spin, { microseconds: 1 }, as({ after: value })),
          );
          if (typeof value !== 'function') refused(() => runtime.run(as(value)));
          for (const name of ['name', 'pruned', 'signal']) {
            refused(() => {
              runtime.run(() => {}, as({ [name]: value }));
            });
          }
        }),
        { numRuns: 200 },
      );
      await soon(runtime, runtime.engine.quiet());
      expect(runtime.engine.directory.length - rows).toBeLessThan(64);
      await nothingLeft(runtime, []);
    });
  });

  it.each([
    { hostMemory: '9e99' },
    { hostMemory: 2 ** 60 },
    { hostMemory: `${'9'.repeat(400)}` },
    { hostMemory: Symbol('s') },
    { gpuMemory: '20000000TiB' },
    { gpus: Number.NaN },
    { window: 2 ** 40 },
    { windows: 16 },
    { trace: 5 },
    { name: Object.create(null) },
    { checked: 'yes' },
    { comm: Symbol('s') },
    null,
    [],
  ])('Runtime.create refuses %#', async (wrong) => {
    await expect(Runtime.create(wrong as unknown as RuntimeOptions)).rejects.toMatchObject({
      code: 'ERR_OPTION',
    });
  });

  it('sizes beyond all limits are typed errors', async () => {
    await onMachine(options, async (runtime) => {
      const code = (action: () => unknown): string => {
        try {
          action();
        } catch (error) {
          return (error as HeadraceError).code;
        }
        return 'taken';
      };
      for (const length of [Number.NaN, -1, 0, 0.5, Number.POSITIVE_INFINITY, 2 ** 53 - 1, 2 ** 51])
        expect(code(() => runtime.data('f64', length))).toBe('ERR_OPTION');
      for (const rows of [2 ** 20, 2 ** 33, 2 ** 53 - 1])
        expect(code(() => new TiledMatrix(runtime, 'f64', { rows, tile: 1, name: 'A' }))).toBe(
          'ERR_OPTION',
        );
      // Tiles that exist on paper only cannot be read.
      const huge = runtime.data('f64', 2 ** 40, { name: 'huge' });
      expect(
        code(() =>
          runtime.run(
            (graph) =>
              void graph.insert(
                script('s', () => {}),
                { of: huge },
              ),
          ),
        ),
      ).toBe('taken');
      const filled = runtime.engine.directory.length;
      expect(
        code(
          () =>
            new TiledMatrix(runtime, 'f64', { rows: 8, tile: 2 }, (_values, row) => {
              if (row > 4) throw new HeadraceError('ERR_MINE', 'mine');
            }),
        ),
      ).toBe('ERR_MINE');
      await soon(runtime, runtime.engine.quiet());
      expect(runtime.engine.directory.length).toBeGreaterThanOrEqual(filled);
      await nothingLeft(runtime, [huge]);
    });
  });
});
