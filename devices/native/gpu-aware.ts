// Whether the MPI library takes pointers to device memory. Its own claim is not enough: a library without support ends in
// a crash, and one with support may have no transport for it. So two separate processes try it. The answer stays on
// disk for as long as the library's file is the same.
// Invariant: an answer is kept under the file's path, its size and its time of change.
import {
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { askTwoRanks } from './two-ranks.js';

/** `why` gives the reason if it is not proven. */
export interface Proof {
  readonly isProven: boolean;
  readonly why: string;
}

/** The folder of HEADRACE_CACHE as for compiled kernels; a temporary one if nothing is to be kept. */
function folder(): string {
  const given = process.env['HEADRACE_CACHE'] ?? '';
  if (given === 'off') return path.join(tmpdir(), `headrace-${userInfo().uid}`);
  if (given !== '') return given;
  const cache = process.env['XDG_CACHE_HOME'] ?? '';
  return path.join(path.isAbsolute(cache) ? cache : path.join(homedir(), '.cache'), 'headrace');
}

function keyOf(library: string): string {
  const file = realpathSync(library);
  const { mtimeMs, size } = statSync(file);
  return `${file} ${size} ${mtimeMs}`;
}

const kept = (): string => path.join(folder(), 'gpu-aware.json');

function answers(): Record<string, Proof> {
  try {
    return JSON.parse(readFileSync(kept(), 'utf8')) as Record<string, Proof>;
  } catch {
    // none yet, or damaged: asked anew
    return {};
  }
}

/** The answer for the library in this file from an earlier proof, by this process or another. */
export function knownProof(library: string): Proof | undefined {
  return library === '' ? undefined : answers()[keyOf(library)];
}

/** Proves it, unless the answer is known. */
export async function prove(library: string): Promise<Proof> {
  const known = knownProof(library);
  if (known !== undefined) return known;
  const program = fileURLToPath(new URL('./gpu-aware-program.js', import.meta.url));
  let proof: Proof;
  try {
    await askTwoRanks(program);
    proof = { isProven: true, why: '' };
  } catch (error) {
    proof = {
      isProven: false,
      why: `two processes that tried it failed: ${(error as Error).message}`,
    };
  }
  if (library !== '') keep(keyOf(library), proof);
  return proof;
}

function keep(key: string, proof: Proof): void {
  mkdirSync(folder(), { recursive: true });
  const next = `${kept()}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify({ ...answers(), [key]: proof })}\n`);
  renameSync(next, kept());
}
