// The doctor's questions to programs and to the native addon. A child process asks the addon, so that a broken driver cannot
// end the command.
import { execFile } from 'node:child_process';
import type { CudaFacts } from './doctor-cuda.js';

/** The addon's report about itself (native/contract.ts, `NativeProbe`). */
export interface Probe {
  readonly blas: { readonly found: boolean; readonly library: string; readonly reason: string };
  readonly drivers: readonly {
    readonly name: string;
    readonly found: boolean;
    readonly devices: number;
    readonly reason: string;
  }[];
  /** With the bandwidth if it was measured. */
  readonly cuda: CudaFacts | { readonly devices: readonly [] };
}

/** Why the addon does not load, and the remedy. */
export interface NoProbe {
  readonly absent: string;
  readonly remedy: string | undefined;
}

/** Runs a program; resolves to its first output line, or undefined if it is missing or fails. */
export function firstLine(program: string, ...args: string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = execFile(program, args, { timeout: 20_000 }, (error, stdout) => {
      resolve(error === null ? (stdout.trim().split('\n')[0] ?? '') : undefined);
    });
    child.stdin?.end();
  });
}

/** Asks the addon in a child process; `measured`: it also measures the bandwidth of CUDA GPUs. */
export async function probeNative(measured: boolean): Promise<Probe | NoProbe> {
  const place = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href);
  const code = `
    try {
      const { loadNative } = await import(${place('../native/index.js')});
      const native = loadNative();
      const probe = native.probe();
      if (${measured} && probe.cuda.devices.length > 0) {
        const { measureCuda } = await import(${place('./doctor-cuda.js')});
        probe.cuda = measureCuda(native, probe.cuda);
      }
      console.log(JSON.stringify(probe));
    } catch ({ message, remedy }) {
      console.log(JSON.stringify({ absent: String(message).split('\\n')[0], remedy }));
    }`;
  const line = await firstLine(process.execPath, '--input-type=module', '-e', code);
  if (line === undefined) return { absent: 'loading it ended the process', remedy: undefined };
  return JSON.parse(line) as Probe | NoProbe;
}
