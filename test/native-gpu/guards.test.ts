// The guards of the native part (native/core/guards.h): with each guard the promise holds; without it the stub driver,
// or a test of the native program, detects the damage.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkVariables } from '../../scripts/release/variables.mjs';
import { beside, gpuProgram, needing, stub, stubRanks, switches } from '../support/needs.js';
import { launch, type Outcome, program } from './stub-ranks.js';

/** Runs the tests of the native program whose names contain `name`. */
function native(name: string, without: string): { readonly code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(program, [name], {
    encoding: 'utf8',
    timeout: 60_000,
    env: {
      ...process.env,
      HEADRACE_CUDA_LIBRARY: stub('stub_cuda'),
      HEADRACE_CUBLAS_LIBRARY: stub('stub_blas'),
      HEADRACE_CUSOLVER_LIBRARY: stub('stub_blas'),
      HEADRACE_WITHOUT: without,
    },
  });
  return { code: status, output: stdout + stderr };
}

describe('addons', needing(switches), () => {
  test('guards can be switched off in the message layer for tests, and in no addon for use', () => {
    expect(checkVariables(beside('switches-mpi.node'))).toHaveLength(1);
    const others = readdirSync(beside('.')).filter((name) => /^(mpi|headrace).*\.node$/.test(name));
    expect(others).toContain('headrace.node');
    for (const name of others) expect(checkVariables(beside(name)), name).toEqual([]);
  });
});

describe('native tests', needing(gpuProgram), () => {
  test.each([
    ['importGeneration', 'memory at an address used before', 'imports.cpp'],
    ['wakePassed', 'a sleeper is woken by a number that passes its own', 'completion_waiters.cpp'],
    ['nonBlockingStreams', 'bytes go to a GPU and come back', 'the NULL stream blocks'],
    ['laneFailures', 'nothing is sent while a failure is not handled', 'lanes.cpp'],
    ['laneCancel', "a cancelled run's sends and receives end without bytes", 'lanes.cpp'],
    ['laneAwaitsBytes', 'a cancelled receive that asked for bytes', 'version_ways.cpp'],
    ['laneLooks', 'lanes wait for the condition of a play', 'lane_plays.cpp'],
    ['playPassed', 'records behind a play that ended early', 'play_ends.cpp'],
    ['failureRings', 'a failed record wakes the engine', 'lanes.cpp'],
    ['restLooksAgain', 'a script worker that goes to its event loop', 'script_ports.cpp'],
    ['playAwaits', 'a body behind a barrier of a play waits', 'script_plays.cpp'],
    ['playKeepsServer', 'a script worker keeps its queue when a play ends', 'script_plays.cpp'],
    ['playFinal', 'a play whose last iteration a queue has written', 'play_growth.cpp'],
    ['mailOrder', 'the head of a letter is written behind its values', 'mailboxes.cpp'],
    ['mailRoom', 'a letter without room is refused, and overwrites none', 'mailboxes.cpp'],
    ['mailClears', 'values of letters that were taken are not taken', 'mailboxes.cpp'],
    ['doubtFailures', 'a failure that a death explains is told as that death', 'doubts.cpp'],
    ['graphOrder', 'a graph keeps the order between its streams', 'graphs.cpp'],
    ['graphOutcome', 'a failure in a graph is not lost to its next launch', 'graphs.cpp'],
    ['graphWatch', 'a GPU that is lost in a graph of several is seen', 'graphs.cpp'],
    ['lockPatience', 'in the middle of a run a copy waits', 'slowBytes'],
    ['launchPause', 'beside one, a copy goes without', 'while a kernel may be'],
  ])('without %s: "%s" fails', (guard, name, words) => {
    const whole = native(name, '');
    expect(whole.code, whole.output).toBe(0);
    const without = native(name, guard);
    expect(without.code, without.output).toBe(1);
    expect(without.output).toContain(words);
  });
});

describe('ranks', needing(...stubRanks, switches), () => {
  /** The message layer whose guards can be switched off, without one of them. */
  const leaving = (without: string): Record<string, string> => ({
    HEADRACE_MPI: beside('switches-mpi.node'),
    HEADRACE_WITHOUT: without,
  });

  test('without closeImports: memory is freed that another process has open', async () => {
    const read = (without: string): Promise<Outcome> =>
      launch({ ways: ['ipc'], only: ['storm'] }, { env: leaving(without) });
    const whole = await read('');
    expect(whole.run.code, whole.run.output).toBe(0);
    expect(whole.broken).toEqual([]);
    const { broken } = await read('closeImports');
    expect(broken).toContain('cuMemFree: memory that another process has open');
  });

  // With it the run ends after 5 s: see ranks.test.ts.
  test('without flushDeadline: a run waits for a flush that does not return', async () => {
    const { run } = await launch(
      { what: 'flush', comm: 'direct', flush: 'force' },
      {
        program: 'movement.mjs',
        aware: 'truly',
        seconds: 12,
        env: { HEADRACE_STUB_FLUSH_SECONDS: '1000', ...leaving('flushDeadline') },
      },
    );
    expect(run.code).not.toBe(0);
    expect(run.reports).toEqual([]);
  });
});
