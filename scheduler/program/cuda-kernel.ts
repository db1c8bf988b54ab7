// CUDA kernels of task classes: translates a user's declaration (names of flows and parameters) for native code
// (positions and types). This file finds every error of a declaration before anything is compiled. Only the source has
// the number and sizes of the kernel's parameters; they are checked when it is loaded.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';
import type { Flows, Parameters, ParameterType } from './flows.js';

/** C type of a scalar argument: double, float, int, long long. */
export type CudaScalar = 'f64' | 'f32' | 'i32' | 'i64';

/**
 * One argument of a CUDA kernel: a flow (a pointer to its data), or a parameter with the type that the kernel declares.
 */
export type CudaArgument<F extends Flows = Flows, P extends Parameters = Parameters> =
  | (keyof F & string)
  | (keyof P & string)
  | { readonly parameter: keyof P & string; readonly as: CudaScalar };

/** A launch extent: a number, or a parameter divided by `per` (default 1) and rounded up. */
export type CudaExtent<P extends Parameters = Parameters> =
  | number
  | { readonly parameter: keyof P & string; readonly per?: number };

/** A CUDA kernel as the GPU body of a task class. Give `source` or `file`. */
export interface CudaKernel<F extends Flows = Flows, P extends Parameters = Parameters> {
  /** CUDA C source. It is compiled at start for the GPUs of this machine and cached on disk. */
  readonly source?: string;
  /** A file: CUDA C (`.cu`), PTX (`.ptx`) or machine code (`.cubin`). */
  readonly file?: string;
  /** Name of the `__global__` function, or an expression such as `scale<double>`. */
  readonly function: string;
  /**
   * The function's parameters in order, by the names of flows and parameters. A parameter alone stands for its own type
   * (`f64` double, `i32` and `bool` int); every flow must appear.
   */
  readonly arguments: readonly CudaArgument<F, P>[];
  /** Blocks in x, y, z; missing ones are 1. A grid with a zero launches nothing. */
  readonly grid: CudaExtent<P> | readonly CudaExtent<P>[];
  /** Threads of a block in x, y, z; missing ones are 1. */
  readonly block: CudaExtent<P> | readonly CudaExtent<P>[];
  /** Bytes of dynamic shared memory (default 0). */
  readonly sharedBytes?: CudaExtent<P>;
  /** Options of the compiler, such as `--use_fast_math` or `-I<folder>`. */
  readonly options?: readonly string[];
}

/** An argument by position: index of the flow (pointer) or of the parameter. */
interface CudaArgumentPosition {
  readonly type: 'pointer' | CudaScalar;
  readonly index: number;
}

/** An extent with its parameter by position. */
type CudaExtentPosition = number | { readonly param: number; readonly divisor: number };

/** A kernel source for the native core (`NativeKernelSource`). */
export interface CudaKernelSource {
  readonly name: string;
  readonly source?: string;
  readonly image?: Uint8Array;
  readonly options: readonly string[];
  readonly kernels: readonly {
    readonly name: string;
    readonly symbol: string;
    readonly signature: readonly CudaArgumentPosition[];
    readonly grid: readonly CudaExtentPosition[];
    readonly block: readonly CudaExtentPosition[];
    readonly sharedBytes: CudaExtentPosition;
  }[];
}

const TYPES: Readonly<Record<ParameterType, CudaScalar>> = { f64: 'f64', i32: 'i32', bool: 'i32' };
const SCALARS: readonly string[] = ['f64', 'f32', 'i32', 'i64'];
const PARTS: Readonly<Record<keyof CudaKernel, true>> = {
  source: true,
  file: true,
  function: true,
  arguments: true,
  grid: true,
  block: true,
  sharedBytes: true,
  options: true,
};
/** Limit of native code for arguments. */
const MAX_ARGUMENTS = 32;

/** The properties of the class that declares the kernel. */
interface CudaKernelOwner {
  readonly name: string;
  readonly flows: Flows;
  readonly params?: Parameters;
}

/**
 * Checks a declaration against its class and translates names to positions.
 *
 * @throws HeadraceError `ERR_TASK_CLASS` with the class and the error.
 */
