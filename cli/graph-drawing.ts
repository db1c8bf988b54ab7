// Draws the classes of a parameterised graph, or the tasks of an instance: as DOT, as SVG by Graphviz, or as graphlib's JSON.
import { json } from '@dagrejs/graphlib';
import { HeadraceError } from '../scheduler/errors.js';
import { type DotEdge, type DotNode, writeDot } from '../trace/export/dot.js';
import { writeTo, writeToMemory } from '../trace/export/index.js';
import { TraceError } from '../trace/index.js';
import { type CliContext, ExitCode } from './context.js';
import type { OpenedGraph } from './graph-file.js';
import type { DrawRequest } from './graph-request.js';
import { drawSvg } from './graphviz.js';

type ClassGraph = ReturnType<OpenedGraph['graph']['classGraph']>;
type TaskGraph = ReturnType<OpenedGraph['graph']['taskGraph']>;

const TASKS = ['task', 'tasks'] as const;
const CLASSES = ['class', 'classes'] as const;
const FLOWS = ['flow', 'flows'] as const;
const count = (n: number, one: string, more: string): string => `${n} ${n === 1 ? one : more}`;

/** Writes the drawing. */
export async function drawGraph(
  { graph, args, guarded }: OpenedGraph,
  { tasks, format, target }: DrawRequest,
  context: CliContext,
): Promise<number> {
  const drawn: ClassGraph | TaskGraph = guarded(() =>
    tasks ? graph.taskGraph(args) : graph.classGraph(args),
  );
  const text =
    format === 'graphlib'
      ? `${JSON.stringify(json.write(drawn))}\n`
      : format === 'dot'
        ? dotOf(drawn)
        : await drawSvg(dotOf(drawn), context.env);
  if (target === '-') context.stdout.write(text);
  else {
    write(target, text);
    const found = drawn.nodeCount();
    const nodes = tasks ? count(found, ...TASKS) : count(found, ...CLASSES);
    context.stderr.write(
      `${target}: ${graph.name}, ${nodes}, ${count(drawn.edgeCount(), ...FLOWS)}\n`,
    );
  }
  const red = drawn.edges().filter((edge) => drawn.edge(edge).unmatched > 0).length;
  if (red > 0)
    context.stderr.write(
      `headrace: note: ${count(red, ...FLOWS)} in red: one of the two ends is missing; ${context.program} graph verify says which\n`,
    );
  return ExitCode.ok;
}

/** @throws HeadraceError `ERR_TRACE_WRITE` */
function write(target: string, text: string): void {
  try {
    writeTo(target, (output) => output.text(text));
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    throw new HeadraceError(error.code, error.message, { cause: error.cause });
  }
}

function dotOf(graph: ClassGraph | TaskGraph): string {
  const classes = new Map<string, number>();
  const nodes = graph.nodes().map((id): DotNode => {
    const node = graph.node(id);
    const colour = classes.get(node.class) ?? classes.size;
    classes.set(node.class, colour);
    const runs = node.runs === node.class ? [] : [`runs ${node.runs}`];
    return {
      id,
      lines: 'tasks' in node ? [id, ...runs, count(node.tasks, ...TASKS)] : [id],
      colour,
    };
  });
  const edges = graph.edges().map((edge): DotEdge => {
    const { output, input, isControl, unmatched } = graph.edge(edge);
    return {
      ...{ from: edge.v, to: edge.w, isDashed: isControl, isEmphasised: unmatched > 0 },
      label: output === input ? output : `${output} -> ${input}`,
    };
  });
  return new TextDecoder().decode(writeToMemory((output) => writeDot(output, nodes, edges)));
}
