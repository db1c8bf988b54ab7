// The public surface.
export { type BlockCyclic, ownerOf, squareGrid } from '../devices/distribution.js';
export type { MemoryUse } from '../devices/memory-space.js';
export type { BytesByKind } from '../devices/transfers.js';
export type { CudaArgument, CudaExtent, CudaKernel, CudaScalar } from './cuda-kernel.js';
export { Datum } from './datum.js';
export {
  DeclaredGraph,
  type DeclaredTask,
  type GraphJson,
} from './declared-graph.js';
export type { AnyElementArray, ElementArray, ElementType } from './element-type.js';
export { type ErrorDetails, HeadraceError, RunAbortedError } from './errors.js';
export type { ExplainedDatum, TaskExplanation } from './explain.js';
export { Graph, type TaskArguments, type TaskHandle, type TaskOptions } from './graph.js';
export type { DeviceMemory, HeldCopy } from './memory-report.js';
export { type ByteSize, parseBytes, type ResolvedOptions, type RuntimeOptions } from './options.js';
export type { DeviceReport, NetworkReport, RunReport } from './report.js';
export { type Program, Run, type RunEvents, type RunOptions } from './run.js';
export type { DeviceStatus, RunProgress, RunStatus } from './run-status.js';
export { type DatumOptions, Runtime } from './runtime.js';
export {
  type BodyArguments,
  type FetchPolicy,
  type Flow,
  type FlowMode,
  type Flows,
  type InputOptions,
  type Parameters,
  type ParameterType,
  read,
  readWrite,
  type TaskClass,
  type TaskClassDefinition,
  task,
  write,
} from './task-class.js';
export { TiledMatrix, type TiledMatrixOptions, type TileFill } from './tiled-matrix.js';
