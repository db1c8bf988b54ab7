// `headrace trace export`: writes a trace in another program's format.
import { criticalPath } from '../../trace/analysis/index.js';
import {
  csvTables,
  exportChrome,
  exportCsv,
  exportDot,
  exportGraphlib,
  exportPaje,
  exportPerfetto,
  type Output,
  writeTo,
} from '../../trace/export/index.js';
import type { Trace } from '../../trace/index.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../options.js';
import { oneOf, parseTraceArguments, type TraceArguments, wholeNumber } from './arguments.js';
import { loadForCommand } from './files.js';

const formats = ['perfetto', 'chrome', 'csv', 'paje', 'dot', 'graphlib'] as const;
type Format = (typeof formats)[number];

const endings: { readonly [format in Format]: string } = {
  perfetto: '.perfetto-trace',
  chrome: '.json',
  csv: '.csv',
  paje: '.paje',
  dot: '.dot',
  graphlib: '.graphlib.json',
};

const opens: { readonly [format in Format]: string } = {
  perfetto: 'open it at https://ui.perfetto.dev',
  chrome: 'open it at chrome://tracing or https://ui.perfetto.dev',
  csv: 'times are nanoseconds from the start',
  paje: 'open it with ViTE or pajeng',
  dot: 'draw it with: dot -Tsvg -O',
  graphlib: "read it with json.read of '@dagrejs/graphlib'",
};

const exportUsage: string = `usage: headrace trace export FILE... [--format FORMAT] [-o OUT] [options]

  --format FORMAT      ${formats.join(', ')} [perfetto]
  -o, --output OUT     file to write, - for standard output [FILE with the format's ending]
  --table TABLE        csv: ${csvTables.join(', ')} [tasks]
  --no-flows           perfetto, chrome, paje: without the arrows of dependencies and messages
  --stages             perfetto: with tracks of the six stages even for large traces
  --limit N            dot, graphlib: only the first N tasks
`;

/** Exports a trace. */
export function exportCommand(argv: readonly string[], context: CliContext): void {
  const given = parseTraceArguments(
    argv,
    {
      format: { type: 'string' },
      output: { type: 'string', short: 'o' },
      table: { type: 'string' },
      'no-flows': { type: 'boolean' },
      stages: { type: 'boolean' },
      limit: { type: 'string' },
    },
    [1, Number.POSITIVE_INFINITY],
    exportUsage,
  );
  if (given.flag('help')) {
    context.stdout.write(exportUsage);
    return;
  }
  const format = oneOf(given, 'format', formats, 'perfetto', exportUsage);
  const produce = producer(given, format);
  const target = given.text('output') ?? defaultTarget(given.files[0], format);
  if (given.files.includes(target)) {
    throw new UsageError(`--output ${target} would overwrite the trace`, exportUsage);
  }
  const trace = loadForCommand(given.files, context, true);
  const bytes = writeTo(target, (output) => produce(trace, output), context.leftover);
  if (target !== '-') {
    context.stderr.write(`${target}: ${bytes} bytes; ${opens[format]}\n`);
  }
}

function defaultTarget(file: string, format: Format): string {
  return file.replace(/(\.\d+)?\.hrtrace$/, '') + endings[format];
}

function producer(given: TraceArguments, format: Format): (trace: Trace, output: Output) => void {
  const table = oneOf(given, 'table', csvTables, 'tasks', exportUsage);
  const limit = wholeNumber(given, 'limit', [1, 1e9], exportUsage);
  const flows = !given.flag('no-flows');
  const graph = limit === undefined ? {} : { limit };
  const producers: { readonly [f in Format]: (trace: Trace, output: Output) => void } = {
    perfetto: (trace, output) =>
      exportPerfetto(trace, output, given.flag('stages') ? { flows, stages: true } : { flows }),
    chrome: (trace, output) => exportChrome(trace, output, { flows }),
    csv: (trace, output) => exportCsv(trace, output, table),
    paje: (trace, output) => exportPaje(trace, output, { flows }),
    dot: (trace, output) => {
      const steps = criticalPath(trace).steps.filter((step) => step.type === 'task');
      exportDot(trace, output, { ...graph, emphasised: new Set(steps.map((step) => step.row)) });
    },
    graphlib: (trace, output) => exportGraphlib(trace, output, graph),
  };
  return producers[format];
}
