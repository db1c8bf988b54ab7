// Parameters that are given as data: kernels, bodies, lists, script workers, plans, and what is refused.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { list, Runtime, read, readWrite, reduce, slot, task, write } from '../../index.js';
import { loadTrace } from '../../trace/index.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-data-parameters-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes what the kernel was given: flows, parameters, the parameters themselves, and the first length. */
const SOURCE = `#include "headrace/kernel.h"
static int32_t given(const headrace_task* task) {
  double* to = (double*)task->flows[0];
  to[0] = task->flow_count;
  to[1] = task->param_count;
  for (int32_t i = 0; i < task->param_count; ++i) to[2 + i] = task->params[i];
  to[2 + task->param_count] = task->lengths[0];
  return task->params[1] < 0 ? 9 : 0;
}
int32_t headrace_register(headrace_registry* registry) {
  return registry->add(registry, "given_parameters", HEADRACE_KERNEL_HOST, given);
}
`;

function library(): string {
  const [source, built] = ['given.c', 'given.so'].map((name) => path.join(folder, name));
  writeFileSync(source as string, SOURCE);
  const options = ['-Wall', '-Werror', '-shared', '-fPIC', '-I', 'native/include'];
  execFileSync('cc', [...options, '-o', built as string, source as string]);
  return built as string;
}
const file = library();

const given = task({
  name: 'given',
  flows: { to: readWrite('f64') },
  params: { a: 'f64', b: 'i32', c: 'f64', d: 'bool' },
  kernel: 'given_parameters',
  explain: (code, { params, data }) => `code ${code} of ${data.to} with ${JSON.stringify(params)}`,
});
const add = task({
  name: 'add',
  flows: { to: readWrite('f64'), from: read('f64') },
  params: { count: 'i32', factor: 'f64' },
  kernel: 'add_f64',
});
const sum = task({
  name: 'sum',
  flows: { total: reduce('f64', 'sum'), from: read('f64') },
  params: { count: 'i32' },
  kernel: 'add_f64',
});
const fill = task({
  name: 'fill',
  flows: { to: write('f64') },
  params: { count: 'i32', value: 'f64' },
  kernel: 'fill_f64',
});
const weigh = task({
  name: 'weigh',
  flows: { to: write('f64'), parts: list(read('f64')) },
  params: { weight: 'f64', more: 'i32' },
  body: ({ to, parts, weight, more }) => {
    to[0] = parts.reduce((all, part) => all + weight * part[0], 0) + more;
  },
});

const machines = [
  { name: 'host', options: { workers: 2 } },
  { name: 'emulated GPUs', options: { workers: 1, gpus: 2, gpuMemory: '1MiB' } },
] as const;

