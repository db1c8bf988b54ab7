// The header of the file of a plan: what the file is about, in the words of the program.
//
// Invariant: a header that `checkedHeader` has returned has the types that it declares. Whether the program, its data and its
// classes are those of the header is decided elsewhere (given-parts.ts).
import type { ParameterType, TaskClass } from '../program/task-class.js';
import type { GraphChoice } from './driver-graph.js';
import { badFile } from './file-format.js';
import type { PlanMachine } from './plan-machine.js';

/** Number of the whole datum in the file, its rows, and row, column, rows and columns of the part. */
export type SavedPlace = readonly [number, number, number, number, number, number];

export interface SavedDatum {
  readonly name: string;
  readonly element: string;
  readonly bytes: number;
  /** The datum is a part of another one, and is found by its place (saved-parts.ts). */
  readonly part?: SavedPlace | undefined;
}

/** A task class as far as a plan depends on it. */
export interface SavedClass {
  readonly name: string;
  /** Name, mode and element type of each. */
  readonly flows: readonly (readonly [string, string, string])[];
  /** Name and type of each. */
  readonly params: readonly (readonly [string, ParameterType])[];
  /** Names of the kernel for the host, of that for GPUs, and of the CUDA function; null where there is none. */
  readonly kernels: readonly (string | null)[];
  /** Name of the file of the module that exports it under its name, if script workers may run its body. */
  readonly module?: string | undefined;
  /** No program gives it. */
  readonly library?: boolean | undefined;
}

/** What the file has besides if the plan is that of one of several ranks. */
export interface SavedRanks {
  readonly rank: number;
  /** Number of ranks. */
  readonly size: number;
  readonly treeFrom: number;
  readonly inlineBytes: number;
  /** Of the whole plan (whole-plan.ts). */
  readonly digest: string;
  /** The last key of a message, on any rank. */
  readonly keys: number;
  /** The open parameters of all ranks: name, and whether a task takes it as an integer and as a truth value. */
  readonly slots: readonly (readonly [string, boolean, boolean])[];
}

export interface PlanHeader {
  /** Version of Headrace that has written the file. */
  readonly headrace: string;
  readonly name: string;
  readonly graph: GraphChoice;
  readonly evictions: number;
  readonly makespan: number;
  readonly criticalPath: number;
  readonly machine: PlanMachine;
  readonly data: readonly SavedDatum[];
  readonly classes: readonly SavedClass[];
  readonly slots: readonly string[];
  readonly ranks?: SavedRanks | undefined;
}

/** The program may lie in another folder when it loads the plan. */
function fileOfModule(url: string): string {
  return new URL(url).pathname.split('/').at(-1) as string;
}

export function savedClass(cls: TaskClass): SavedClass {
  const { definition, name, flowNames, paramNames } = cls;
  const { flows, params, kernel, gpuKernel, cuda, module } = definition;
  return {
    name,
    flows: flowNames.map((f) => [f, flows[f].mode, flows[f].element]),
    params: paramNames.map((p) => [p, (params as Record<string, ParameterType>)[p]]),
    kernels: [
      kernel ?? null,
      gpuKernel === false ? null : (gpuKernel ?? kernel ?? null),
      cuda?.function ?? null,
    ],
    ...(module !== undefined && { module: fileOfModule(module) }),
  };
}

type Check = (value: unknown) => boolean;

const isText: Check = (v) => typeof v === 'string';
const isSize: Check = (v) => Number.isSafeInteger(v) && (v as number) >= 0;
const isNumber: Check = (v) => typeof v === 'number' && Number.isFinite(v) && v >= 0;
const isTruth: Check = (v) => typeof v === 'boolean';
const isWhole: Check = (v) => Number.isSafeInteger(v);
const isAmong =
  (...values: readonly string[]): Check =>
  (v) =>
    isText(v) && values.includes(v as string);
const isTextOrNull: Check = (v) => v === null || isText(v);
const listOf =
  (check: Check): Check =>
  (v) =>
    Array.isArray(v) && v.every(check);
const tuple =
  (...checks: readonly Check[]): Check =>
  (v) =>
    Array.isArray(v) && v.length === checks.length && checks.every((check, i) => check(v[i]));
const orNone =
  (check: Check): Check =>
  (v) =>
    v === undefined || check(v);
const record =
  (checks: Readonly<Record<string, Check>>): Check =>
  (v) =>
    v !== null &&
    typeof v === 'object' &&
    Object.entries(checks).every(([key, check]) => check((v as Record<string, unknown>)[key]));

const PARTS: Readonly<Record<keyof PlanHeader, Check>> = {
  headrace: isText,
  name: isText,
  graph: isAmong('auto', 'always', 'never'),
  evictions: isSize,
  makespan: isNumber,
  criticalPath: isSize,
  machine: record({
    spaces: listOf(record({ kind: isText, bytes: isSize })),
    queues: listOf(tuple(isText, isWhole, isWhole)),
  }),
  data: listOf(
    record({
      ...{ name: isText, element: isText, bytes: isSize },
      part: orNone(tuple(isSize, isSize, isSize, isSize, isSize, isSize)),
    }),
  ),
  classes: listOf(
    record({
      name: isText,
      flows: listOf(tuple(isText, isText, isText)),
      params: listOf(tuple(isText, isText)),
      kernels: tuple(isTextOrNull, isTextOrNull, isTextOrNull),
      module: orNone(isText),
      library: orNone(isTruth),
    }),
  ),
  slots: listOf(isText),
  ranks: orNone(
    record({
      rank: isSize,
      size: isSize,
      treeFrom: isSize,
      inlineBytes: isSize,
      digest: isText,
      keys: isSize,
      slots: listOf(tuple(isText, isTruth, isTruth)),
    }),
  ),
};

/** @throws HeadraceError `ERR_PLAN_FILE` */
export function checkedHeader(given: Readonly<Record<string, unknown>>, file: string): PlanHeader {
  for (const [part, check] of Object.entries(PARTS))
    if (!check(given[part])) throw badFile(file, `its header has a wrong '${part}'`);
  const header = given as unknown as PlanHeader;
  const { ranks } = header;
  if (ranks !== undefined && ranks.rank >= ranks.size) throw badFile(file, 'it has no such rank');
  const names = new Set(header.data.map(({ name }) => name));
  if (names.size < header.data.length) throw badFile(file, 'two of its data have the same name');
  return header;
}
