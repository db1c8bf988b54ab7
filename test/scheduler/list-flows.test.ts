// Flows that take an array of data: bodies, kernels, plans, explanations, and what is refused.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type Datum,
  type Graph,
  list,
  Runtime,
  read,
  readWrite,
  slot,
  type TaskArguments,
  task,
  write,
} from '../../index.js';
import { loadTrace } from '../../trace/index.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-lists-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** to[0] = factor * sum of all elements of the first list; to[1] = number of elements in the second. */
const SOURCE = `#include "headrace/kernel.h"
static int32_t sums(const headrace_task* task) {
  if (task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  const int32_t n = (int32_t)task->params[1];
  const int32_t m = (int32_t)task->params[2];
  if (task->flow_count != 1 + n + m) return HEADRACE_BAD_ARGUMENTS;
  double* to = (double*)task->flows[n];
  to[0] = to[1] = 0;
  for (int32_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < (int64_t)task->lengths[i]; ++k)
      to[0] += task->params[0] * ((const double*)task->flows[i])[k];
  for (int32_t i = n + 1; i < n + 1 + m; ++i) to[1] += task->lengths[i];
  return n == 3 && task->params[0] < 0 ? 7 : 0;
}
int32_t headrace_register(headrace_registry* registry) {
  return registry->add(registry, "list_sums", HEADRACE_KERNEL_HOST, sums);
}
`;

function library(): string {
  const [source, built] = ['lists.c', 'lists.so'].map((name) => path.join(folder, name));
  writeFileSync(source as string, SOURCE);
  const options = ['-Wall', '-Werror', '-shared', '-fPIC', '-I', 'native/include'];
  execFileSync('cc', [...options, '-o', built as string, source as string]);
  return built as string;
}
const file = library();

const sum = task({
  name: 'sum',
  flows: { parts: list(read('f64')), to: write('f64') },
  params: { factor: 'f64' },
  body: ({ parts, to, factor }) => {
    to[0] = factor * parts.reduce((all, part) => all + part.reduce((a, b) => a + b, 0), 0);
    to[1] = parts.length;
  },
});
const increment = task({
  name: 'increment',
  flows: { all: list(readWrite('f64')), by: read('i32') },
  body: async ({ all, by }) => {
    await Promise.resolve();
    for (const each of all) each[0] += by[0];
  },
});
const spread = task({
  name: 'spread',
  flows: { from: read('f64'), to: list(write('f64')) },
  body: ({ from, to }) => {
    to.forEach((each, i) => void each.fill(from[0] + i));
  },
});
const sums = task({
  name: 'sums',
  flows: { parts: list(read('f64')), to: write('f64'), counted: list(read('u8')) },
  params: { factor: 'f64' },
  kernel: 'list_sums',
  explain: (code, { params, data }) =>
    `code ${code} of ${data.parts.join('+')} to ${data.to} with ${JSON.stringify(params)} and ${data.counted.length}`,
});

