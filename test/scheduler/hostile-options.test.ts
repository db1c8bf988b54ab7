// Every option of every public call gets every kind of value that a program may have in a variable by mistake. It is accepted, or
// refused with a typed error that names the option and shows the value; afterwards the runtime works as before.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { HeadraceError, Runtime, slot } from '../../index.js';
import { DECLARATION_PLACES } from '../support/hostile-declarations.js';
import { GRAPH_PLACES } from '../support/hostile-graphs.js';
import type { Place, World } from '../support/hostile-place.js';
import { RUNTIME_PLACES } from '../support/hostile-places.js';
import { HOSTILE, type HostileValue } from '../support/hostile-values.js';
import { nothingLeft, soon } from '../support/machines.js';
import { axpy } from '../support/tasks.js';

const OPTIONS = {
  ...{ workers: 1, scriptWorkers: 0, gpus: 1, gpuMemory: '1MiB', hostMemory: '64MiB' },
  checked: true,
};

/** Words of JavaScript about a value that no check has met, and texts of objects that say nothing. */
const UNREADABLE =
  /\[object |Cannot convert|Cannot read|Cannot mix|is not (a function|iterable)|reading '|destructure/;

/** What is wrong with an error for a value; undefined if nothing is. */
function flaw({ mentions }: Place, value: HostileValue, error: unknown): string | undefined {
  if (!(error instanceof HeadraceError)) return `is no HeadraceError: ${(error as Error)?.stack}`;
  const { code, message } = error;
  if (!/^ERR_[A-Z_]+$/.test(code)) return `has code ${code}`;
  if (UNREADABLE.test(message)) return `is unreadable: ${message}`;
  if (!mentions.test(message)) return `does not mention ${mentions}: ${message}`;
  const shows = message.includes(value.text) || /no words|revoked|failed:/.test(message);
  // A run may be cancelled with any reason.
  const isReason = code === 'ERR_ABORTED';
  return value.isTelling && !shows && !isReason
    ? `does not show ${value.text}: ${message}`
    : undefined;
}

async function inWorld(use: (world: World) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-hostile-'));
  const runtime = await Runtime.create(OPTIONS);
  try {
    const x = runtime.data(new Float64Array(4), { name: 'x', rows: 2 });
    const y = runtime.data(new Float64Array(4), { name: 'y' });
    const z = runtime.data(new Float64Array(4), { name: 'z' });
    const plan = await runtime.plan(
      (graph) => void graph.insert(axpy, { y: x, x: y, n: slot('n'), a: 1 }),
    );
    const file = join(folder, 'plan');
    await plan.save(file);
    await use({ runtime, x, y, z, plan, file });
    plan.close();
    for (const datum of [x, y, z]) await datum.set(Float64Array.of(1, 2, 3, 4));
    const run = runtime.run((graph) => void graph.insert(axpy, { y: x, x: y, n: 4, a: 2 }));
    expect((await soon(runtime, run)).tasks).toBe(1);
    expect([...(await x.read())]).toEqual([3, 6, 9, 12]);
    await nothingLeft(runtime, [x, y, z]);
  } finally {
    await soon(runtime, runtime.close());
    rmSync(folder, { recursive: true });
  }
}

describe('options and arguments with any value', () => {
  it.each([
    { of: 'a runtime, its data, runs, graphs and plans', places: RUNTIME_PLACES },
    { of: 'task classes, flows and matrices', places: DECLARATION_PLACES },
    { of: 'parameterised graphs', places: GRAPH_PLACES },
  ])('$of: accepted, or refused with readable words', { timeout: 120_000 }, async ({ places }) => {
    await inWorld(async (world) => {
      const { runtime, x, z } = world;
      const flaws: string[] = [];
      for (const place of places)
        for (const value of HOSTILE) {
          try {
            await soon(runtime, (async () => place.give(world, value.make()))());
          } catch (error) {
            const what = flaw(place, value, error);
            if (what !== undefined)
              flaws.push(`${place.call}, ${place.option}, ${value.name}: the error ${what}`);
          }
          // A play or a run that has failed leaves data without values.
          for (const datum of [x, z]) await soon(runtime, datum.set(new Float64Array(4)));
        }
      expect(flaws).toEqual([]);
    });
  });
});

describe('a trace', () => {
  it('whose file cannot be made is refused before the machine opens', async () => {
    for (const trace of ['', '/nowhere/run.hrtrace'])
      await expect(Runtime.create({ ...OPTIONS, trace })).rejects.toBeInstanceOf(HeadraceError);
  });

  it.skipIf(process.platform !== 'linux')(
    'that is incomplete does not keep the machine open',
    async () => {
      const runtime = await Runtime.create({ ...OPTIONS, trace: '/dev/full' });
      const { backend } = runtime.engine;
      const close = vi.spyOn(backend, 'close');
      await expect(soon(runtime, runtime.close())).rejects.toMatchObject({
        name: 'HeadraceError',
        code: 'ERR_TRACE_WRITE',
      });
      expect(close).toHaveBeenCalledOnce();
    },
  );
});

describe('objects of options', () => {
  const bare = <T extends object>(properties: T): T =>
    Object.assign(Object.create(null) as T, properties);

  it('need no prototype', async () => {
    const runtime = await Runtime.create(bare(OPTIONS));
    const y = runtime.data(new Float64Array(4).fill(1));
    const x = runtime.data(new Float64Array(4), bare({ name: 'x', rows: 2 }));
    expect(x.block(bare({ row: 1, rows: 1 })).length).toBe(2);
    const plan = await runtime.plan(
      (graph) =>
        void graph.insert(axpy, bare({ y: x, x: y, n: slot('n'), a: 1 }), bare({ priority: 1 })),
      bare({ name: 'step' }),
    );
    await soon(runtime, plan.run(bare({ times: 2, values: bare({ n: 4 }) })));
    expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
    plan.close();
    await nothingLeft(runtime, [x, y]);
    await soon(runtime, runtime.close());
  });
});
