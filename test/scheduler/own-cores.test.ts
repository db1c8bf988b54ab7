// A rank's share of the cores of its host.
import { availableParallelism } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { countCores, ownCores } from '../../scheduler/program/own-cores.js';

afterEach(() => vi.unstubAllEnvs());

function launchedWith(localSize: number): void {
  vi.stubEnv('OMPI_COMM_WORLD_SIZE', String(localSize));
  vi.stubEnv('OMPI_COMM_WORLD_RANK', '0');
  vi.stubEnv('OMPI_COMM_WORLD_LOCAL_SIZE', String(localSize));
  vi.stubEnv('OMPI_COMM_WORLD_LOCAL_RANK', '0');
}

describe('the share of a rank', () => {
  it.each([
    ['0', 1],
    ['0-3', 4],
    ['0-3,8', 5],
    ['2,4,10-11', 4],
    ['', 0],
  ])('a list %s names %i cores', (list, count) => {
    expect(countCores(list)).toBe(count);
  });

  it('is everything for a process by itself', () => {
    expect(ownCores()).toBe(availableParallelism());
  });

  it('is divided among the ranks of the host, but never nothing', () => {
    launchedWith(2);
    const ofTwo = ownCores();
    expect(ofTwo).toBeGreaterThanOrEqual(Math.max(1, Math.floor(availableParallelism() / 2)));
    expect(ofTwo).toBeLessThanOrEqual(availableParallelism());
    launchedWith(100_000);
    expect(ownCores()).toBe(1);
  });

  it('under srun is a share of the cores of its step, also where srun does not bind', () => {
    const cores = availableParallelism();
    vi.stubEnv('SLURM_STEP_NUM_TASKS', '4');
    vi.stubEnv('SLURM_STEP_TASKS_PER_NODE', '2(x2)');
    vi.stubEnv('SLURM_PROCID', '0');
    vi.stubEnv('SLURM_CPUS_ON_NODE', '2');
    expect(ownCores()).toBe(1);
    vi.stubEnv('SLURM_CPUS_ON_NODE', String(2 * cores));
    expect(ownCores()).toBe(cores);
    vi.stubEnv('SLURM_STEP_TASKS_PER_NODE', '1(x4)');
    vi.stubEnv('SLURM_CPUS_ON_NODE', '1');
    expect(ownCores()).toBe(1);
  });
});