describe('bodies', () => {
  it('get arrays of views; the number of data differs from task to task', async () => {
    await using runtime = await Runtime.create({ workers: 1, checked: true });
    const values = (n: number) => Float64Array.from({ length: n }, (_, i) => i + 1);
    const data = [1, 2, 3, 4].map((n) => runtime.data(values(n), { name: `d${n}` }));
    const results = Array.from({ length: 5 }, () => runtime.data('f64', 2));
    const by = runtime.data(Int32Array.of(10));
    await runtime.run((graph) => {
      results.forEach((to, n) => {
        graph.insert(sum, { parts: data.slice(0, n), to, factor: 2 });
      });
      graph.insert(increment, { all: data.slice(1, 3), by });
      graph.insert(increment, { all: [], by });
    });
    const read = await Promise.all(results.map((to) => to.read()));
    expect(read.map((pair) => [...pair])).toEqual([
      [0, 0],
      [2, 1],
      [8, 2],
      [20, 3],
      [40, 4],
    ]);
    expect((await Promise.all(data.map((d) => d.read()))).map((d) => d[0])).toEqual([1, 11, 11, 1]);
    const written = [1, 2, 3].map((n) => runtime.data('f64', n));
    await runtime.run((graph) => {
      graph.insert(spread, { from: data[1] as Datum<'f64'>, to: written });
      // The list orders the task behind the writers of all members.
      graph.insert(sum, { parts: written, to: results[0] as Datum<'f64'>, factor: 1 });
    });
    expect([...(await (results[0] as Datum).read())]).toEqual([11 + 24 + 39, 3]);
  });

  it('one datum may be read twice', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    const a = runtime.data(Float64Array.of(3));
    const to = runtime.data('f64', 2);
    await runtime.run((graph) => void graph.insert(sum, { parts: [a, a, a], to, factor: 1 }));
    expect([...(await to.read())]).toEqual([9, 3]);
  });

  it('leave a trace with all members and their number', async () => {
    const trace = path.join(folder, 'lists.hrtrace');
    const runtime = await Runtime.create({ workers: 1, trace });
    const parts = [0, 1, 2].map((n) => runtime.data(Float64Array.of(n), { name: `d${n}` }));
    const to = runtime.data('f64', 2, { name: 'to' });
    await runtime.run((graph) => {
      for (const n of [3, 0, 2]) graph.insert(sum, { parts: parts.slice(0, n), to, factor: 4 });
    });
    await runtime.close();
    const { classes, tasks, data } = loadTrace(trace);
    const part = <T>(
      { start, items }: { start: ArrayLike<number>; items: ArrayLike<T> },
      row: number,
    ) => Array.from(items).slice(start[row], start[row + 1]);
    const found = [...tasks.taskClass.keys()]
      .filter((row) => classes[tasks.taskClass[row] as number]?.name === 'sum')
      .map((row) => [
        part(tasks.parameters, row),
        part(tasks.accesses, row).map((d) => data.names[data.name[d as number] as number]),
      ]);
    expect(found).toEqual([
      [
        [4, 3],
        ['d0', 'd1', 'd2', 'to'],
      ],
      [[4, 0], ['to']],
      [
        [4, 2],
        ['d0', 'd1', 'to'],
      ],
    ]);
  });

  it('of more than 32 data', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    const parts = Array.from({ length: 500 }, () => runtime.data(Float64Array.of(1)));
    const to = runtime.data('f64', 2);
    await runtime.run((graph) => {
      graph.insert(sum, { parts, to, factor: 1 });
      expect(() =>
        graph.insert(increment, { all: [...parts, parts[7]!], by: to as never }),
      ).toThrow(/flow 'by' takes i32/);
      expect(() => graph.insert(sum, { parts: [...parts, to], to, factor: 1 })).toThrow(
        expect.objectContaining({ code: 'ERR_DUPLICATE_DATUM' }),
      );
    });
    expect([...(await to.read())]).toEqual([500, 500]);
  });

  it('that write a member of a list that they read fail in checked runs', async () => {
    await using runtime = await Runtime.create({ workers: 1, checked: true });
    const wrong = task({
      name: 'wrong',
      flows: { parts: list(read('f64')) },
      body: ({ parts }) => {
        (parts[1] as Float64Array)[0] = 5;
      },
    });
    const parts = [1, 2].map((n) => runtime.data(Float64Array.of(n)));
    await expect(runtime.run((g) => void g.insert(wrong, { parts }))).rejects.toMatchObject({
      code: 'ERR_READ_FLOW_WRITTEN',
      message: expect.stringMatching(/of flow 'parts\[1\]'.*list\(readWrite\('f64'\)\)/s),
    });
  });
});

