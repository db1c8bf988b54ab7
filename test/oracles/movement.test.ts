// Oracles about the places of data and about copies: results and exact byte counts.
import { describe, expect, it } from 'vitest';
import { type Datum, HeadraceError, type RunReport, read, readWrite, task } from '../../index.js';
import { GPUS, MACHINES, nothingLeft, onMachine, soon } from '../support/machines.js';
import { gpus as gpuCount, needing } from '../support/needs.js';
import { add, fill, look, script } from '../support/tasks.js';

const COUNT = 128;
const BYTES = COUNT * 8;

/** Kernel `empty` under flows that claim to change or to read a tile. */
const keep = task({ name: 'keep', flows: { of: readWrite('f64') }, kernel: 'empty' });
const see = task({ name: 'see', flows: { of: read('f64') }, kernel: 'empty' });

type Place = 'host' | number;

function moved(report: RunReport): { h2d: number; d2h: number; d2d: number } {
  const { h2d, d2h, d2d, ...others } = report.bytes;
  expect(Object.values(others).every((bytes) => bytes === 0)).toBe(true);
  return { h2d: h2d / BYTES, d2h: d2h / BYTES, d2d: d2d / BYTES };
}

/** Copies between two places, in tiles. */
function hop(from: Place, to: Place): { h2d: number; d2h: number; d2d: number } {
  const differ = from === to ? 0 : 1;
  if (from === 'host') return { h2d: differ, d2h: 0, d2d: 0 };
  if (to === 'host') return { h2d: 0, d2h: differ, d2d: 0 };
  return { h2d: 0, d2h: 0, d2d: differ };
}

