// The story of a task and of a datum: complete, in order, in the user's words, and kept only in checked runs.
import { describe, expect, it } from 'vitest';
import { type Runtime, readWrite, type TaskHandle, task } from '../../index.js';
import { KEPT, Story } from '../../scheduler/reports/story.js';
import { onMachine, soon } from '../support/machines.js';
import { add, copy, fill } from '../support/tasks.js';

const COUNT = 64;
const bump = task({
  name: 'bump',
  flows: { at: readWrite('f64') },
  body: ({ at }) => {
    at[0]++;
  },
});

/** The lines of a story without their times. */
function lines(story: string): string[] {
  return story.split('\n').map((line) => line.slice(9).trim());
}

function inOrder(story: string, ...parts: string[]): void {
  let from = 0;
  for (const part of parts) {
    const at = story.indexOf(part, from);
    expect(at, `${part} after:\n${story.slice(0, from)}\nin:\n${story}`).toBeGreaterThanOrEqual(0);
    from = at + part.length;
  }
}

const GPU = { driver: 'emulated', gpus: 1, workers: 1 } as const;

describe('story', () => {
  it('of a task with a body names its class, its data, its stages and its end', async () => {
    await onMachine({ ...GPU, checked: true }, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT), { name: 'x' });
      let handle: TaskHandle | undefined;
      await runtime.run((graph) => {
        handle = graph.insert(bump, { at: x });
      });
      const story = runtime.story(handle as TaskHandle);
      inOrder(story, "inserted, class 'bump'", 'readWrite of x', 'enters exec on host');
      inOrder(story, 'begins', 'has ended', 'is over', 'enters stage-out', 'enters finalize');
    });
  });

  it('of a datum tells of its tasks, its copies and its eviction', async () => {
    await onMachine({ ...GPU, checked: true, gpuMemory: 3 * 512 }, async (runtime) => {
      const data = Array.from({ length: 6 }, (_, i) =>
        runtime.data(new Float64Array(COUNT).fill(i), { name: `d${i}` }),
      );
      await runtime.run((graph) => {
        for (let round = 0; round < 3; round++)
          for (let i = 0; i < 6; i++)
            graph.insert(
              add,
              { to: data[i], from: data[(i + 1) % 6], count: COUNT },
              { device: 0 },
            );
      });
      const story = runtime.story(data[0]);
      expect(story).toContain('datum d0 is made');
      inOrder(story, 'readWrite of d0', 'issued to queue 1', 'is over');
      expect(story).toContain('d0 copied from host to emulated GPU 0');
      expect(story).toMatch(/d0 leaves emulated GPU 0/);
      // Of other data it says nothing.
      expect(lines(story).filter((line) => / d[1-5]\b/.test(line))).toEqual([]);
    });
  });

  it('of a row that is used again begins with the new datum', async () => {
    await onMachine({ workers: 1, checked: true }, async (runtime) => {
      const old = runtime.data('f64', COUNT, { name: 'old' });
      await runtime.run((graph) => void graph.insert(fill, { to: old, count: COUNT, value: 1 }));
      const { row } = old;
      old.close();
      // The row goes back when a pass has found it unused.
      await soon(runtime, runtime.engine.quiet());
      const fresh = runtime.data('f64', COUNT, { name: 'fresh' });
      expect(fresh.row).toBe(row);
      expect(runtime.story(fresh)).not.toContain('old');
      expect(lines(runtime.story(fresh))[0]).toBe('datum fresh is made');
    });
  });

  it('is part of the error when nothing can go on', async () => {
    await onMachine({ workers: 1, checked: false }, async (runtime) => {
      const { engine } = runtime as Runtime;
      engine.observe(new Story(engine));
      expect(engine.story).toBeUndefined();
    });
    await onMachine({ workers: 1, checked: true }, async (runtime) => {
      const [x, y] = [1, 2].map(() => runtime.data(new Float64Array(COUNT)));
      const { engine } = runtime;
      const run = runtime.run((graph) => {
        const first = graph.insert(bump, { at: x });
        const second = graph.insert(copy, { to: y, from: x, bytes: 8 * COUNT }, { after: [first] });
        // As if a predecessor had been forgotten: the checks see it first, in the middle of a pass.
        engine.validateState = () => {};
        engine.tasks.pending[second & engine.tasks.mask]++;
      });
      const error = await soon(runtime, run).catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code: 'ERR_STALLED' });
      const { report } = (error as { details: { report: string } }).details;
      inOrder(
        report,
        'waits for a predecessor',
        'copy #',
        "inserted, class 'copy'",
        'follows task #',
      );
    });
  });

  it('reports that nothing is kept', async () => {
    await onMachine({ workers: 1, checked: false }, async (runtime) => {
      const x = runtime.data('f64', 8);
      expect(runtime.story(x)).toContain('checked: true');
    });
    await onMachine({ workers: 1, checked: true }, async (runtime) => {
      expect(runtime.story(4711 as TaskHandle)).toBe('nothing is kept of task #4711');
      expect(() => runtime.story('x' as never)).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT_TYPE' }),
      );
    });
  });

  it('keeps the last stimuli and forgets the first', async () => {
    await onMachine({ workers: 1, checked: true }, async (runtime) => {
      const x = runtime.data(new Float64Array(COUNT));
      const y = runtime.data(new Float64Array(COUNT));
      const handles: TaskHandle[] = [];
      await runtime.run(async (graph) => {
        for (let i = 0; i < KEPT; i++) {
          handles.push(graph.insert(copy, { to: y, from: x, bytes: 8 * COUNT }));
          if (i % 64 === 0) await graph.space();
        }
      });
      expect(runtime.story(handles[0])).toBe(`nothing is kept of task #${handles[0]}`);
      expect(runtime.story(handles[KEPT - 1])).toContain('is over');
      expect(runtime.story(x).split('\n').length).toBeLessThanOrEqual(KEPT);
    });
  });
});
