// Parts of data in plans: every iteration begins and ends with the whole datum, so plays give what runs give.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type Datum,
  type Graph,
  list,
  type Runtime,
  type RuntimeOptions,
  read,
  reduce,
  slot,
  task,
  write,
} from '../../index.js';
import { contentOf, fileOf } from '../../scheduler/plans/file-format.js';
import type { PlanGraph } from '../../scheduler/plans/plan-graph.js';
import { MACHINES, nothingLeft, onMachine } from '../support/machines.js';
import { codeOf } from '../support/outcomes.js';
import { add, fail, fill, random } from '../support/tasks.js';

const HOST: RuntimeOptions = { workers: 2, hostMemory: '16MiB', checked: true };
type Inserting = Pick<Graph, 'insert'> | Pick<PlanGraph, 'insert'>;

const sumOf = (name: string, options: object) =>
  task({
    name,
    flows: { to: reduce('f64', 'sum', options), from: read('f64') },
    params: { count: 'i32' },
    kernel: 'add_f64',
  });
const summed = sumOf('summed', { partials: 2 });
const summedAnyhow = sumOf('summedAnyhow', { deterministic: false });

/** Random tasks on two data and their parts. */
function insertAll(
  graph: Inserting,
  data: readonly Datum<'f64'>[],
  seed: number,
  reduces = false,
): void {
  const next = random(seed);
  const below = (n: number): number => Math.floor(next() * n);
  const view = (datum: Datum<'f64'>): Datum<'f64'> => {
    if (below(4) === 0) return datum;
    const [row, column] = [below(datum.rows), below(datum.columns)];
    const rows = 1 + below(datum.rows - row);
    return datum.block({ row, column, rows, columns: 1 + below(datum.columns - column) });
  };
  for (let i = 0; i < 25; i++) {
    const [a, b] = below(2) === 0 ? data : [data[1], data[0]];
    const [to, from] = [view(a), view(b)];
    if (below(3) === 0) graph.insert(fill, { to, count: to.length, value: below(9) } as never);
    else if (reduces && below(2) === 0)
      for (let k = below(4); k >= 0; k--) {
        const on = below(3) === 0 ? to : view(a);
        const [of, cls] = [view(b), [summed, summedAnyhow][below(2)]];
        graph.insert(cls, { to: on, from: of, count: Math.min(on.length, of.length) } as never);
      }
    else graph.insert(add, { to, from, count: Math.min(to.length, from.length) } as never);
  }
}

const made = (runtime: Runtime): Datum<'f64'>[] =>
  [4, 3].map((rows, i) =>
    runtime.data(
      new Float64Array(12).map((_, j) => i + j),
      { rows, name: `x${i}` },
    ),
  );

describe.each(MACHINES)('planned parts on $name', ({ options, gpus }) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])('random plan %i gives what runs give', async (n) => {
    const seed = n * 10 + gpus;
    const reduces = n > 4;
    await onMachine(options, async (runtime) => {
      const [planned, run] = [made(runtime), made(runtime)];
      const plan = await runtime.plan((graph) => insertAll(graph, planned, seed, reduces));
      for (const times of [1, 3]) {
        await plan.run({ times });
        for (let k = 0; k < times; k++)
          await runtime.run((graph) => insertAll(graph, run, seed, reduces));
        for (const [i, datum] of planned.entries())
          expect([...(await datum.read())]).toEqual([...(await run[i].read())]);
        // Between plays the parts hold the newest versions.
        for (const data of [planned, run])
          await runtime.run((graph) => insertAll(graph, data, seed + 1));
      }
      plan.close();
      await nothingLeft(runtime, [...planned, ...run]);
    });
  });
});

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-planned-parts-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, 'parts.plan');

