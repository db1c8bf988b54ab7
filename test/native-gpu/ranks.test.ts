// Several ranks with CUDA GPUs, on the stub driver: staged chunks, memory opened by its IPC handle, device pointers given
// to MPI, flushes.
import { describe, expect, test } from 'vitest';
import { needing, stubRanks } from '../support/needs.js';
import { launch, type Outcome, type Wish } from './stub-ranks.js';

type Way = 'direct' | 'staged' | 'ipc';
interface Entry {
  readonly name: string;
  readonly problems: readonly string[];
  readonly pinned: number;
  readonly bytes: Readonly<Record<Way, number>>;
  readonly network: { readonly flushes: number };
}

const ORACLES = ['writeAfterRead', 'taskBench', 'broadcast', 'storm', 'copyCover'];

/** Runs the oracles; all must be right, and no rule of the driver broken. */
async function oracles(
  comm: Way | 'auto',
  given: object,
  wish: Wish = {},
): Promise<Outcome & { bytes: Record<Way, number>; flushes: number }> {
  const outcome = await launch({ ways: [comm], only: ORACLES, ...given }, wish);
  const { run, broken } = outcome;
  expect(run.code, run.output).toBe(0);
  const entries = run.reports as unknown as Entry[];
  expect(entries, run.output).toHaveLength(ORACLES.length * (wish.ranks ?? 2));
  const bytes = { direct: 0, staged: 0, ipc: 0 };
  let flushes = 0;
  for (const entry of entries) {
    expect(entry.problems, run.output).toEqual([]);
    expect(entry.pinned).toBe(0);
    // copy-cover also sends from host memory, which goes in chunks to GPUs that MPI cannot write to.
    if (entry.name === 'copyCover') continue;
    for (const way of ['direct', 'staged', 'ipc'] as const) bytes[way] += entry.bytes[way];
    flushes += entry.network.flushes;
  }
  expect(broken).toEqual([]);
  return { ...outcome, bytes, flushes };
}