describe.each(GPUS)('on $name', ({ options, gpus }) => {
  it('ping-pong: a token visits GPU, host and GPU; tile[i] = 3 i', async () => {
    await onMachine(options, async (runtime) => {
      const ramp = runtime.data(
        Float64Array.from({ length: COUNT }, (_, i) => i),
        { name: 'ramp' },
      );
      const token = runtime.data(new Float64Array(COUNT), { name: 'token' });
      const addOnHost = script('add on host', (tile) => {
        for (let i = 0; i < tile.length; i++) tile[i] += i;
      });
      const once = async (): Promise<RunReport> =>
        await soon(
          runtime,
          runtime.run((graph) => {
            graph.insert(add, { to: token, from: ramp, count: COUNT }, { device: 0 });
            graph.insert(addOnHost, { of: token });
            graph.insert(add, { to: token, from: ramp, count: COUNT }, { device: 1 % gpus });
          }),
        );
      // token and ramp to the first GPU, token home, token to the second GPU, which gets the ramp from the first.
      expect(moved(await once())).toEqual({ h2d: 3, d2h: 1, d2d: gpus > 1 ? 1 : 0 });
      expect(await token.read()).toEqual(Float64Array.from({ length: COUNT }, (_, i) => 3 * i));
      for (let round = 2; round <= 10; round++) {
        // The ramp is where it is needed; the token goes there, home, and there again.
        const { h2d, d2h, d2d } = moved(await once());
        if (gpus === 1) expect({ h2d, d2h, d2d }).toEqual({ h2d: 1, d2h: 1, d2d: 0 });
        else expect({ h2d, d2h, d2d }).toEqual({ h2d: 1, d2h: 1, d2d: 1 });
      }
      expect(await token.read()).toEqual(Float64Array.from({ length: COUNT }, (_, i) => 30 * i));
      await nothingLeft(runtime, [ramp, token]);
    });
  });

  const places: Place[] = ['host', ...Array.from({ length: Math.min(gpus, 2) }, (_, g) => g)];
  it('new tile: written first, changed and read in all placements; no transfer for the new tile', async () => {
    await onMachine(options, async (runtime) => {
      for (const born of places) {
        for (const changed of places) {
          for (const seen of places) {
            const tile = runtime.data('f64', COUNT, { name: `${born} ${changed} ${seen}` });
            const report = await soon(
              runtime,
              runtime.run((graph) => {
                graph.insert(fill, { to: tile, count: COUNT, value: 42 }, { device: born });
                graph.insert(keep, { of: tile }, { device: changed });
                graph.insert(see, { of: tile }, { device: seen });
              }),
            );
            const [a, b] = [hop(born, changed), hop(changed, seen)];
            const expected = { h2d: a.h2d + b.h2d, d2h: a.d2h + b.d2h, d2d: a.d2d + b.d2d };
            expect(moved(report), tile.name).toEqual(expected);
            expect(await tile.read()).toEqual(new Float64Array(COUNT).fill(42));
            await nothingLeft(runtime, [tile]);
          }
        }
      }
    });
  });

  it('new tile born in a JavaScript body: no transfer either', async () => {
    await onMachine(options, async (runtime) => {
      const tile = runtime.data('f64', COUNT);
      const birth = task({
        name: 'birth',
        flows: { to: { element: 'f64', mode: 'write' } as const },
        body: ({ to }) => void to.fill(7),
      });
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(birth, { to: tile });
        }),
      );
      expect(moved(report)).toEqual({ h2d: 0, d2h: 0, d2d: 0 });
      expect(await tile.read()).toEqual(new Float64Array(COUNT).fill(7));
      await nothingLeft(runtime, [tile]);
    });
  });

  it('best device: every task of a tile runs on the device advised for it', async () => {
    await onMachine(options, async (runtime) => {
      const [mt, nt] = [5, 4];
      const names = runtime.gpus;
      const tiles: { datum: Datum<'f64'>; device: number }[] = [];
      for (let m = 0; m < mt; m++) {
        for (let n = 0; n < nt; n++) {
          const datum = runtime.data(new Float64Array(COUNT), { name: `(${m}, ${n})` });
          const device = (n * nt + m) % gpus;
          datum.advise(device);
          tiles.push({ datum, device });
        }
      }
      const run = () =>
        soon(
          runtime,
          runtime.run((graph) => {
            for (let round = 0; round < 4; round++) {
              for (const { datum } of tiles) graph.insert(keep, { of: datum });
              for (const { datum } of tiles) graph.insert(see, { of: datum });
            }
          }),
        );
      // A task anywhere else would have cost a copy between devices or back.
      expect(moved(await run())).toEqual({ h2d: tiles.length, d2h: 0, d2d: 0 });
      for (const { datum, device } of tiles) expect(datum.locations()).toEqual([names[device]]);
      expect(moved(await run())).toEqual({ h2d: 0, d2h: 0, d2d: 0 });
      // Advice can change: the next writer runs there, and the value comes along.
      const { datum, device } = tiles[0];
      datum.advise((device + 1) % gpus);
      expect(moved(await run()).d2d).toBe(gpus > 1 ? 1 : 0);
      expect(datum.locations()).toEqual([names[(device + 1) % gpus]]);
      await nothingLeft(
        runtime,
        tiles.map((t) => t.datum),
      );
    });
  });

  it('too large: an immediate error with task, bytes and limit; nothing else is disturbed', async () => {
    await onMachine({ ...options, gpuMemory: 8 * BYTES }, async (runtime) => {
      const tile = runtime.data('f64', COUNT, { name: 'tile' });
      const one = runtime.data(new Float64Array(COUNT).fill(1), { name: 'one' });
      const giant = runtime.data('f64', COUNT * 9, { name: 'giant' });
      let thrown: unknown;
      const report = await soon(
        runtime,
        runtime.run((graph) => {
          graph.insert(fill, { to: tile, count: COUNT, value: 1 });
          try {
            graph.insert(fill, { to: giant, count: giant.length, value: 1 });
          } catch (error) {
            thrown = error;
          }
          graph.insert(add, { to: tile, from: one, count: COUNT });
        }),
      );
      expect(thrown).toBeInstanceOf(HeadraceError);
      const error = thrown as HeadraceError;
      expect(error.code).toBe('ERR_TASK_TOO_LARGE');
      expect(error.message).toMatch(/'fill' needs 9216 bytes at once, but .*GPU.* has 8192/);
      expect(error.details).toMatchObject({
        task: 'fill',
        stage: 'alloc',
        bytes: 9 * BYTES,
        limit: 8 * BYTES,
      });
      expect(report.tasks).toBe(2);
      expect(await tile.read()).toEqual(new Float64Array(COUNT).fill(2));
      await nothingLeft(runtime, [tile, one, giant]);
    });
  });

  it('all dirty: with the device full of dirty copies the next task gets its room by write-back', async () => {
    await onMachine({ ...options, gpuMemory: 8 * BYTES }, async (runtime) => {
      const tiles = Array.from({ length: 24 }, (_, i) =>
        runtime.data('f64', COUNT, { name: `t${i}` }),
      );
      const fillAll = (from: number, to: number) =>
        soon(
          runtime,
          runtime.run((graph) => {
            for (let i = from; i < to; i++) {
              graph.insert(fill, { to: tiles[i], count: COUNT, value: i + 1 }, { device: 0 });
            }
          }),
        );
      await fillAll(0, 8);
      const gpu = () => runtime.memory()[1];
      expect(gpu().used).toBe(8 * BYTES);
      const report = await fillAll(8, 24);
      expect(report.spills).toBeGreaterThanOrEqual(16);
      expect(report.evictions).toBeGreaterThanOrEqual(16);
      expect(moved(report)).toMatchObject({ h2d: 0, d2d: 0 });
      expect(report.bytes.d2h).toBe(report.spills * BYTES);
      expect(gpu().used).toBeLessThanOrEqual(8 * BYTES);
      for (let i = 0; i < tiles.length; i++) {
        expect(await tiles[i].read()).toEqual(new Float64Array(COUNT).fill(i + 1));
      }
      await nothingLeft(runtime, tiles);
    });
  });
});

