// `headrace doctor` under a launcher: the ranks report together, and one prints.
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { DoctorFacts } from '../../cli/doctor.js';
import { libraries, needing, ranks as rankNeed, stub, stubDriver } from '../support/needs.js';
import { mpirun, type RankOptions } from './mpirun.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

async function doctor(ranks: number, options: RankOptions = {}): Promise<Required<DoctorFacts>> {
  const run = await mpirun(ranks, main, { args: ['doctor', '--json'], seconds: 60, ...options });
  expect(run.code, run.output).toBe(0);
  const printed = run.output.split('\n').filter((line) => line.startsWith('{"ok"'));
  expect(printed, run.output).toHaveLength(1);
  return JSON.parse(printed[0] as string) as Required<DoctorFacts>;
}

describe('doctor under a launcher', { timeout: 90_000, ...needing(rankNeed) }, () => {
  test.each(libraries)('reports the ranks of the host together (%s)', async (library) => {
    const { launch, ipc, mpi } = await doctor(3, { library });
    expect(launch).toMatchObject({ launcher: 'mpirun', ranks: 3, driver: 'emulated' });
    expect(launch.library).toMatch(library === 'mpich' ? /^MPICH/ : /^Open MPI/);
    expect(mpi).toMatchObject({ found: true, library: launch.library });
    expect(ipc).toBe(true);
    expect(launch.hosts).toHaveLength(1);
    const [host] = launch.hosts;
    expect(host).toMatchObject({
      name: hostname(),
      ranks: [0, 1, 2],
      gpus: 0,
      gpusPerRank: 0,
      shared: [],
      ways: { ipc: true, direct: true, staged: true },
      letters: 'memory',
      problems: { direct: '', ipc: '' },
    });
    for (const cores of host?.cores ?? [0]) expect(cores).toBeGreaterThanOrEqual(1);
    // Ranks of one host have one clock: the true offset is 0 and lies within the error.
    expect(host?.clocks).toHaveLength(3);
    for (const { offset, error } of host?.clocks ?? [])
      expect(Math.abs(offset)).toBeLessThanOrEqual(error);
    for (const { error } of host?.clocks.slice(1) ?? []) expect(error).toBeGreaterThan(0);
  });

  describe('with CUDA GPUs on the stub driver', needing(stubDriver), () => {
    const gpus = (count: number, more: Record<string, string> = {}): RankOptions => ({
      env: {
        HEADRACE_CUDA_LIBRARY: stub('stub_cuda'),
        HEADRACE_CACHE: 'off',
        HEADRACE_STUB_DEVICES: String(count),
        ...more,
      },
    });

    test('counts the GPUs for each rank', async () => {
      const { launch } = await doctor(2, gpus(5));
      expect(launch.driver).toBe('cuda');
      expect(launch.hosts[0]).toMatchObject({ gpus: 5, gpusPerRank: 2, shared: [] });
      expect(launch.hosts[0]?.ways).toMatchObject({ ipc: true, direct: false });
      expect(launch.hosts[0]?.problems.direct).toMatch(/\w/);
    });

    test('names ranks that take the same GPU', async () => {
      const { launch, findings } = (await doctor(
        2,
        gpus(1, { CUDA_VISIBLE_DEVICES: '0' }),
      )) as Required<DoctorFacts> & { findings: { name: string; state: string; found: string }[] };
      expect(launch.hosts[0]).toMatchObject({ gpus: 1, gpusPerRank: 0, shared: [[0, 1]] });
      const line = findings.find(({ name }) => name.startsWith('host '));
      expect(line).toMatchObject({
        state: 'absent',
        found: expect.stringMatching(/rank 0-1 take/),
      });
    });

    test('reports fewer GPUs than ranks', async () => {
      const { launch } = await doctor(2, gpus(1));
      expect(launch.driver).toBe('mixed');
      expect(launch.hosts[0]).toMatchObject({ gpus: 1, gpusPerRank: 0, shared: [] });
    });
  });
});