describe('ranks with CUDA GPUs', needing(...stubRanks), () => {
  test.each([1, 2])('%i GPUs each: staged through page-locked chunks', async (gpus) => {
    const { bytes, calls } = await oracles('staged', { gpus });
    expect(bytes.staged).toBeGreaterThan(0);
    expect(bytes.ipc).toBe(0);
    expect(calls['cuMemHostAlloc']).toBeGreaterThan(0);
  });

  test.each([
    [2, 1],
    [2, 2],
    [3, 1],
  ])(
    '%i ranks with %i GPUs each read each other memory, opened once and closed',
    async (ranks, gpus) => {
      const { bytes, calls } = await oracles('ipc', { gpus }, { ranks });
      expect(bytes.ipc).toBeGreaterThan(0);
      expect(bytes.staged).toBe(0);
      // Every GPU opens the memory of every GPU of the other ranks, once.
      const pairs = ranks * gpus * (ranks - 1) * gpus;
      expect(calls['cuIpcOpenMemHandle']).toBe(pairs);
      expect(calls['cuIpcCloseMemHandle']).toBe(pairs);
    },
  );

  test.each([1, 2])(
    '%i GPUs each: factorisations and products, also in the memory of few tiles',
    async (gpus) => {
      const { run, broken } = await launch({ gpus, ways: ['staged'], only: ['cholesky', 'gemm'] });
      expect(run.code, run.output).toBe(0);
      const entries = run.reports as unknown as Entry[];
      expect(entries, run.output).toHaveLength(2 * 3 * 2);
      for (const entry of entries) expect(entry.problems, run.output).toEqual([]);
      expect(broken).toEqual([]);
    },
  );

  test('a kernel that spins on a word gets it by every way', async () => {
    const { run, broken } = await launch({}, { program: 'spin.mjs', aware: 'truly' });
    expect(run.code, run.output).toBe(0);
    expect(run.reports[1]).toMatchObject({ ok: true, ways: ['direct', 'staged', 'ipc'] });
    expect(run.reports[1]?.['cases']).toHaveLength(3 * 4 * 2);
    expect(broken).toEqual([]);
  });

  test('ranks of one host share its GPUs out among them', async () => {
    const { run } = await launch({ what: 'blocked' }, { program: 'movement.mjs' });
    const names = run.reports.map(
      (report) =>
        (report['figures'] as { devices: { kind: string; name: string }[] }).devices[1]?.name,
    );
    expect(names, run.output).toEqual([
      expect.stringContaining('Stub GPU 0'),
      expect.stringContaining('Stub GPU 1'),
    ]);
  });

  test('an MPI library that takes device pointers gets them; nothing is staged', async () => {
    const { bytes, calls } = await oracles('direct', {}, { aware: 'truly' });
    expect(bytes.direct).toBeGreaterThan(0);
    expect(bytes.staged + bytes.ipc).toBe(0);
    // The GPU orders writes of a card for itself, and nobody else reads there.
    expect(calls['cuFlushGPUDirectRDMAWrites'] ?? 0).toBe(0);
  });

  test('it gets the pointers of one GPU per process; the others go another way', async () => {
    const { bytes, flushes, calls } = await oracles('direct', { gpus: 2 }, { aware: 'truly' });
    expect(bytes.direct).toBeGreaterThan(0);
    expect(bytes.ipc).toBeGreaterThan(0);
    expect(bytes.staged).toBe(0);
    // The second GPU may read what the card wrote to the first: only a flush to all makes that safe.
    expect(flushes).toBeGreaterThan(0);
    expect(calls['cuFlushGPUDirectRDMAWrites']).toBeGreaterThanOrEqual(flushes);
  });

  test('if the GPU orders nothing, every batch of direct receives is flushed', async () => {
    const env = { HEADRACE_STUB_ORDERING: '0' };
    const { flushes, calls } = await oracles('direct', {}, { aware: 'truly', env });
    expect(flushes).toBeGreaterThan(0);
    expect(calls['cuFlushGPUDirectRDMAWrites']).toBeGreaterThanOrEqual(flushes);
    const off = await oracles('direct', { flush: 'off' }, { aware: 'truly', env });
    expect(off.flushes + (off.calls['cuFlushGPUDirectRDMAWrites'] ?? 0)).toBe(0);
  });

  test('a flush that the driver refuses rejects the run and poisons the copy', async () => {
    const { run } = await launch(
      { what: 'flush', comm: 'direct', flush: 'force' },
      {
        program: 'movement.mjs',
        aware: 'truly',
        env: { HEADRACE_STUB_FAULTS: 'cuFlushGPUDirectRDMAWrites:1:999' },
      },
    );
    expect(run.reports[1], run.output).toMatchObject({ code: 'ERR_FLUSH_FAILED' });
    expect(run.reports[0], run.output).toMatchObject({ cause: 'ERR_FLUSH_FAILED' });
  });

  test('a flush that does not come back ends at its deadline, and closing does not wait for it', async () => {
    const { run } = await launch(
      { what: 'flush', comm: 'direct', flush: 'force' },
      { program: 'movement.mjs', aware: 'truly', env: { HEADRACE_STUB_FLUSH_SECONDS: '1000' } },
    );
    expect(run.reports[1], run.output).toMatchObject({ code: 'ERR_FLUSH_TIMEOUT' });
    expect(run.reports[0], run.output).toMatchObject({ cause: 'ERR_FLUSH_TIMEOUT' });
    expect(run.seconds).toBeLessThan(60);
  });

  test.each([
    [undefined, /does not take device pointers/],
    ['lie', /did not arrive in device memory/],
  ] as const)(
    'device pointers are refused to a library that cannot take them (%s)',
    async (aware, why) => {
      const { run } = await launch({ ways: ['direct'], only: ['storm'] }, aware && { aware });
      expect(run.code).not.toBe(0);
      expect(run.output).toContain('ERR_COMM_UNAVAILABLE');
      expect(run.output).toMatch(why);
    },
  );

  test('memory that cannot be opened is a typed error, and staged without being asked for', async () => {
    const env = { HEADRACE_STUB_FAULTS: 'cuIpcOpenMemHandle:1:217' };
    const { run } = await launch({ ways: ['ipc'], only: ['storm'] }, { env });
    expect(run.output).toContain('ERR_COMM_UNAVAILABLE');
    expect(run.output).toContain('cuIpcOpenMemHandle');
    const { bytes } = await oracles('auto', {}, { env });
    expect(bytes.staged).toBeGreaterThan(0);
  });

  test.each(['staged', 'ipc'])('a rank that is killed is named within 5 s (%s)', async (comm) => {
    const { run, broken } = await launch(
      { way: 'kill', who: 1, comm, inlineBytes: 64 },
      { program: 'failures.mjs', ranks: 3 },
    );
    expect(broken).toEqual([]);
    const told = run.reports.filter((report) => report['rank'] !== 1 && 'first' in report);
    expect(told, run.output).toHaveLength(2);
    for (const { first, seconds } of told) {
      expect(first, run.output).toMatchObject({ code: 'ERR_PEER_LOST', from: 1 });
      expect(seconds).toBeLessThan(5);
    }
  });

  test.each(['direct', 'staged', 'ipc'])(
    'a rank that is killed while its GPU is being read is named (%s)',
    async (comm) => {
      const given = { way: 'kill-moving', who: 1, comm, gpuMemory: '256MiB', hostMemory: '512MiB' };
      const wish = { program: 'failures.mjs', ranks: 3, aware: 'truly' } as const;
      const { run, broken } = await launch(given, wish);
      expect(broken).toEqual([]);
      const told = run.reports.filter((report) => report['rank'] !== 1 && 'first' in report);
      expect(told, run.output).toHaveLength(2);
      for (const { first, received, of } of told) {
        expect(first, run.output).toMatchObject({ code: 'ERR_PEER_LOST', from: 1 });
        expect(received).toBeLessThan(of as number);
      }
    },
  );
});
