// Plans in files: what is loaded plays as what was saved, in other runtimes; and every file, machine, datum and class that does not
// fit is refused.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cholesky, tileClasses } from '../../algorithms/index.js';
import {
  type Datum,
  HeadraceError,
  type LoadPlanOptions,
  type Plan,
  type PlanGraph,
  Runtime,
  type RuntimeOptions,
  read,
  readWrite,
  slot,
  TiledMatrix,
  type TiledMatrixOptions,
  task,
  write,
} from '../../index.js';
import { contentOf, fileOf } from '../../scheduler/plans/file-format.js';
import { taskTexts, tracedWith } from '../support/played-traces.js';
import { axpy } from '../support/tasks.js';

const options: RuntimeOptions = {
  workers: 2,
  scriptWorkers: 0,
  hostMemory: '64MiB',
  checked: true,
};
const N = 512;

const check = task({
  name: 'check',
  flows: { y: readWrite('f64') },
  params: { code: 'i32' },
  kernel: 'fail',
  explain: (code, { data, params }) => `${data.y} has ${params.code}, so ${code}`,
});

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plans-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, 'step.plan');

interface Blocks {
  readonly runtime: Runtime;
  readonly blocks: Datum<'f64'>[];
}

const BLOCKS = 8;

/** Named blocks of 4 KiB, made in this order. */
async function opened(
  more: RuntimeOptions = {},
  order = Array.from({ length: BLOCKS }, (_, b) => b),
): Promise<Blocks> {
  const runtime = await Runtime.create({ ...options, ...more });
  const blocks: Datum<'f64'>[] = [];
  for (const b of order)
    blocks[b] = runtime.data(
      Float64Array.from({ length: N }, (_, i) => b + i / 64),
      { name: `block ${b}` },
    );
  return { runtime, blocks };
}

const insertStep = (graph: PlanGraph, blocks: readonly Datum<'f64'>[], device?: number): void => {
  const where = device === undefined ? {} : { device };
  for (let b = 1; b < BLOCKS; b++)
    graph.insert(axpy, { y: blocks[b], x: blocks[b - 1], n: N, a: slot('a') }, where);
  graph.insert(check, { y: blocks[0], code: slot('code') });
};

const valuesOf = async (blocks: readonly Datum<'f64'>[]): Promise<string> =>
  (await Promise.all(blocks.map((d) => d.read()))).join();

