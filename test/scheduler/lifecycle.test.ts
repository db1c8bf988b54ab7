// The life of a runtime: closing in order, processes that end by themselves, runs side by side.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Runtime } from '../../index.js';
import { MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { add, delay, fill, script } from '../support/tasks.js';

const COUNT = 64;
/** Milliseconds. To open four real GPUs takes their driver seconds if the machine has other work. */
const TIME_TO_OPEN = 180_000;
const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

describe.each(MACHINES)('on $name', ({ options }) => {
  it('opens and closes many times, with nothing done, and with closing asked for twice', {
    timeout: TIME_TO_OPEN,
  }, async () => {
    for (let i = 0; i < 20; i++) {
      const runtime = await Runtime.create(options);
      await Promise.all([runtime.close(), runtime.close()]);
    }
  });

  it('await using closes after the runs that are still open', async () => {
    const order: string[] = [];
    {
      await using runtime = await Runtime.create(options);
      const datum = runtime.data(new Float64Array(COUNT));
      const run = runtime.run((graph) => {
        for (let i = 0; i < 200; i++) graph.insert(delay, { of: datum, microseconds: 20 });
      });
      run.done.then((report) => order.push(`run of ${report.tasks}`));
      order.push('end of block');
    }
    order.push('closed');
    expect(order).toEqual(['end of block', 'run of 200', 'closed']);
  });

  it('closing waits for failing and cancelled runs as well', async () => {
    const runtime = await Runtime.create(options);
    const datum = runtime.data(new Float64Array(COUNT));
    const run = runtime.run((graph) => {
      for (let i = 0; i < 500; i++) graph.insert(delay, { of: datum, microseconds: 50 });
    });
    const failed = run.done.catch((error: Error) => error.name);
    run.cancel();
    await soon(runtime, runtime.close());
    expect(await failed).toBe('AbortError');
  });

  it('runs side by side keep apart, and data flow from one to the next in order of insertion', async () => {
    await onMachine(options, async (runtime) => {
      const one = runtime.data(new Float64Array(COUNT).fill(1));
      const shared = runtime.data('f64', COUNT);
      const own = Array.from({ length: 5 }, () => runtime.data(new Float64Array(COUNT)));
      const first = runtime.run((graph) => {
        graph.insert(fill, { to: shared, count: COUNT, value: 100 });
        for (let i = 0; i < 40; i++) graph.insert(delay, { of: shared, microseconds: 20 });
      });
      const others = own.map((to, i) =>
        runtime.run((graph) => {
          for (let k = 0; k <= i; k++) graph.insert(add, { to, from: one, count: COUNT });
          graph.insert(add, { to, from: shared, count: COUNT });
        }),
      );
      expect((await soon(runtime, first)).tasks).toBe(41);
      const reports = await soon(runtime, Promise.all(others.map((run) => run.done)));
      expect(reports.map((r) => r.tasks)).toEqual([2, 3, 4, 5, 6]);
      for (const [i, datum] of own.entries()) {
        expect(await datum.read()).toEqual(new Float64Array(COUNT).fill(101 + i));
      }
      await nothingLeft(runtime, [one, shared, ...own]);
    });
  });

  it('data closed while tasks use them go when the last task is over, and their rows are used again', async () => {
    await onMachine(options, async (runtime) => {
      const sum = runtime.data(new Float64Array(COUNT), { name: 'sum' });
      for (let round = 0; round < 10; round++) {
        const run = runtime.run((graph) => {
          for (let i = 0; i < 20; i++) {
            const part = runtime.data('f64', COUNT, { name: `part ${round}/${i}` });
            graph.insert(fill, { to: part, count: COUNT, value: 1 });
            graph.insert(add, { to: sum, from: part, count: COUNT });
            part.close();
          }
        });
        await soon(runtime, run);
      }
      expect(await sum.read()).toEqual(new Float64Array(COUNT).fill(200));
      // Rows are recycled: ten rounds did not need ten times the rows.
      expect(runtime.engine.directory.length).toBeLessThan(100);
      await nothingLeft(runtime, [sum]);
    });
  });

  it('an empty program, an empty run and one of JavaScript only end well', async () => {
    await onMachine(options, async (runtime) => {
      expect(
        (
          await soon(
            runtime,
            runtime.run(() => {}),
          )
        ).tasks,
      ).toBe(0);
      expect(
        (
          await soon(
            runtime,
            runtime.run(async () => {}),
          )
        ).tasks,
      ).toBe(0);
      const datum = runtime.data(new Float64Array(COUNT));
      const body = script('body', (values) => void values[0]++);
      const report = await soon(
        runtime,
        runtime.run((graph) => void graph.insert(body, { of: datum })),
      );
      expect(report.tasks).toBe(1);
      expect((await datum.read())[0]).toBe(1);
      await nothingLeft(runtime, [datum]);
    });
  });
});

describe('a process', () => {
  const program = async (
    text: string,
  ): Promise<{ stdout: string; stderr: string; code: number }> => {
    const folder = mkdtempSync(path.join(tmpdir(), 'headrace-process-'));
    try {
      const file = path.join(folder, 'program.mjs');
      const entry = path.join(root, 'dist', 'index.js');
      writeFileSync(
        file,
        `import { Runtime, task, readWrite } from ${JSON.stringify(entry)};\n${text}`,
      );
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], {
        timeout: 15_000,
      });
      return { stdout, stderr, code: 0 };
    } catch (error) {
      const failed = error as { stdout: string; stderr: string; code: number };
      return { stdout: failed.stdout, stderr: failed.stderr, code: failed.code };
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const spinning = `
    const spin = task({ name: 'spin', flows: { of: readWrite('f64') }, params: { us: 'f64' }, kernel: 'spin' });
    const runtime = await Runtime.create({ gpus: 1, gpuMemory: '1MiB', workers: 1 });
    const datum = runtime.data(new Float64Array(8));
    const insert = (graph) => { for (let i = 0; i < 50; i++) graph.insert(spin, { of: datum, us: 1000 }); };
  `;

  it('ends by itself when the runtime was closed', async () => {
    const done = await program(
      `${spinning} await runtime.run(insert); await runtime.close(); console.log('end');`,
    );
    expect(done).toEqual({ stdout: 'end\n', stderr: '', code: 0 });
  });

  it('ends by itself when the runtime was forgotten', async () => {
    const done = await program(`${spinning} await runtime.run(insert); console.log('end');`);
    expect(done).toEqual({ stdout: 'end\n', stderr: '', code: 0 });
  });

  it('stays alive for a run that is not awaited, and not longer', async () => {
    const done = await program(
      `${spinning} runtime.run(insert).done.then((r) => console.log('tasks', r.tasks));`,
    );
    expect(done).toEqual({ stdout: 'tasks 50\n', stderr: '', code: 0 });
  });

  it('may exit in the middle of a run', async () => {
    const done = await program(
      `${spinning} runtime.run(insert); setTimeout(() => process.exit(7), 10);`,
    );
    expect(done).toEqual({ stdout: '', stderr: '', code: 7 });
  });

  it('dies of an exception while a run is open, with that exception', async () => {
    const done = await program(`${spinning} runtime.run(insert); throw new Error('on purpose');`);
    expect(done.code).toBe(1);
    expect(done.stderr).toContain('on purpose');
  });

  it('sees its timers served while a long graph runs and while a million tasks are inserted with pauses', async () => {
    const done = await program(`
      const empty = task({ name: 'empty', flows: {}, kernel: 'empty' });
      const runtime = await Runtime.create({ workers: 1 });
      let ticks = 0;
      const timer = setInterval(() => ticks++, 2);
      await runtime.run(async (graph) => {
        for (let i = 0; i < 200_000; i++) {
          graph.insert(empty, {});
          if (i % 5000 === 0) await graph.space();
        }
      });
      clearInterval(timer);
      await runtime.close();
      console.log(ticks > 5);
    `);
    expect(done).toEqual({ stdout: 'true\n', stderr: '', code: 0 });
  });
});