describe('kernels', () => {
  for (const device of ['host', 0, 1] as const) {
    it(`get data, lengths and numbers of data on ${device}, inserted and in plans`, async () => {
      // A GPU holds a few of the data only: a task with a list stages every member.
      await using runtime = await Runtime.create({ workers: 2, gpus: 2, gpuMemory: '144KiB' });
      runtime.loadKernels(file);
      const parts = [1, 2, 3, 4, 5, 6].map((n) =>
        runtime.data(new Float64Array(1000 * n).fill(n), { name: `part ${n}` }),
      );
      const counted = [5, 7].map((n) => runtime.data(new Uint8Array(n), { name: `c${n}` }));
      const results = [0, 1, 2, 3].map((i) => runtime.data('f64', 2, { name: `r${i}` }));
      const insert = (graph: Pick<Graph, 'insert'>, i: number, factor: number) =>
        void graph.insert(
          sums,
          {
            parts: parts.slice(i, 2 * i),
            to: results[i] as Datum<'f64'>,
            counted: counted.slice(0, i % 3),
            factor,
          },
          { device },
        );
      const expected = (factor: number) =>
        results.map((_, i) => {
          let all = 0;
          for (let n = i + 1; n <= 2 * i; n++) all += 1000 * n * n;
          return [factor * all, [0, 5, 12][i % 3]];
        });
      const actual = async () =>
        (await Promise.all(results.map((to) => to.read()))).map((pair) => [...pair]);
      await runtime.run((graph) => {
        for (let round = 0; round < 300; round++)
          for (const i of results.keys()) insert(graph, i, 3);
      });
      expect(await actual()).toEqual(expected(3));
      const plan = await runtime.plan((graph) => {
        for (const i of results.keys()) insert(graph as never, i, slot('factor') as never);
      });
      await plan.run({ times: 2, values: { factor: (iteration) => iteration + 1 } });
      expect(await actual()).toEqual(expected(2));
      const saved = path.join(folder, `lists-${device}.plan`);
      await plan.save(saved);
      const data = [parts, counted, results];
      const loaded = await runtime.loadPlan(saved, { data, classes: sums });
      await loaded.run({ values: { factor: 5 } });
      expect(await actual()).toEqual(expected(5));
    });
  }

  it('explain their codes with the lists, in runs and in plans', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    runtime.loadKernels(file);
    const parts = ['a', 'b', 'c'].map((name) => runtime.data(Float64Array.of(1), { name }));
    const counted = [runtime.data(new Uint8Array(1))];
    const to = runtime.data('f64', 2, { name: 'to' });
    const insert = (graph: Pick<Graph, 'insert'>) =>
      void graph.insert(sums, { parts, to, counted, factor: -1 });
    const text = 'code 7 of a+b+c to to with {"factor":-1} and 1';
    await expect(runtime.run(insert)).rejects.toThrow(text);
    const plan = await runtime.plan((graph) => insert(graph as never));
    await expect(plan.run({ times: 1 })).rejects.toThrow(text);
  });
});

