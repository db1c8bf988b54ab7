// Files of plans with changed numbers and right checksums: each is refused with a typed error, or it is a plan that stays within its
// memory and comes to an end.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { execRecords, Opcode, RecordLayout as Record } from '../../devices/backend.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { planMachine } from '../../devices/simulated/cases/plan-cases.js';
import { axpy, copy, failing, PlanProgram } from '../../devices/simulated/cases/plan-programs.js';
import { SimulatedBackend } from '../../devices/simulated/machine/backend.js';
import { Random } from '../../devices/simulated/machine/random.js';
import { type Datum, HeadraceError, type Plan, Runtime, slot } from '../../index.js';
import { type Columns, contentOf, fileOf } from '../../scheduler/plans/file-format.js';
import { placeOf } from '../../scheduler/plans/layout.js';
import type { PlannedProgram } from '../../scheduler/plans/planned-program.js';
import type { Playables } from '../../scheduler/plans/playable.js';
import { AccessMode } from '../../trace/format.js';
import { partOf } from '../support/grids.js';

const folder = mkdtempSync(path.join(tmpdir(), 'headrace-plan-files-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, 'random.plan');

const KERNELS: Readonly<globalThis.Record<string, string>> = {
  axpy: 'add_f64',
  copy: 'copy_bytes',
  failing: 'fail',
};
const CHANGES = 60;
const COLUMNS = [
  'placeDatum',
  'placeSpace',
  'placeOffset',
  'flows',
  'queue',
  'task',
  'copies',
  'exits',
  'class',
  'open',
  'after',
] as const;
const REFUSALS: readonly string[] = [
  'ERR_PLAN_FILE',
  'ERR_PLAN_MISMATCH',
  'ERR_OUT_OF_HOST_MEMORY',
];

/** A runtime for the program, whose kernels do nothing. */
function opened(program: PlanProgram): { runtime: Runtime; data: Datum<'f64'>[] } {
  const nothing = (): number => 0;
  const backend = new SimulatedBackend({
    machine: planMachine(program),
    ringRecords: 128,
    kernels: { add_f64: nothing, copy_bytes: nothing, fail: nothing },
  });
  const runtime = Runtime.over(backend, { checked: true });
  return { runtime, data: program.values(0).map((v, i) => runtime.data(v, { name: `d${i}` })) };
}

type Changed = globalThis.Record<string, number[] | Float64Array>;

/** The columns with one change: a number, or a length. */
function changed(columns: Columns, random: Random): Changed {
  const all: Changed = Object.fromEntries(
    Object.entries(columns).map(([name, c]) => [
      name,
      c instanceof Float64Array ? c.slice() : [...c],
    ]),
  );
  const name = random.pick(COLUMNS);
  const column = Array.from(all[name]);
  const at = random.below(column.length + 1);
  const value = random.pick([0, 1, 2, random.below(64), 511, 512 * random.below(64), 2 ** 32 - 1]);
  const kind = random.below(10);
  if (kind === 0) column.splice(at, 1);
  else if (kind === 1) column.splice(at, 0, value);
  else if (kind < 4) column[at] = column[random.below(column.length)] ?? 0;
  else if (name === 'placeOffset' && random.chance(0.5))
    column[at] = random.pick([-512, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 2 ** 60]);
  else column[at] = value;
  for (let i = 0; i < column.length; i++) column[i] ??= 0;
  all[name] = all[name] instanceof Float64Array ? Float64Array.from(column) : column;
  return all;
}

/** The commands of a plan that leave its memory, run other kernels, or wait for what is not there. */
function faults(plan: PlannedProgram, runtime: Runtime): string[] {
  const { queues, regions, decisions, results } = plan;
  const { backend, directory } = runtime.engine;
  const { insertions } = decisions;
  const found: string[] = [];
  const tasks = queues.flatMap(({ insertion }) => [...insertion.filter((n) => n >= 0)]);
  if (
    tasks.sort((a, b) => a - b).join() !==
    Array.from({ length: insertions.count }, (_, n) => n).join()
  )
    found.push('a task has no command, or several');
  const written = Array.from({ length: insertions.count }, (_, n) =>
    insertions
      .classOf(n)
      .modes.flatMap((mode, i) => (mode === AccessMode.read ? [] : [insertions.datum(n, i)])),
  ).flat();
  if (new Set(written).size !== new Set(results.map(({ datum }) => datum)).size)
    found.push('a datum that is written has no place');
  /** Bytes behind each address, by list and place. */
  const room = new Map<string, { space: number; bytes: number }>();
  const { first, list, place } = plan.addresses;
  for (const [g, { space, bytes }] of regions.entries())
    for (let i = first[g]; i < first[g + 1]; i++) {
      const offset = plan.addresses.offset?.[i] ?? 0;
      if (!(offset >= 0) || offset % ALIGNMENT !== 0) found.push(`an address ends with ${offset}`);
      room.set(`${list[i]} ${place[i]}`, { space, bytes: bytes - offset });
    }
  const needs = (list: number, at: number, space: number, bytes: number): void => {
    const there = room.get(`${list} ${at}`);
    if (there === undefined || there.space !== space || there.bytes < bytes)
      found.push(`list ${list} place ${at}: ${bytes} bytes in ${space}, not ${there?.bytes}`);
  };
  const lengths = new Map(queues.map(({ queue, records }) => [queue, records.length / 16]));
  queues.forEach(({ queue, records, insertion }, list) => {
    const doubles = new Float64Array(records.buffer);
    let span = 1;
    for (let r = 0; r < insertion.length; r += span) {
      const head = records[r * Record.words + Record.head];
      const word = records[r * Record.words + Record.kernel];
      const target = word >> 16;
      if (target > 0) {
        const wait = records[r * Record.words + Record.waitSeq];
        const length = lengths.get((target - 1) as never) ?? 0;
        if (wait > length || wait <= -length) found.push(`list ${list} waits for ${wait}`);
      }
      const opcode = head & 0xff;
      span = opcode === Opcode.exec ? execRecords(head >>> 20) : 1;
      if (opcode === Opcode.copy) {
        const bytes = doubles[placeOf(r, 2)];
        needs(list, placeOf(r, 0), word & 0xff, bytes);
        needs(list, placeOf(r, 1), (word >> 8) & 0xff, bytes);
      } else if (opcode === Opcode.exec) {
        const n = insertion[r];
        const cls = insertions.classOf(n);
        const { space } = backend.queues[queue];
        if ((word & 0xffff) !== backend.kernel(KERNELS[cls.name], space))
          found.push(`list ${list} kernel ${word}`);
        cls.modes.forEach((_, i) => {
          needs(list, placeOf(r, i), space, directory.bytes[insertions.datum(n, i)]);
        });
      } else if (opcode !== Opcode.wait) found.push(`list ${list} has opcode ${opcode}`);
    }
  });
  return found;
}

async function loadedOr(load: () => Promise<Plan>): Promise<Plan | string> {
  try {
    return await load();
  } catch (error) {
    if (error instanceof HeadraceError) return error.code;
    throw error;
  }
}

test('a file with other numbers is refused, or stays within its memory and ends', async () => {
  const SEEDS = partOf(24, 9);
  const outcomes = new Map<string, number>();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const program = new PlanProgram(seed);
    const made = opened(program);
    const plan = await made.runtime.plan((graph) =>
      program.insert(graph, made.data, (n) => slot(n === 'code' ? 'code' : `s${n}`)),
    );
    expect(faults((Reflect.get(plan, 'forms') as Playables).plain.program, made.runtime)).toEqual(
      [],
    );
    await plan.save(file);
    await made.runtime.close();
    const { header, column } = contentOf(readFileSync(file), file);
    const columns: Columns = Object.fromEntries(
      [...COLUMNS, 'params'].map((name) => {
        const found = column(name);
        return [name, found instanceof Float64Array ? found : Array.from(found)];
      }),
    );
    const random = new Random(seed);
    for (let i = 0; i < CHANGES; i++) {
      writeFileSync(file, fileOf(header, changed(columns, random)));
      const { runtime, data } = opened(program);
      const found = await loadedOr(() =>
        runtime.loadPlan(file, { data, classes: [axpy, copy, failing] }),
      );
      const outcome = typeof found === 'string' ? found : 'loaded';
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (typeof found !== 'string') {
        const it = (Reflect.get(found, 'forms') as Playables).plain.program;
        expect(faults(it, runtime), `seed ${seed}, change ${i}`).toEqual([]);
        const values = Object.fromEntries(it.slots.map((name) => [name, 0]));
        await found.run({ times: 3, values });
      }
      await runtime.close();
    }
  }
  for (const outcome of ['loaded', 'ERR_PLAN_FILE'])
    expect(outcomes.get(outcome), outcome).toBeGreaterThan(2 * SEEDS + 2);
  expect([...outcomes.keys()].filter((key) => key !== 'loaded' && !REFUSALS.includes(key))).toEqual(
    [],
  );
}, 120_000);

test('the bytes of a file may begin anywhere in memory', () => {
  const bytes = fileOf({ headrace: 'x' }, { a: Float64Array.of(1, 2), b: [3, 300, 70_000] });
  const room = Buffer.alloc(bytes.length + 3);
  room.set(bytes, 3);
  const { column } = contentOf(room.subarray(3), 'here');
  expect([[...column('a')], [...column('b')]]).toEqual([
    [1, 2],
    [3, 300, 70_000],
  ]);
});