describe.each(MACHINES)('saved plans with parts on $name', ({ options, gpus }) => {
  it.each([1, 2, 3])('random plan %i plays as the tasks', async (n) => {
    const seed = n * 10 + gpus;
    let expected: number[][] = [];
    await onMachine(options, async (runtime) => {
      const data = made(runtime);
      const plan = await runtime.plan((graph) => insertAll(graph, data, seed));
      await plan.save(file);
      for (let k = 0; k < 4; k++) await runtime.run((graph) => insertAll(graph, data, seed));
      expected = await Promise.all(data.map(async (datum) => [...(await datum.read())]));
      plan.close();
      await nothingLeft(runtime, data);
    });
    await onMachine(options, async (runtime) => {
      const data = made(runtime);
      const plan = await runtime.loadPlan(file, { data, classes: [add, fill] });
      await plan.run({ times: 3 });
      // The program's tasks use the same parts between plays, and the plan may be saved again.
      await runtime.run((graph) => insertAll(graph, data, seed));
      const values = await Promise.all(data.map(async (datum) => [...(await datum.read())]));
      expect(values).toEqual(expected);
      const bytes = readFileSync(file);
      await plan.save(file);
      expect(contentOf(readFileSync(file), file).column('params')).toEqual(
        contentOf(bytes, file).column('params'),
      );
      plan.close();
      await nothingLeft(runtime, data);
    });
  });
});

describe('files of plans with parts', () => {
  it('are refused where a part is not in its datum, or a copy leaves it', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(new Float64Array(6).fill(1), { name: 'x', rows: 3 });
      const y = runtime.data(new Float64Array(6).fill(1), { name: 'y' });
      const plan = await runtime.plan((graph) => {
        const edge = x.block({ row: 2, rows: 1 });
        graph.insert(add, { to: edge, from: y.part(0, 2), count: 2 });
      });
      await plan.save(file);
      const bytes = readFileSync(file);
      const load = (data: readonly Datum[] = [x, y]): Promise<string> =>
        runtime.loadPlan(file, { data, classes: [add] }).then(
          (loaded) => {
            loaded.close();
            return 'none';
          },
          (error: Error & { code: string }) => `${error.code}: ${error.message}`,
        );
      expect(await load()).toBe('none');
      const flat = runtime.data(new Float64Array(6), { name: 'x' });
      expect(await load([flat, y])).toContain(
        "datum 'x' has 6 rows, and the plan was made for parts of 3 rows",
      );
      /** The file with another header, or other columns. */
      const change = (
        header: (parts: { data: { part?: number[] }[] }) => void,
        columns: (of: Record<string, number[]>) => void,
      ): void => {
        const { header: old, column } = contentOf(bytes, file);
        const changed = structuredClone(old) as { data: { part?: number[] }[] };
        header(changed);
        const names = [...COLUMNS, 'params'] as const;
        const all = Object.fromEntries(names.map((name) => [name, Array.from(column(name))]));
        columns(all);
        const { params, placeOffset } = all;
        const floats = {
          params: Float64Array.from(params),
          placeOffset: Float64Array.from(placeOffset),
        };
        writeFileSync(file, fileOf(changed as never, { ...all, ...floats }));
      };
      const same = (): void => {};
      change(same, same);
      expect(await load()).toBe('none');
      for (let i = 0; i < 6; i++)
        for (const value of [-1, 0.5, 7, 2 ** 40]) {
          change(({ data }) => {
            const part = data.find((datum) => datum.part !== undefined)?.part as number[];
            part[i] = value;
          }, same);
          expect(await load(), `place ${i}: ${value}`).toMatch(/^ERR_PLAN_(FILE|MISMATCH)/);
        }
      const { length } = contentOf(bytes, file).column('params');
      let refused = 0;
      for (let i = 0; i < length; i++) {
        change(same, ({ params }) => {
          params[i] += 5;
        });
        const answer = await load();
        if (answer.includes('a copy of a part leaves its data')) refused++;
        // The parameter of the program's own task.
        else expect(answer).toBe('none');
      }
      // The two distances between columns of the copy that has one column do not matter.
      expect(refused).toBe(length - 3);
      for (let i = 0; i < length; i++) {
        change(
          (header) => Object.assign(header, { slots: ['s'] }),
          ({ open }) => open.push(Math.floor(i / 7), i % 7, 0),
        );
        const answer = await load();
        const isOwn = answer === 'none' || answer.includes('an unknown parameter is open');
        expect(isOwn, answer).toBe(true);
      }
      plan.close();
      await nothingLeft(runtime, [x, y, flat]);
    });
  });
});

const COLUMNS = [
  ...['placeDatum', 'placeSpace', 'placeOffset', 'flows', 'queue', 'task', 'copies', 'exits'],
  ...['class', 'open', 'after'],
] as const;