describe('refused', () => {
  it('before anything is inserted, with a message that names the member', async () => {
    await using runtime = await Runtime.create({ workers: 1, window: 256 });
    await using other = await Runtime.create({ workers: 1 });
    const [a, b, c] = [1, 2, 3].map((n) => runtime.data(Float64Array.of(n), { name: `d${n}` })) as [
      Datum<'f64'>,
      Datum<'f64'>,
      Datum<'f64'>,
    ];
    const to = runtime.data('f64', 2, { name: 'to' });
    const whole = runtime.data(new Int32Array(1), { name: 'whole' });
    const empty = runtime.data('f64', 1, { name: 'empty' });
    const closed = runtime.data(Float64Array.of(1), { name: 'closed' });
    closed.close();
    const foreign = other.data(Float64Array.of(1), { name: 'foreign' });
    const many = Array.from({ length: 600 }, () => runtime.data(Float64Array.of(1)));
    type Given = TaskArguments<(typeof sum)['definition']['flows'], { factor: 'f64' }>;
    const cases: [unknown, string, RegExp][] = [
      [null, 'ERR_ARGUMENT_TYPE', /'sum' needs an object/],
      [{ to, factor: 1 }, 'ERR_MISSING_ARGUMENT', /'sum' needs an array of data for flow 'parts'/],
      [{ part: [a], to, factor: 1 }, 'ERR_MISSING_ARGUMENT', /no flow or parameter 'part'/],
      [{ parts: a, to, factor: 1 }, 'ERR_ARGUMENT_TYPE', /flow 'parts' needs an array of data/],
      [
        { parts: [a, b, whole], to, factor: 1 },
        'ERR_ARGUMENT_TYPE',
        /'parts\[2\]' takes f64.*'whole' is i32/,
      ],
      [{ parts: [a, undefined], to, factor: 1 }, 'ERR_MISSING_ARGUMENT', /'parts\[1\]'/],
      // biome-ignore lint/suspicious/noSparseArray: a program may have one by mistake.
      [{ parts: [a, , b], to, factor: 1 }, 'ERR_MISSING_ARGUMENT', /'parts\[1\]'/],
      [{ parts: [a, 5], to, factor: 1 }, 'ERR_ARGUMENT_TYPE', /'parts\[1\]' needs a datum, not 5/],
      [{ parts: [a, [b]], to, factor: 1 }, 'ERR_ARGUMENT_TYPE', /'parts\[1\]' needs a datum/],
      [{ parts: [closed], to, factor: 1 }, 'ERR_DATUM_CLOSED', /'closed' for flow 'parts\[0\]'/],
      [
        { parts: [a, foreign], to, factor: 1 },
        'ERR_FOREIGN_DATUM',
        /'foreign' for flow 'parts\[1\]'/,
      ],
      [
        { parts: [a, empty], to, factor: 1 },
        'ERR_NEVER_WRITTEN',
        /'parts\[1\]' reads datum 'empty'/,
      ],
      [{ parts: [a, to], to, factor: 1 }, 'ERR_NEVER_WRITTEN', /'parts\[1\]' reads datum 'to'/],
      [
        { parts: [a, b], to: b, factor: 1 },
        'ERR_DUPLICATE_DATUM',
        /'parts\[1\]' and 'to' are both datum 'd2'/,
      ],
      [{ parts: [a], to }, 'ERR_MISSING_ARGUMENT', /parameter 'factor'/],
      [
        { parts: [a], to, factor: 1, extra: 1 },
        'ERR_UNKNOWN_ARGUMENT',
        /'extra'.*parts, to, factor/s,
      ],
      [{ parts: [a], to, factor: 1, 'parts.length': 1 }, 'ERR_UNKNOWN_ARGUMENT', /'parts.length'/],
      [
        { parts: new Array(1e9), to, factor: 1 },
        'ERR_TASK_TOO_LARGE',
        /'parts' has 1000000000 data/,
      ],
    ];
    await runtime.run((graph) => {
      for (const [args, code, message] of cases) {
        expect(() => graph.insert(sum, args as Given)).toThrow(
          expect.objectContaining({ code, message: expect.stringMatching(message) }),
        );
      }
      expect(() => graph.insert(increment, { all: [a, b, a], by: whole })).toThrow(
        /flows 'all\[0\]' and 'all\[2\]' are both datum 'd1'/,
      );
      graph.insert(sum, { parts: many, to, factor: 1 });
      expect(() => graph.insert(sum, { parts: [...many, ...many], to, factor: 1 })).toThrow(
        expect.objectContaining({
          code: 'ERR_TASK_TOO_LARGE',
          message: expect.stringMatching(/a task of class 'sum' has 1201 data and 2 parameters/),
        }),
      );
      graph.insert(sum, { parts: [c], to, factor: 1 });
    });
    expect([...(await to.read())]).toEqual([3, 1]);
  });

  it('classes whose names are ambiguous, and CUDA kernels with lists', () => {
    const body = () => {};
    for (const wrong of [
      { flows: { parts: list(read('f64')), 'parts[0]': read('f64') }, body },
      { flows: { parts: list(read('f64')) }, params: { 'parts.length': 'i32' }, body },
      {
        flows: { parts: list(read('f64')) },
        cuda: { source: '', function: 'f', arguments: [], grid: 1, block: 1 },
      },
      { flows: { parts: { ...read('f64'), list: 1 } }, body },
    ])
      expect(() => task({ name: 'wrong', ...wrong } as never)).toThrow(
        expect.objectContaining({ code: 'ERR_TASK_CLASS' }),
      );
    expect(() => list('f64' as never)).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }));
  });
});
