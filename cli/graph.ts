// `headrace graph verify` and `headrace graph draw`: read the command line and start the process that loads the user's file
// (graph-program.ts), under node as `headrace run` would start it.
import { fileURLToPath } from 'node:url';
import { awaited } from './awaited.js';
import { type CliContext, type CommandRunner, ExitCode } from './context.js';
import {
  type DrawingFormat,
  drawingFormats,
  type GraphRequest,
  type VerifyRequest,
} from './graph-request.js';
import {
  choice,
  describeOptions,
  flag,
  leadingOptions,
  nearest,
  parseOptions,
  text,
  UsageError,
} from './options.js';
import { loaderOptions } from './program-loader.js';
import { programFile, startProgram } from './run-program.js';

const common = {
  graph: text({
    metavar: 'NAME',
    help: 'the graph, by the name of its export',
    shown: 'the only one',
  }),
  arguments: text({
    metavar: 'NAME',
    help: 'the export that makes its arguments',
    shown: 'example',
  }),
  help: flag({ help: 'this text' }),
};
const verifyOptions = { json: flag({ help: 'print the problems as one JSON object' }), ...common };
const drawOptions = {
  tasks: flag({ help: 'draw the tasks of the instance instead of its classes' }),
  format: choice(drawingFormats, {
    fallback: undefined,
    shown: 'by the ending of OUT, else svg',
    help: 'svg needs Graphviz, dot and graphlib nothing',
  }),
  output: text({
    short: 'o',
    metavar: 'OUT',
    help: 'file to write, - for standard output',
    shown: "FILE with the format's ending",
  }),
  ...common,
};

const fileHelp = `FILE is a module in TypeScript or JavaScript that exports parameterised graphs, and a function 'example' that gets a
runtime and returns the arguments of a small instance. Nothing is run.
`;
const verifyUsage = `usage: headrace graph verify FILE [options]

Unrolls the instance and prints what is wrong with it. Exit code 1 if there is anything.
${fileHelp}
${describeOptions(verifyOptions)}`;
const drawUsage = `usage: headrace graph draw FILE [options]

Draws the classes of the graph and the flows between them that the instance has.
${fileHelp}
${describeOptions(drawOptions)}`;
const graphUsage = `usage: headrace graph <subcommand> FILE [options]

  verify  print what is wrong with a small instance of a parameterised graph
  draw    draw its classes and flows, or its tasks

headrace graph <subcommand> --help lists the options.
`;

const subcommands: Readonly<Record<string, CommandRunner>> = { verify, draw };

/** Runs `headrace graph` with the words after it. */
export const runGraphCommand: CommandRunner = async (argv, context) => {
  const [name, ...rest] = argv;
  if (name === '--help' || name === '-h') {
    context.stdout.write(graphUsage);
    return ExitCode.ok;
  }
  if (name === undefined || name.startsWith('-'))
    throw new UsageError('a graph subcommand is needed', graphUsage);
  if (!Object.hasOwn(subcommands, name)) {
    const near = nearest(name, Object.keys(subcommands));
    const hint = near === undefined ? '' : `, did you mean ${near}?`;
    throw new UsageError(`unknown graph subcommand ${JSON.stringify(name)}${hint}`, graphUsage);
  }
  return subcommands[name](rest, context);
};

async function verify(argv: string[], context: CliContext): Promise<number> {
  const [name, words] = fileAmong(argv, verifyOptions);
  const values = parseOptions(words, verifyOptions, verifyUsage);
  if (values.help) return help(verifyUsage, context);
  const of = requestOf(name, values, verifyUsage, context);
  return ask({ command: 'verify', json: values.json, ...of }, context);
}

async function draw(argv: string[], context: CliContext): Promise<number> {
  const [name, words] = fileAmong(argv, drawOptions);
  const values = parseOptions(words, drawOptions, drawUsage);
  if (values.help) return help(drawUsage, context);
  const { tasks, output } = values;
  const of = requestOf(name, values, drawUsage, context);
  const format = values.format ?? formatOf(output);
  const target = output ?? of.name.replace(/\.[^./]*$/, '') + endings[format];
  return ask({ command: 'draw', tasks, format, target, ...of }, context);
}

function help(usage: string, context: CliContext): number {
  context.stdout.write(usage);
  return ExitCode.ok;
}

/** The first word that is neither an option nor the value of one, and the others. */
function fileAmong(
  argv: readonly string[],
  options: Parameters<typeof leadingOptions>[1],
): readonly [string | undefined, readonly string[]] {
  const at = leadingOptions(argv, options);
  return [argv[at], [...argv.slice(0, at), ...argv.slice(at + 1)]];
}

/** What both requests have. @throws UsageError */
function requestOf(
  name: string | undefined,
  {
    graph,
    arguments: args,
  }: { readonly graph: string | undefined; readonly arguments: string | undefined },
  usage: string,
  { program }: CliContext,
): Omit<VerifyRequest, 'command' | 'json'> {
  if (name === undefined) throw new UsageError('a file is needed', usage);
  return { program, name, file: programFile(name, usage), graph, arguments: args };
}

const endings: Readonly<Record<DrawingFormat, string>> = {
  svg: '.svg',
  dot: '.dot',
  graphlib: '.json',
};

function formatOf(output: string | undefined): DrawingFormat {
  return drawingFormats.find((format) => output?.endsWith(endings[format])) ?? 'svg';
}

/** Starts the process that loads the file; resolves to its exit code. */
function ask(request: GraphRequest, context: CliContext): Promise<number> {
  const program = fileURLToPath(new URL('./graph-program.js', import.meta.url));
  const words = [...loaderOptions(request.file), program, JSON.stringify(request)];
  const env = { ...context.env };
  return awaited('the graph', startProgram([process.execPath, ...words], env, context));
}
