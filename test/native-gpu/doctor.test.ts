// `headrace doctor` where there are CUDA GPUs: every one by its UUID, every way between memories measured, libraries found.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { DoctorFacts } from '../../cli/doctor.js';
import { cudaGpus } from '../support/cuda.js';
import { cuda, needing } from '../support/needs.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const doctor = (...options: string[]): string =>
  execFileSync(process.execPath, [main, 'doctor', ...options], {
    encoding: 'utf8',
    timeout: 60_000,
    // Ranks are not the question here.
    env: { ...process.env, PATH: '/nowhere' },
  });

describe('headrace doctor on CUDA', { timeout: 90_000, ...needing(cuda) }, () => {
  it('tells GPUs by UUID, with memory, and the bandwidth of every pair', () => {
    const { devices, cuda } = JSON.parse(doctor('--json')) as DoctorFacts;
    const gpus = devices.filter(({ kind }) => kind === 'cuda');
    expect(gpus.length).toBeGreaterThanOrEqual(cudaGpus);
    expect(new Set(gpus.map(({ uuid }) => uuid)).size).toBe(gpus.length);
    for (const { name, uuid, memoryBytes } of gpus) {
      expect(name).toMatch(/\w/);
      expect(uuid).toMatch(/^GPU-[0-9a-f]{8}-[0-9a-f]{4}-/);
      expect(memoryBytes).toBeGreaterThan(2 ** 29);
    }
    expect(cuda?.bandwidth?.h2d).toHaveLength(gpus.length);
    for (const [to, row] of (cuda?.bandwidth?.peers ?? []).entries()) {
      for (const [from, rate] of row.entries()) {
        if (to === from) expect(rate).toBe(0);
        else expect(rate).toBeGreaterThan(0);
      }
    }
    expect(cuda?.nvrtc.found && cuda.cublas.found && cuda.cusolver.found).toBe(true);
  });

  it('prints the same as text', () => {
    const text = doctor();
    expect(text).toMatch(
      /CUDA GPU 0 +ok +.+, GPU-[0-9a-f-]+, [\d.]+ GiB, \d+\.\d; network writes ordered/,
    );
    expect(text).toMatch(/copies to GPU 0 +ok +host [\d.]+ GB\/s \(back [\d.]+\)/);
    expect(text).toMatch(/NVRTC +ok /);
  });
});