describe.each(machines)('on $name', ({ options }) => {
  it('a kernel gets its parameters in their places, and the flows of its class', async () => {
    await using runtime = await Runtime.create({ ...options, checked: true });
    runtime.loadKernels(file);
    const a = runtime.data(Float64Array.of(2.5, 99));
    const b = runtime.data(Int32Array.of(-7));
    const c = runtime.data(Float64Array.of(-0.5));
    b.set(Int32Array.of(7));
    const cases = [
      { a, b: 7, c: -0.5, d: true },
      { a: 2.5, b, c: -0.5, d: true },
      { a, b, c: -0.5, d: true },
      { a: 2.5, b: 7, c, d: true },
      { a, b, c, d: true },
    ];
    const results = cases.map((_, i) => runtime.data(new Float64Array(7 + i)));
    await runtime.run((graph) => {
      cases.forEach((args, i) => void graph.insert(given, { ...args, to: results[i] as never }));
    });
    for (const [i, to] of results.entries())
      expect([...(await to.read())].slice(0, 7)).toEqual([1, 4, 2.5, 7, -0.5, 1, 7 + i]);
  });

  it('the value is that of the moment, in the order of the program', async () => {
    await using runtime = await Runtime.create({ ...options, checked: true });
    const x = runtime.data(new Float64Array(4), { name: 'x' });
    const ones = runtime.data(new Float64Array(4).fill(1));
    const alpha = runtime.data(Float64Array.of(1));
    await runtime.run((graph) => {
      for (let i = 0; i < 10; i++) {
        graph.insert(add, { to: x, from: ones, count: 4, factor: alpha });
        graph.insert(add, { to: alpha, from: ones, count: 1, factor: i });
      }
    });
    // alpha is 1 + 0 + 1 + ... + (i - 1) in round i.
    let [sum, factor] = [0, 1];
    for (let i = 0; i < 10; i++) {
      sum += factor;
      factor += i;
    }
    expect([...(await x.read())]).toEqual([sum, sum, sum, sum]);
  });

  it('bodies get the value, also beside lists', async () => {
    await using runtime = await Runtime.create({ ...options, checked: true });
    const parts = [1, 2, 3].map((n) => runtime.data(Float64Array.of(n)));
    const weight = runtime.data(Float64Array.of(10));
    const more = runtime.data(Int32Array.of(5));
    const results = [0, 1, 2].map(() => runtime.data('f64', 1));
    await runtime.run((graph) => {
      graph.insert(weigh, { to: results[0] as never, parts, weight, more });
      graph.insert(weigh, { to: results[1] as never, parts: parts.slice(1), weight: 1, more });
      graph.insert(weigh, { to: results[2] as never, parts: [], weight, more: 4 });
    });
    expect(await Promise.all(results.map(async (to) => (await to.read())[0]))).toEqual([65, 10, 4]);
  });

  it('a datum that tasks reduce into has its whole value', async () => {
    await using runtime = await Runtime.create({ ...options, checked: true });
    const tiles = Array.from({ length: 12 }, (_, i) => runtime.data(new Float64Array(4).fill(i)));
    const total = runtime.data(new Float64Array(1), { name: 'total' });
    const x = runtime.data(new Float64Array(4), { name: 'x' });
    await runtime.run((graph) => {
      for (let round = 0; round < 3; round++) {
        for (const from of tiles) graph.insert(sum, { total, from, count: 1 });
        graph.insert(add, { to: x, from: tiles[1] as never, count: 4, factor: total });
      }
    });
    expect([...(await x.read())]).toEqual([396, 396, 396, 396]);
  });

  it('a plan reads the value anew in every iteration, also from a file', async () => {
    await using runtime = await Runtime.create(options);
    const x = runtime.data(new Float64Array(2), { name: 'x' });
    const ones = runtime.data(new Float64Array(2).fill(1), { name: 'ones' });
    const alpha = runtime.data(Float64Array.of(1), { name: 'alpha' });
    const plan = await runtime.plan((graph) => {
      graph.insert(add, { to: x, from: ones, count: 2, factor: alpha });
      graph.insert(add, { to: alpha, from: ones, count: 1, factor: slot('step') });
    });
    await plan.run({ times: 4, values: { step: 2 } });
    expect([...(await x.read())]).toEqual([16, 16]);
    const saved = path.join(folder, `${options.workers}.plan`);
    await plan.save(saved);
    const loaded = await runtime.loadPlan(saved, {
      data: [x, ones, alpha],
      classes: [add],
    });
    await loaded.run({ times: 2, values: { step: 1 } });
    expect([...(await x.read())]).toEqual([16 + 9 + 10, 16 + 9 + 10]);
  });
});

describe('script workers', () => {
  it('get the value', async () => {
    const module = path.join(folder, 'scaled.mjs');
    const index = path.resolve('dist/index.js');
    writeFileSync(
      module,
      `import { readWrite, Runtime, task } from ${JSON.stringify(index)};
      export { Runtime };
      export const scaled = task({
        name: 'scaled', module: import.meta.url, flows: { x: readWrite('f64') },
        params: { factor: 'f64', times: 'i32' },
        body: ({ x, factor, times }) => { x[0] *= factor ** times; },
      });`,
    );
    const program = path.join(folder, 'program.mjs');
    writeFileSync(
      program,
      `import { Runtime, scaled } from './scaled.mjs';
      const runtime = await Runtime.create({ workers: 1, scriptWorkers: 2, checked: true });
      const x = runtime.data(Float64Array.of(3));
      const factor = runtime.data(Float64Array.of(2));
      const times = runtime.data(Int32Array.of(3));
      await runtime.run((graph) => {
        graph.insert(scaled, { x, factor, times });
        graph.insert(scaled, { x, factor: 10, times });
      });
      console.log((await x.read())[0]);
      await runtime.close();`,
    );
    expect(execFileSync(process.execPath, [program], { encoding: 'utf8' }).trim()).toBe('24000');
  });
});

