// The parameterised graph that a module of the user exports, and the arguments of a small instance of it.
// Invariant: classes are compared with those of the copy of Headrace that the module itself imports.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { shellWord } from '../devices/installation.js';
import type { ParameterisedGraph } from '../index.js';
import { HeadraceError } from '../scheduler/errors.js';
import { describeThrown, isError } from '../trace/thrown.js';
import type { GraphRequest } from './graph-request.js';

/** A graph of a file, with arguments. */
export interface OpenedGraph {
  readonly graph: ParameterisedGraph<unknown>;
  readonly args: unknown;
  /** Calls functions of the user; what they throw becomes an error that names the graph and the file. */
  readonly guarded: <T>(call: () => T) => T;
}

type Headrace = typeof import('../index.js');
type Exports = readonly (readonly [name: string, value: unknown])[];

/** @throws HeadraceError `ERR_GRAPH_FILE`, and the errors of the file */
export async function openGraph(request: GraphRequest): Promise<OpenedGraph> {
  const { name: file, program } = request;
  const headrace: Headrace = await import(entryOf(request.file));
  const loaded = await guard(
    `${file} cannot be loaded`,
    () => importOf(request.file),
    `${program} run ${shellWord(file)} says where`,
  );
  const exports: Exports = Object.entries(loaded);
  const graph = chosenGraph(request, exports, headrace);
  const args = await argumentsOf(request, exports, graph, headrace);
  return {
    graph,
    args,
    guarded: (call) => guardNow(`graph '${graph.name}' of ${file} throws`, call),
  };
}

const importOf = async (file: string): Promise<object> => import(pathToFileURL(file).href);

/** The address of the module 'headrace' as the file sees it; for a file that sees none, of this copy. */
function entryOf(file: string): string {
  try {
    return pathToFileURL(createRequire(file).resolve('headrace')).href;
  } catch {
    return new URL('../index.js', import.meta.url).href;
  }
}

function chosenGraph(
  { name: file, graph: wanted }: GraphRequest,
  exports: Exports,
  { ParameterisedGraph: Class }: Headrace,
): ParameterisedGraph<unknown> {
  const found = new Map<ParameterisedGraph<unknown>, string>();
  for (const [name, value] of exports)
    if (value instanceof Class && !found.has(value)) found.set(value, name);
  const names = [...found.values()].join(', ');
  if (found.size === 0)
    throw new HeadraceError('ERR_GRAPH_FILE', `${file} exports no parameterised graph`, {
      remedy: "export const name = parameterised('name', ...)",
    });
  if (wanted === undefined) {
    const [[only]] = found;
    if (found.size === 1) return only;
    throw new HeadraceError('ERR_GRAPH_FILE', `${file} exports several graphs: ${names}`, {
      remedy: 'choose one with --graph NAME',
    });
  }
  const exported = exports.find(([name, value]) => name === wanted && value instanceof Class);
  if (exported !== undefined) return exported[1] as ParameterisedGraph<unknown>;
  const named = [...found.keys()].filter(({ name }) => name === wanted);
  if (named.length === 1) return named[0];
  throw new HeadraceError('ERR_GRAPH_FILE', `${file} exports no graph '${wanted}'`, {
    remedy: `it exports ${names}`,
  });
}

/** The value of the export, or what it returns for a runtime. The runtime ends with the process: it runs nothing. */
async function argumentsOf(
  { name: file, arguments: wanted }: GraphRequest,
  exports: Exports,
  graph: ParameterisedGraph<unknown>,
  { Runtime }: Headrace,
): Promise<unknown> {
  const name = wanted ?? 'example';
  const exported = exports.find(([each]) => each === name);
  if (exported === undefined) {
    if (wanted === undefined && !graph.takesArguments) return undefined;
    throw new HeadraceError(
      'ERR_GRAPH_FILE',
      wanted === undefined
        ? `graph '${graph.name}' takes arguments, and ${file} exports no function 'example' that makes them`
        : `${file} exports no '${name}'`,
      { remedy: `export const ${name} = (runtime) => ({ ... })` },
    );
  }
  const [, value] = exported;
  if (typeof value !== 'function') return value;
  const runtime = await Runtime.create({ workers: 1 });
  return guard(`'${name}' of ${file} throws`, async () => value(runtime));
}

async function guard<T>(what: string, call: () => Promise<T>, remedy?: string): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw thrownBy(what, error, remedy);
  }
}

function guardNow<T>(what: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw thrownBy(what, error);
  }
}

/** The error as it is if it is one of Headrace. An error of the user's code has its stack, which leads into the file. */
function thrownBy(what: string, error: unknown, remedy?: string): HeadraceError {
  if (!(error instanceof HeadraceError))
    return new HeadraceError('ERR_GRAPH_FILE', what, {
      remedy,
      report: stackOf(error),
      cause: error,
    });
  const { code, message, details } = error;
  const { cause } = details;
  if (cause === undefined || cause instanceof HeadraceError) return error;
  return new HeadraceError(code, message, {
    ...details,
    remedy: undefined,
    report: stackOf(cause),
  });
}

function stackOf(error: unknown): string {
  return isError(error) && error.stack !== undefined ? error.stack : describeThrown(error);
}