export function cudaKernelSource(owner: CudaKernelOwner, kernel: CudaKernel): CudaKernelSource {
  const fail = (text: string, remedy?: string): never => {
    throw new HeadraceError(
      'ERR_TASK_CLASS',
      `CUDA kernel of task class '${owner.name}': ${text}`,
      remedy === undefined ? undefined : { remedy },
    );
  };
  const unknown = Object.keys(kernel).find((part) => !Object.hasOwn(PARTS, part));
  if (unknown !== undefined)
    fail(`it has '${unknown}'`, `its parts are ${Object.keys(PARTS).join(', ')}`);
  if (typeof kernel.function !== 'string' || kernel.function === '') {
    fail('it names no function', 'set `function` to the name of a __global__ function');
  }
  const flowNames = Object.keys(owner.flows);
  const paramNames = Object.keys(owner.params ?? {});
  const parameter = (name: string): number => {
    const index = paramNames.indexOf(name);
    if (index < 0)
      fail(`there is no parameter '${name}'`, `parameters are: ${paramNames.join(', ') || 'none'}`);
    return index;
  };
  const position = (argument: CudaArgument): CudaArgumentPosition => {
    if (typeof argument === 'string') {
      const flow = flowNames.indexOf(argument);
      if (flow >= 0) return { type: 'pointer', index: flow };
      const index = parameter(argument);
      return { type: TYPES[(owner.params as Parameters)[argument] as ParameterType], index };
    }
    if (!SCALARS.includes(argument.as))
      fail(`'${String(argument.as)}' is not an argument type`, `types are: ${SCALARS.join(', ')}`);
    return { type: argument.as, index: parameter(argument.parameter) };
  };
  const signature = kernel.arguments.map(position);
  if (signature.length > MAX_ARGUMENTS) fail(`it has more than ${MAX_ARGUMENTS} arguments`);
  const unused = flowNames.filter(
    (_, f) => !signature.some((s) => s.type === 'pointer' && s.index === f),
  );
  if (unused.length > 0)
    fail(
      `its arguments leave out flow '${unused[0]}'`,
      'pass every flow, or remove it from the class',
    );

  const extent = (value: CudaExtent, what: string, least: number): CudaExtentPosition => {
    if (typeof value === 'number') {
      if (!Number.isInteger(value) || value < least)
        fail(`${what} is ${value}, not a whole number of at least ${least}`);
      return value;
    }
    const per = value.per ?? 1;
    if (!(per > 0) || !Number.isFinite(per)) fail(`${what} divides by ${per}`);
    return { param: parameter(value.parameter), divisor: per };
  };
  const extents = (
    value: CudaExtent | readonly CudaExtent[],
    what: string,
  ): CudaExtentPosition[] => {
    const list: readonly CudaExtent[] = Array.isArray(value) ? value : [value as CudaExtent];
    if (list.length < 1 || list.length > 3)
      fail(`its ${what} has ${list.length} dimensions`, 'give one to three');
    return list.map((each, d) => extent(each, `${what}[${d}]`, 1));
  };
  const code = text(owner, kernel, fail);
  const launch = [
    {
      symbol: kernel.function,
      signature,
      grid: extents(kernel.grid, 'grid'),
      block: extents(kernel.block, 'block'),
      sharedBytes: extent(kernel.sharedBytes ?? 0, 'sharedBytes', 0),
    },
  ];
  const whole = { ...code, options: [...(kernel.options ?? [])] };
  // Native code keeps kernels by name as long as the process lives, so other code needs another name.
  const hash = createHash('sha256')
    .update(JSON.stringify([whole, launch]))
    .digest('hex');
  const name = `${owner.name} (cuda ${hash.slice(0, 8)})`;
  return { ...whole, kernels: launch.map((each) => ({ name, ...each })) };
}

/** The code: source text or an image, and its name in messages. */
function text(
  owner: CudaKernelOwner,
  kernel: CudaKernel,
  fail: (text: string, remedy?: string) => never,
): { name: string; source?: string; image?: Uint8Array } {
  if ((kernel.source === undefined) === (kernel.file === undefined)) {
    return fail('it has no code, or two', 'give either `source` or `file`');
  }
  if (kernel.file === undefined)
    return { name: `${owner.name}.cu`, source: kernel.source as string };
  const name = basename(kernel.file);
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(kernel.file);
  } catch (error) {
    return fail(`its file cannot be read: ${describeThrown(error)}`);
  }
  if (/\.(ptx|cubin|fatbin)$/.test(name)) return { name, image: bytes };
  return { name, source: Buffer.from(bytes).toString('utf8') };
}