describe('plans', () => {
  it('move the edges of blocks between GPUs, and no more', async () => {
    const row = list(read('f64'));
    const heat = task({
      name: 'heat',
      flows: { to: write('f64'), from: read('f64'), above: row, below: row },
      params: { rows: 'i32', columns: 'i32', centre: 'f64', horizontal: 'f64', vertical: 'f64' },
      kernel: 'five_point_f64',
    });
    await onMachine({ ...HOST, workers: 1, gpus: 2, gpuMemory: '1MiB' }, async (runtime) => {
      const blocks = [0, 1, 0, 1].map((device) =>
        runtime.data(new Float64Array(16 * 64).fill(1), { device }),
      );
      const shape = { rows: 16, columns: 64, centre: 0.2, horizontal: 0.2, vertical: 0.2 };
      const plan = await runtime.plan((graph) => {
        for (const [even, odd] of [[0, 2] as const, [2, 0] as const]) {
          const [upper, lower] = [blocks[even], blocks[even + 1]];
          const [last, first] = [upper.part(15 * 64, 64), lower.part(0, 64)];
          graph.insert(heat, { to: blocks[odd], from: upper, above: [], below: [first], ...shape });
          graph.insert(heat, {
            to: blocks[odd + 1],
            from: lower,
            above: [last],
            below: [],
            ...shape,
          });
        }
      });
      expect(plan.report.bytes.d2d).toBe(2 * 2 * 64 * 8);
      await plan.run({ times: 5 });
      plan.close();
      await nothingLeft(runtime, blocks);
    });
  });

  it('that fail leave no older versions', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(new Float64Array(4).fill(1), { name: 'x' });
      const part = x.part(0, 2);
      const plan = await runtime.plan((graph) => {
        graph.insert(fill, { to: part, count: 2, value: 5 });
        graph.insert(fail, { of: part, code: slot('code') });
      });
      await plan.run({ values: { code: 0 } });
      expect([...(await x.read())]).toEqual([5, 5, 1, 1]);
      expect(await codeOf(plan.run({ values: { code: 3 } }))).toBe('ERR_TASK_FAILED');
      expect(await codeOf(x.read())).toBe('ERR_DATUM_POISONED');
      expect(await codeOf(part.read())).toBe('ERR_DATUM_POISONED');
      await x.set(new Float64Array(4));
      await plan.run({ values: { code: 0 } });
      expect([...(await part.read()), ...(await x.read())]).toEqual([5, 5, 5, 5, 0, 0]);
      plan.close();
      await nothingLeft(runtime, [x]);
    });
  });

  it('know parts that were made later', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data(new Float64Array(4).fill(1), { name: 'x' });
      const y = runtime.data(new Float64Array(4).fill(1));
      const plan = await runtime.plan(
        (graph) => void graph.insert(add, { to: x, from: y, count: 4 }),
      );
      const part = x.part(1, 2);
      await runtime.run((graph) => void graph.insert(fill, { to: part, count: 2, value: 5 }));
      await plan.run({ times: 2 });
      expect([...(await part.read()), ...(await x.read())]).toEqual([7, 7, 3, 7, 7, 3]);
      plan.close();
      await nothingLeft(runtime, [x, y]);
    });
  });

  it('with parts are refused where they cannot be: without values, as conditions', async () => {
    await onMachine(HOST, async (runtime) => {
      const x = runtime.data('f64', 4, { name: 'x' });
      const make = () =>
        runtime.plan((graph) => void graph.insert(fill, { to: x.part(0, 1), count: 1, value: 1 }));
      await expect(make()).rejects.toThrow(
        /parts of datum 'x', which has no value before the plan/,
      );
      void x.set(new Float64Array(4));
      const plan = await make();
      const condition = { datum: x.part(0, 1), above: 1 };
      expect(await codeOf((async () => plan.run({ while: condition }))())).toBe('ERR_PART');
      await plan.run();
      expect([...(await x.read())]).toEqual([1, 0, 0, 0]);
      x.part(0, 1).close();
      expect(await codeOf((async () => plan.run())())).toBe('ERR_DATUM_CLOSED');
      plan.close();
      await nothingLeft(runtime, [x]);
    });
  });
});