const errorOf = async (failed: () => Promise<unknown>): Promise<HeadraceError> => {
  try {
    await failed();
  } catch (error) {
    if (error instanceof HeadraceError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
};

describe('a loaded plan', () => {
  test.each([
    ['on the host', {}, undefined],
    ['resident on a GPU', { gpus: 1, gpuMemory: '64KiB' }, 0],
    ['that evicts', { gpus: 1, gpuMemory: '24KiB' }, 0],
  ] as const)('plays as the one that was saved, %s', async (_, more, device) => {
    const made = await opened(more);
    const plan = await made.runtime.plan((graph) => insertStep(graph, made.blocks, device), {
      name: 'step',
      graph: 'never',
    });
    await plan.save(file);
    // Other rows and other numbers of classes and kernels.
    const other = await opened(more, [3, 1, 7, 0, 2, 6, 5, 4]);
    other.runtime.prepare(check);
    const again = await other.runtime.loadPlan(file, {
      data: [other.blocks[0], other.blocks],
      classes: [check, axpy],
    });
    const figures = ({ report }: Plan): object => ({ ...report, planning: 0 });
    expect(figures(again)).toEqual(figures(plan));
    expect(again.report.planning).toBeGreaterThan(0);
    expect(again.name).toBe('step');
    const play = async (it: Plan, blocks: readonly Datum<'f64'>[]): Promise<string> => {
      const values = { a: (i: number) => 1 / (i + 1), code: 0 };
      await it.run({ times: 5, values });
      const { iterations } = await it.run({
        times: 100,
        values: { a: 0.5, code: 0 },
        while: { datum: blocks[7], below: 1e4, every: 2 },
      });
      const error = await errorOf(() =>
        it.run({ times: 3, values: { a: 1, code: (i: number) => (i === 1 ? 9 : 0) } }),
      );
      expect(error.message).toContain("check(code = 9) in iteration 1 of plan 'step'");
      expect(error.message).toContain('block 0 has 9, so 9');
      blocks[0].set(new Float64Array(N).fill(1));
      await Promise.all(blocks.map((d) => d.restore().catch(() => d.set(new Float64Array(N)))));
      await it.run({ values: { a: 2, code: 0 } });
      return `${iterations} ${await valuesOf(blocks)}`;
    };
    expect(await play(again, other.blocks)).toBe(await play(plan, made.blocks));
    again.close();
    expect((await errorOf(() => again.run())).code).toBe('ERR_PLAN_CLOSED');
    await made.runtime.close();
    await other.runtime.close();
  });

  test('may be saved again, as the same file', async () => {
    const { runtime, blocks } = await opened({ gpus: 1, gpuMemory: '24KiB' });
    const plan = await runtime.plan((graph) => insertStep(graph, blocks, 0), { name: 'step' });
    await plan.save(file);
    const before = readFileSync(file);
    const again = await runtime.loadPlan(file, { data: blocks, classes: [axpy, check] });
    await again.save(file);
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(readdirSync(folder)).toEqual(['step.plan']);
    await runtime.close();
  });

  test('takes the tiles of a matrix, and classes that share a name', async () => {
    const matrix = (runtime: Runtime): TiledMatrix<'f64'> => {
      const shape: TiledMatrixOptions = { rows: 64, tile: 16, lower: true, name: 'A' };
      return new TiledMatrix(runtime, 'f64', shape, (values, row, column, rows) => {
        values.forEach((_, i) => {
          values[i] = row + (i % rows) === column + Math.floor(i / rows) ? 100 : 1;
        });
      });
    };
    const made = await Runtime.create({ ...options, gpus: 2 });
    const A = matrix(made);
    const plan = await made.plan((graph) => cholesky(graph, A), { name: 'factor' });
    await plan.save(file);
    await plan.run();
    const other = await Runtime.create({ ...options, gpus: 2 });
    const B = matrix(other);
    const classes = Object.values(tileClasses('f64'));
    const again = await other.loadPlan(file, { data: B, classes });
    await again.run();
    expect(await B.read()).toEqual(await A.read());
    for (const matrixOf of [A, B]) matrixOf.at(2, 2).set(new Float64Array(256));
    const errors = await Promise.all([again, plan].map((p) => errorOf(() => p.run())));
    expect(errors[0].message).toBe(errors[1].message);
    expect(errors[0].code).toBe('ERR_NOT_POSITIVE_DEFINITE');
    expect(errors[0].message).toContain('tile A(2, 2) is not positive');
    await made.close();
    await other.close();
  });

  test('is traced as the one that was saved', async () => {
    const [made, loaded] = [false, true].map((loads) =>
      tracedWith(
        (trace) => opened({ trace, gpus: 1, gpuMemory: '24KiB' }).then(({ runtime }) => runtime),
        async (runtime) => {
          const blocks = Array.from({ length: BLOCKS }, (_, b) =>
            runtime.data(new Float64Array(N).fill(b), { name: `block ${b}` }),
          );
          let plan = await runtime.plan((graph) => insertStep(graph, blocks, 0), { name: 'step' });
          if (loads) {
            await plan.save(file);
            plan = await runtime.loadPlan(file, { data: blocks, classes: [axpy, check] });
          }
          await plan.run({ times: 4, values: { a: (i) => i, code: 0 } });
        },
      ),
    );
    expect(taskTexts(await loaded)).toEqual(taskTexts(await made));
  });

  test('without tasks is a file as well', async () => {
    const { runtime } = await opened();
    const plan = await runtime.plan(() => {});
    await plan.save(file);
    const again = await runtime.loadPlan(file, { data: [], classes: [] });
    expect((await again.run({ times: 3 })).tasks).toBe(0);
    await runtime.close();
  });
});

describe('save refuses', () => {
  test('data without names of their own, and works once they have them', async () => {
    const runtime = await Runtime.create(options);
    const make = (name?: string): Datum<'f64'> =>
      runtime.data(new Float64Array(N), name === undefined ? {} : { name });
    const plan = (y: Datum<'f64'>, x: Datum<'f64'>): Promise<Plan> =>
      runtime.plan((graph) => void graph.insert(axpy, { y, x, n: N, a: 1 }));
    const unnamed = await errorOf(async () => (await plan(make('y'), make())).save(file));
    expect(unnamed.code).toBe('ERR_PLAN_NAMES');
    expect(unnamed.message).toContain('datum data-1 got no name from the program');
    expect(unnamed.message).toContain("runtime.data(values, { name: '...' })");
    const twice = await errorOf(async () => (await plan(make('y'), make('y'))).save(file));
    expect(twice.message).toContain('several data are named y');
    await (await plan(make('y'), make('x'))).save(file);
    await runtime.close();
  });

  test('two classes that a file cannot tell apart', async () => {
    const { runtime, blocks } = await opened();
    const same = task({ ...axpy.definition });
    const flows = { y: write('f64'), x: read('f64') };
    const wider = task({ ...axpy.definition, flows } as never) as unknown as typeof axpy;
    const plan = (other: typeof axpy): Promise<Plan> =>
      runtime.plan((graph) => {
        graph.insert(axpy, { y: blocks[1], x: blocks[0], n: N, a: 1 });
        graph.insert(other, { y: blocks[1], x: blocks[0], n: N, a: 1 });
      });
    const error = await errorOf(async () => (await plan(same)).save(file));
    expect([error.code, error.details.task]).toEqual(['ERR_PLAN_NAMES', 'axpy']);
    await (await plan(wider)).save(file);
    await runtime.loadPlan(file, { data: blocks, classes: [wider, axpy] });
    await runtime.close();
  });

  test('a closed plan, a closed runtime, and a file that cannot be written', async () => {
    const { runtime, blocks } = await opened();
    const plan = await runtime.plan((graph) => insertStep(graph, blocks));
    const nowhere = path.join(folder, 'nowhere', 'step.plan');
    expect((await errorOf(() => plan.save(nowhere))).code).toBe('ERR_PLAN_FILE');
    expect((await errorOf(() => plan.save(7 as never))).code).toBe('ERR_OPTION');
    expect((await errorOf(() => plan.save(folder))).code).toBe('ERR_PLAN_FILE');
    expect(readdirSync(path.dirname(folder)).filter((name) => name.endsWith('.part'))).toEqual([]);
    plan.close();
    expect((await errorOf(() => plan.save(file))).code).toBe('ERR_PLAN_CLOSED');
    await runtime.close();
    expect((await errorOf(() => plan.save(file))).code).toBe('ERR_RUNTIME_CLOSED');
  });
});

describe('loadPlan refuses', () => {
  const whole = path.join(folder, 'whole.plan');
  const changed = path.join(folder, 'changed.plan');
  let bytes: Uint8Array<ArrayBuffer>;

  beforeAll(async () => {
    const { runtime, blocks } = await opened({ gpus: 1, gpuMemory: '24KiB' });
    await (await runtime.plan((graph) => insertStep(graph, blocks, 0), { name: 'step' })).save(
      whole,
    );
    await runtime.close();
    bytes = new Uint8Array(readFileSync(whole));
  });

  /** The refusal of the file in a runtime with these options. */
  async function refusal(
    more: RuntimeOptions,
    give: (made: Blocks) => LoadPlanOptions = ({ blocks }) => ({
      data: blocks,
      classes: [axpy, check],
    }),
    from = whole,
  ): Promise<string> {
    const made = await opened({ gpus: 1, gpuMemory: '24KiB', ...more });
    const error = await errorOf(() => made.runtime.loadPlan(from, give(made)));
    // Nothing has changed: the same runtime loads it when all is right.
    await made.runtime.close();
    return `${error.code}: ${error.message}`;
  }

  test.each([
    [
      { workers: 1 },
      'made for 2 workers, 1 emulated GPU with 1 compute stream, and this runtime has 1 worker, 1',
    ],
    [{ gpus: 0 }, 'and this runtime has 2 workers and no GPU'],
    [{ gpus: 2 }, '2 emulated GPU with 1 compute stream and peer access'],
    [{ computeStreams: 2 }, '1 emulated GPU with 2 compute streams'],
    [{ gpuMemory: '16KiB' }, 'bytes of emulated GPU 0, which has 16384; it was made for 24576'],
  ])('a machine of another shape: %j', async (more, text) => {
    const found = await refusal(more);
    expect(found).toContain("ERR_PLAN_MISMATCH: plan 'step' cannot be loaded here: ");
    expect(found).toContain(text);
  });

  test('too little host memory, and takes more memory', async () => {
    expect(await refusal({ hostMemory: '32KiB' }, () => ({ data: [], classes: [] }))).toContain(
      'ERR_PLAN_MISMATCH',
    );
    const { runtime, blocks } = await opened({ gpus: 1, gpuMemory: '48KiB', hostMemory: '32MiB' });
    await runtime.loadPlan(whole, { data: blocks, classes: [axpy, check] });
    await runtime.close();
  });

  const remade = (of: Blocks, b: number, values: Float64Array | Int32Array): Datum => {
    of.blocks[b].close();
    const { name } = of.blocks[b];
    return values instanceof Int32Array
      ? of.runtime.data(values, { name })
      : of.runtime.data(values, { name });
  };

  test.each<[string, (made: Blocks) => unknown, string]>([
    ['none', () => [], "data 'block 1', 'block 0', 'block 2'"],
    [
      'one is missing',
      ({ blocks }) => blocks.slice(1),
      "it uses datum 'block 0', and the option data has none",
    ],
    [
      'another size',
      (made) => [
        remade(made, 3, new Float64Array(N + 1)),
        ...made.blocks.filter((_, b) => b !== 3),
      ],
      "datum 'block 3' has 4104 bytes of f64, and the plan was made for 4096 bytes of f64",
    ],
    [
      'another element type',
      (made) => [remade(made, 3, new Int32Array(2 * N)), ...made.blocks.filter((_, b) => b !== 3)],
      "datum 'block 3' has 4096 bytes of i32",
    ],
    [
      'two of one name',
      ({ runtime, blocks }) => [...blocks, runtime.data(new Float64Array(N), { name: 'block 3' })],
      "several of the given data are named 'block 3'",
    ],
    ['no data', () => [{ name: 'block 0' }], 'ERR_ARGUMENT_TYPE: the option data of loadPlan'],
    ['nothing', () => undefined, 'ERR_ARGUMENT_TYPE: the option data of loadPlan'],
    [
      'closed',
      ({ blocks }) => {
        blocks[2].close();
        return blocks;
      },
      "ERR_DATUM_CLOSED: datum 'block 2' is closed",
    ],
    [
      'never written',
      ({ runtime, blocks }) => {
        blocks[2].close();
        return [...blocks.filter((_, b) => b !== 2), runtime.data('f64', N, { name: 'block 2' })];
      },
      "ERR_NEVER_WRITTEN: datum 'block 2' is read",
    ],
  ])('data that do not fit: %s', async (_, data, text) => {
    const found = await refusal({}, (made) => ({
      data: data(made) as LoadPlanOptions['data'],
      classes: [axpy, check],
    }));
    expect(found).toContain(text);
  });

  test('data of another runtime', async () => {
    const other = await opened();
    const found = await refusal({}, () => ({ data: other.blocks, classes: [axpy, check] }));
    expect(found).toContain('ERR_FOREIGN_DATUM');
    await other.runtime.close();
  });

  const { definition } = axpy;
  test.each<[string, unknown, string]>([
    ['none', [], "task classes 'axpy', 'check'"],
    [
      'one is missing',
      check,
      "it uses task class 'axpy', and the option classes has none of that name",
    ],
    [
      'another flow',
      [check, task({ ...definition, flows: { y: write('f64'), x: read('f64') } } as never)],
      'its flows are y: write f64, x: read f64, and the plan was made with y: readWrite f64, x: read f64',
    ],
    [
      'another parameter',
      [check, task({ ...definition, params: { n: 'f64', a: 'f64' } } as never)],
      'its parameters are n: f64, a: f64, and the plan was made with n: i32, a: f64',
    ],
    [
      'another kernel',
      [check, task({ ...definition, kernel: 'copy_bytes' })],
      'its kernel is copy_bytes, and the plan was made with add_f64',
    ],
    [
      'no kernel on GPUs',
      [check, task({ ...definition, gpuKernel: false })],
      'its kernel on GPUs is none',
    ],
    [
      'the same twice',
      [check, axpy, task(definition)],
      "several of the given classes are the same 'axpy'",
    ],
    [
      'no class',
      ['axpy', check],
      "ERR_ARGUMENT_TYPE: the option classes of loadPlan has task classes, not 'axpy'",
    ],
  ])('classes that do not fit: %s', async (_, classes, text) => {
    const found = await refusal({}, ({ blocks }) => ({
      data: blocks,
      classes: classes as LoadPlanOptions['classes'],
    }));
    expect(found).toContain(text);
  });

  const fileRefusal = async (content: Uint8Array): Promise<string> => {
    writeFileSync(changed, content);
    return refusal({}, undefined, changed);
  };

  test('a file that is missing, empty, or of another kind', async () => {
    expect(await refusal({}, undefined, path.join(folder, 'nothing'))).toContain(
      `ERR_PLAN_FILE: ${path.join(folder, 'nothing')} cannot be read`,
    );
    for (const content of [new Uint8Array(0), Buffer.from('x'.repeat(5000))])
      expect(await fileRefusal(content)).toContain('it is not the file of a plan');
  });

  test('a file that is cut or longer, wherever', async () => {
    for (let cut = 0; cut < bytes.length; cut += 97)
      expect(await fileRefusal(bytes.slice(0, cut)), `${cut}`).toMatch(
        cut < 56 ? /is not the file of a plan/ : /it has \d+ bytes, and should have \d+/,
      );
    expect(await fileRefusal(Buffer.concat([bytes, Buffer.alloc(8)]))).toContain('should have');
  });

  test('a file with a changed byte, wherever', async () => {
    for (let at = 0; at < bytes.length; at += 41) {
      const content = bytes.slice();
      content[at] ^= 1 << (at % 8);
      expect(await fileRefusal(content), `${at}`).toContain('ERR_PLAN_FILE');
    }
  });

  test('another version of the format', async () => {
    const content = new Uint8Array(bytes);
    content[8] = 9;
    // The version is part of the checksum.
    const { createHash } = await import('node:crypto');
    const hash = createHash('sha256').update(content.subarray(0, 24)).update(content.subarray(56));
    content.set(hash.digest(), 24);
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await fileRefusal(content)).toContain(
      `it has version 9 of the format, by headrace ${version}, and this headrace reads versions 1 and 2 (plan the program again`,
    );
  });

  test('a header that is none', async () => {
    const { header } = contentOf(bytes, whole);
    for (const part of Object.keys(header).filter((key) => key !== 'columns'))
      expect(
        await fileRefusal(fileOf({ ...header, [part]: { __proto__: 3 } }, {})),
        part,
      ).toContain(`its header has a wrong '${part}'`);
    expect(await fileRefusal(fileOf(header, {}))).toContain("it has no column 'placeDatum'");
  });

  test('options that are none, and a closed runtime', async () => {
    const { runtime, blocks } = await opened({ gpus: 1, gpuMemory: '24KiB' });
    const good = { data: blocks, classes: [axpy, check] };
    const codes = await Promise.all([
      errorOf(() => runtime.loadPlan(whole, undefined as never)),
      errorOf(() => runtime.loadPlan(whole, { ...good, name: 'x' } as never)),
      errorOf(() => runtime.loadPlan(7 as never, good)),
    ]);
    expect(codes.map(({ code }) => code)).toEqual(['ERR_OPTION', 'ERR_OPTION', 'ERR_OPTION']);
    const late = errorOf(() => runtime.loadPlan(whole, good));
    await runtime.close();
    expect((await late).code).toBe('ERR_RUNTIME_CLOSED');
    expect((await errorOf(() => runtime.loadPlan(whole, good))).code).toBe('ERR_RUNTIME_CLOSED');
  });
});
