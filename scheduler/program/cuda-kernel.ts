// CUDA kernels of task classes: translates a user's declaration (names of flows and parameters) for native code
// (positions and types). This file finds every error of a declaration before anything is compiled. Only the source has
// the number and sizes of the kernel's parameters; they are checked when it is loaded.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';
import { entriesOf, isRecord, reading, shown } from '../checks.js';
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
export function cudaKernelSource(owner: CudaKernelOwner, declared: CudaKernel): CudaKernelSource {
  const of = new Declaration(owner);
  const kernel = of.parts(declared, 'it') as unknown as CudaKernel;
  const unknown = Object.keys(kernel).find((part) => !Object.hasOwn(PARTS, part));
  if (unknown !== undefined)
    of.fail(`it has ${shown(unknown)}`, `its parts are ${Object.keys(PARTS).join(', ')}`);
  if (typeof kernel.function !== 'string' || kernel.function === '') {
    of.fail(
      `it names no function: \`function\` is ${shown(kernel.function)}`,
      'set `function` to the name of a __global__ function',
    );
  }
  const signature = of.signature(kernel.arguments);
  const code = text(owner, kernel, (problem, remedy) => of.fail(problem, remedy));
  const launch = [
    {
      symbol: kernel.function,
      signature,
      grid: of.extents(kernel.grid, 'grid'),
      block: of.extents(kernel.block, 'block'),
      sharedBytes: of.extent(kernel.sharedBytes ?? 0, 'sharedBytes', 0),
    },
  ];
  const whole = { ...code, options: of.options(kernel.options ?? []) };
  // Native code keeps kernels by name as long as the process lives, so other code needs another name.
  const hash = createHash('sha256')
    .update(JSON.stringify([whole, launch]))
    .digest('hex');
  const name = `${owner.name} (cuda ${hash.slice(0, 8)})`;
  return { ...whole, kernels: launch.map((each) => ({ name, ...each })) };
}

/** Reads the values of a declaration, which may be anything. */
class Declaration {
  private readonly name: string;
  private readonly params: Parameters;
  private readonly flowNames: readonly string[];
  private readonly paramNames: readonly string[];

  constructor({ name, flows, params = {} }: CudaKernelOwner) {
    this.name = `CUDA kernel of task class '${name}'`;
    this.params = params;
    this.flowNames = Object.keys(flows);
    this.paramNames = Object.keys(params);
  }

  fail(problem: string, remedy?: string): never {
    throw new HeadraceError('ERR_TASK_CLASS', `${this.name}: ${problem}`, { remedy });
  }

  parts(value: unknown, what: string): Readonly<Record<string, unknown>> {
    if (!isRecord(value)) this.fail(`${what} is ${shown(value)}`);
    const parts = entriesOf(value as object, 'ERR_TASK_CLASS', `${this.name}: ${what}`);
    return Object.fromEntries(parts);
  }

  private list(what: string, value: unknown): unknown[] {
    const list = reading('ERR_TASK_CLASS', `${this.name}: its ${what}`, () =>
      Array.isArray(value) ? [...(value as unknown[])] : undefined,
    );
    return list ?? this.fail(`its ${what} must be an array, not ${shown(value)}`);
  }

  options(value: unknown): string[] {
    const options = this.list('options', value);
    const wrong = options.findIndex((option) => typeof option !== 'string');
    if (wrong >= 0) this.fail(`options[${wrong}] is ${shown(options[wrong])}, not a text`);
    return options as string[];
  }

  signature(value: unknown): CudaArgumentPosition[] {
    const all = this.list('arguments', value).map((argument, a) => this.argument(argument, a));
    if (all.length > MAX_ARGUMENTS) this.fail(`it has more than ${MAX_ARGUMENTS} arguments`);
    const unused = this.flowNames.find(
      (_, f) => !all.some((s) => s.type === 'pointer' && s.index === f),
    );
    if (unused !== undefined)
      this.fail(
        `its arguments leave out flow '${unused}'`,
        'pass every flow, or remove it from the class',
      );
    return all;
  }

  private argument(argument: unknown, a: number): CudaArgumentPosition {
    if (typeof argument === 'string') {
      const flow = this.flowNames.indexOf(argument);
      if (flow >= 0) return { type: 'pointer', index: flow };
      const index = this.parameter(argument);
      return { type: TYPES[this.params[argument]], index };
    }
    const { as, parameter } = this.parts(argument, `arguments[${a}]`);
    if (!SCALARS.includes(as as string))
      this.fail(
        `arguments[${a}] has ${shown(as)}, which is not an argument type`,
        `types are: ${SCALARS.join(', ')}`,
      );
    return { type: as as CudaScalar, index: this.parameter(parameter) };
  }

  private parameter(name: unknown): number {
    const { paramNames } = this;
    const index = paramNames.indexOf(name as string);
    if (index < 0)
      this.fail(
        `there is no parameter ${shown(name)}`,
        `parameters are: ${paramNames.join(', ') || 'none'}`,
      );
    return index;
  }

  extent(value: unknown, what: string, least: number): CudaExtentPosition {
    if (typeof value === 'number') {
      if (!Number.isInteger(value) || value < least)
        this.fail(`${what} is ${shown(value)}, not a whole number of at least ${least}`);
      return value;
    }
    const { per = 1, parameter } = this.parts(value, what);
    const isDivisor = typeof per === 'number' && per > 0 && Number.isFinite(per);
    if (!isDivisor) this.fail(`${what} divides by ${shown(per)}`);
    return { param: this.parameter(parameter), divisor: per as number };
  }

  extents(value: unknown, what: string): CudaExtentPosition[] {
    const isOne = isRecord(value) || value === null || typeof value !== 'object';
    const list = isOne ? [value] : this.list(what, value);
    if (list.length < 1 || list.length > 3)
      this.fail(`its ${what} has ${list.length} dimensions`, 'give one to three');
    return list.map((each, d) => this.extent(each, `${what}[${d}]`, 1));
  }
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
  if (kernel.source !== undefined && typeof kernel.source !== 'string')
    return fail(`its source is ${shown(kernel.source)}, not a text`);
  if (kernel.file !== undefined && typeof kernel.file !== 'string')
    return fail(`its file is ${shown(kernel.file)}, not the name of a file`);
  if (kernel.file === undefined)
    return { name: `${owner.name}.cu`, source: kernel.source as string };
  const name = basename(kernel.file);
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(kernel.file);
  } catch (error) {
    return fail(`its file ${shown(kernel.file)} cannot be read: ${describeThrown(error)}`);
  }
  if (/\.(ptx|cubin|fatbin)$/.test(name)) return { name, image: bytes };
  return { name, source: Buffer.from(bytes).toString('utf8') };
}
