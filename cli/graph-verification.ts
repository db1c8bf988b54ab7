// Prints what is wrong with an instance of a parameterised graph.
import { type CliContext, ExitCode } from './context.js';
import type { OpenedGraph } from './graph-file.js';
import type { VerifyRequest } from './graph-request.js';

/** Returns the exit code: 1 if there are problems. */
export function verifyGraph(
  { graph, args, guarded }: OpenedGraph,
  { json }: VerifyRequest,
  { stdout }: CliContext,
): number {
  const { tasks, problems } = guarded(() => graph.verify(args));
  const ok = problems.length === 0;
  if (json) stdout.write(`${JSON.stringify({ ok, graph: graph.name, tasks, problems })}\n`);
  else {
    const count = ok
      ? 'no problems'
      : `${problems.length} problem${problems.length > 1 ? 's' : ''}`;
    const width = Math.max(...problems.map(({ kind }) => kind.length));
    const lines = problems.map(({ kind, text }) => `  ${kind.padEnd(width)}  ${text}\n`);
    stdout.write(`${graph.name}: ${tasks} tasks, ${count}\n${lines.join('')}`);
  }
  return ok ? ExitCode.ok : ExitCode.failure;
}