describe('reports', () => {
  it('a trace shows the datum among the flows', async () => {
    const trace = path.join(folder, 'steered.hrtrace');
    const runtime = await Runtime.create({ workers: 1, trace });
    const to = runtime.data('f64', 4, { name: 'to' });
    const value = runtime.data(Float64Array.of(1), { name: 'value' });
    await runtime.run((graph) => void graph.insert(fill, { to, count: 4, value }));
    await runtime.close();
    const { classes, data, tasks } = loadTrace(trace);
    const row = classes.findIndex(({ name }) => name === 'fill');
    expect(classes[row]).toMatchObject({ parameterNames: ['count'] });
    const at = [...tasks.taskClass].indexOf(row);
    const { items, start } = tasks.accesses;
    const flows = [...items].slice(start[at], start[at + 1]);
    const names = flows.map((d) => data.names[data.name[d] as number]);
    expect(names).toEqual(['to', 'value']);
  });

  it('a failure is explained with the names of the class, and NaN for what only the device knew', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    runtime.loadKernels(file);
    const to = runtime.data(new Float64Array(7), { name: 'to' });
    const b = runtime.data(Int32Array.of(-1));
    const run = runtime.run((graph) => {
      graph.insert(given, { to, a: 1, b, c: 2, d: false });
    });
    await expect(run).rejects.toThrow('code 9 of to with {"a":1,"b":null,"c":2,"d":0}');
  });
});

describe('refused', () => {
  it('data that cannot be the parameter', async () => {
    await using runtime = await Runtime.create({ workers: 1 });
    await using other = await Runtime.create({ workers: 1 });
    runtime.loadKernels(file);
    const to = runtime.data('f64', 4, { name: 'to' });
    const count = runtime.data(Int32Array.of(4), { name: 'count' });
    const unwritten = runtime.data('f64', 1, { name: 'unwritten' });
    const foreign = other.data(Float64Array.of(1), { name: 'foreign' });
    const closed = runtime.data(Float64Array.of(1), { name: 'closed' });
    closed.close();
    const yes = runtime.data(Float64Array.of(1), { name: 'yes' });
    await runtime.run((graph) => {
      const fails = (args: object, code: string, words: string): void => {
        expect(() => graph.insert(fill, args as never)).toThrow(
          expect.objectContaining({ code, message: expect.stringContaining(words) }),
        );
      };
      fails({ to, count: 4, value: count }, 'ERR_ARGUMENT_TYPE', "'value'");
      fails({ to, count: yes, value: 1 }, 'ERR_ARGUMENT_TYPE', "'count'");
      fails({ to, count: 4, value: foreign }, 'ERR_FOREIGN_DATUM', "'value'");
      fails({ to, count: 4, value: closed }, 'ERR_DATUM_CLOSED', "'closed'");
      fails({ to, count: 4, value: unwritten }, 'ERR_NEVER_WRITTEN', "'unwritten'");
      fails({ to: yes, count: 1, value: yes }, 'ERR_DUPLICATE_DATUM', "'value'");
      fails({ to, count: 4, value: [yes] }, 'ERR_ARGUMENT_TYPE', "'value'");
      const flag = { to: yes, a: 1, b: 1, c: 1, d: closed } as never;
      expect(() => graph.insert(given, flag)).toThrow("parameter 'd' cannot be");
      graph.insert(fill, { to, count: 4, value: 1 });
    });
    expect([...(await to.read())]).toEqual([1, 1, 1, 1]);
  });
});
