// The public surface.
export type { TaskHandle } from '../devices/handles.js';
export {
  type BlockCyclic,
  type GpuGrid,
  ownerOf,
  squareGrid,
} from '../devices/memory/distribution.js';
export type { MemoryUse } from '../devices/memory/space.js';
export type { BytesByKind } from '../devices/memory/transfers.js';
export { type ErrorDetails, HeadraceError, RunAbortedError } from './errors.js';
export type {
  ClassDeclaration,
  ClassDefinition,
  ClassEnds,
  ControlEdges,
  Declarations,
  FlowEdges,
  IndicesOf,
  InputDefinition,
  Repeats,
} from './parameterised/definition.js';
export {
  ControlEnd,
  type Controls,
  FlowEnd,
  type Source,
  type Targets,
  Temporary,
  type TemporaryOptions,
  temporary,
} from './parameterised/ends.js';
export type { ClassNode, FlowLabel, TaskNode } from './parameterised/graph-views.js';
export {
  ClassBuilder,
  ParameterisedGraph,
  parameterised,
} from './parameterised/parameterised-graph.js';
export { type OwnRange, Range, range } from './parameterised/range.js';
export type { GraphProblem } from './parameterised/unrolled.js';
export type { GraphCheck } from './parameterised/verify.js';
export type { GraphChoice } from './plans/driver-graph.js';
export type { LoadPlanOptions } from './plans/load-plan.js';
export type { PlanOptions } from './plans/make-plan.js';
export { Plan, type PlayOptions, type PlayReport, type SlotValue } from './plans/plan.js';
export { type PlanArguments, PlanGraph } from './plans/plan-graph.js';
export type { PlanReport } from './plans/planned-program.js';
export { type Slot, slot } from './plans/slot.js';
export type { WhileCondition } from './plans/while-condition.js';
export type { BodyContext, TaskGraph } from './program/body-types.js';
export type { CudaArgument, CudaExtent, CudaKernel, CudaScalar } from './program/cuda-kernel.js';
export { Datum } from './program/datum.js';
export type { DatumOptions } from './program/datum-options.js';
export {
  DeclaredGraph,
  type DeclaredTask,
  type GraphJson,
} from './program/declared-graph.js';
export type { AnyElementArray, ElementArray, ElementType } from './program/element-type.js';
export {
  Graph,
  type ParameterArgument,
  type TaskArguments,
  type TaskOptions,
} from './program/graph.js';
export type { BuiltInOperator, Operator, OperatorClass, OwnOperator } from './program/operator.js';
export {
  type ByteSize,
  parseBytes,
  type ResolvedOptions,
  type RuntimeOptions,
} from './program/options.js';
export type { BlockOptions } from './program/parts/mistakes.js';
export { type Program, Run, type RunEvents, type RunOptions } from './program/run.js';
export { Runtime } from './program/runtime.js';
export {
  type BodyArguments,
  commute,
  type FetchPolicy,
  type Flow,
  type FlowArray,
  type FlowMode,
  type Flows,
  type InputOptions,
  type ListFlow,
  list,
  type OneOrList,
  type Parameters,
  type ParameterType,
  type ReduceOptions,
  read,
  readWrite,
  reduce,
  type TaskClass,
  type TaskClassDefinition,
  task,
  write,
} from './program/task-class.js';
export { TiledMatrix, type TiledMatrixOptions, type TileFill } from './program/tiled-matrix.js';
export type { GivenUpTasks, RecognisedTasks, RecognitionReport } from './recognition/record.js';
export type { ExplainedDatum, TaskExplanation } from './reports/explain.js';
export type { DeviceMemory, HeldCopy } from './reports/memory.js';
export type { DeviceReport, NetworkReport, RunReport } from './reports/run-report.js';
export type { DeviceStatus, RunProgress, RunStatus } from './reports/status.js';