describe('peer copies', () => {
  const [, two, four] = GPUS;

  it(
    'D2D used: reads and changes shared by two devices cost the host the first touch only',
    needing(gpuCount(2)),
    async () => {
      await onMachine(two.options, async (runtime) => {
        const shared = runtime.data(new Float64Array(COUNT).fill(1), { name: 'shared' });
        const token = runtime.data(new Float64Array(COUNT), { name: 'token' });
        const rounds = 20;
        const report = await soon(
          runtime,
          runtime.run((graph) => {
            for (let i = 0; i < rounds; i++) {
              graph.insert(look, { at: shared, microseconds: 1 }, { device: i % 2 });
              graph.insert(add, { to: token, from: shared, count: COUNT }, { device: i % 2 });
            }
          }),
        );
        // First touch of both by the first device; `shared` goes across once, `token` at every change of device.
        expect(moved(report)).toEqual({ h2d: 2, d2h: 0, d2d: 1 + (rounds - 1) });
        expect(await token.read()).toEqual(new Float64Array(COUNT).fill(rounds));
        await nothingLeft(runtime, [shared, token]);
      });
    },
  );

  it(
    'two devices that ask for one datum at the same time fetch it from the host once',
    needing(gpuCount(4)),
    async () => {
      await onMachine(four.options, async (runtime) => {
        const shared = runtime.data(new Float64Array(COUNT).fill(1), { name: 'shared' });
        const report = await soon(
          runtime,
          runtime.run((graph) => {
            for (let i = 0; i < 40; i++) graph.insert(see, { of: shared }, { device: i % 4 });
          }),
        );
        expect(moved(report)).toEqual({ h2d: 1, d2h: 0, d2d: 3 });
        expect(shared.locations().sort()).toEqual([...runtime.gpus, 'host'].sort());
        await nothingLeft(runtime, [shared]);
      });
    },
  );
});

describe.each(MACHINES)('too large on $name', ({ options }) => {
  it('a task that can never fit fails the program that does not catch it, and only that', async () => {
    await onMachine({ ...options, hostMemory: '1MiB', gpuMemory: '64KiB' }, async (runtime) => {
      const small = runtime.data('f64', 16);
      const giant = runtime.data('f64', 2 ** 20);
      const failed = runtime.run((graph) => {
        graph.insert(fill, { to: small, count: 16, value: 3 });
        graph.insert(fill, { to: giant, count: giant.length, value: 3 });
      });
      await expect(soon(runtime, failed)).rejects.toMatchObject({
        code: 'ERR_TASK_TOO_LARGE',
        details: { bytes: 2 ** 23 },
      });
      await soon(
        runtime,
        runtime.run((graph) => void graph.insert(fill, { to: small, count: 16, value: 4 })),
      );
      expect((await small.read())[0]).toBe(4);
      await nothingLeft(runtime, [small, giant]);
    });
  });
});
