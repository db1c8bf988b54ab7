// Draws docs/architecture.svg: the folders and threads of the project, and the files on the ways of a task, of a remote
// datum, of an evicted tile, of a plan and of an error. The tables below hold the content. A test compares the picture with them
// and checks that every file exists.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { commandLine } from './lib/command-line.mjs';
import { root } from './lib/prepare.mjs';

const usage = `usage: node scripts/architecture-picture.mjs [options]

Draws docs/architecture.svg.

  --check   draw nothing; exit code 1 if the picture in the repository differs
  --help    this text
`;

/** Folders, in the order in which rooms import from each other. */
const columns = [
  { room: 'scheduler/', name: 'program', folder: 'scheduler/program' },
  { room: 'scheduler/', name: 'plans', folder: 'scheduler/plans' },
  { room: 'scheduler/', name: 'engine', folder: 'scheduler/engine' },
  { room: 'scheduler/', name: 'ranks', folder: 'scheduler/ranks' },
  { room: 'scheduler/', name: 'failure', folder: 'scheduler/failure' },
  { room: 'scheduler/', name: 'reports', folder: 'scheduler/reports' },
  { room: 'stages/', name: '', folder: 'stages' },
  { room: 'devices/', name: '', folder: 'devices' },
  { room: 'devices/', name: 'memory', folder: 'devices/memory' },
  { room: 'devices/', name: 'network', folder: 'devices/network' },
  { room: 'devices/', name: 'planning', folder: 'devices/planning' },
  { room: 'devices/', name: 'native or', more: 'simulated', folder: 'devices/native' },
  { room: 'native/', name: 'queues', folder: 'native/queues' },
  { room: 'native/', name: 'workers', folder: 'native/workers' },
  { room: 'native/', name: 'gpu', folder: 'native/gpu' },
  { room: 'native/', name: 'mpi', folder: 'native/mpi' },
  { room: 'trace/', name: '', folder: 'trace' },
];

/** Threads, with the first and last column of the folders whose code they run. */
const threads = [
  { from: 0, to: 11, name: 'engine thread: the program, the JavaScript bodies and every decision' },
  { from: 12, to: 13, name: 'one a core' },
  { from: 14, to: 14, name: 'one a GPU' },
  { from: 15, to: 15, name: 'comm' },
  { from: 16, to: 16, name: 'writer' },
];

/** The five ways. A step: the folder, its files, and their part. */
export const ways = [
  {
    name: 'A task',
    color: 'task',
    steps: [
      ['scheduler/program', 'graph.ts', 'checks the call and turns names into numbers'],
      ['scheduler/engine', 'engine.ts', 'takes a row of the window'],
      ['stages', 'task-table.ts', 'holds the row'],
      ['scheduler/engine', 'dependencies.ts', 'orders the task after earlier users of its data'],
      ['scheduler/engine', 'dispatcher.ts, ready-queue.ts', 'keep it until a queue has room'],
      ['scheduler/engine', 'device-choice.ts, queue-choice.ts', 'choose the device and the queue'],
      ['stages', 'pipeline.ts', 'calls one stage after the other'],
      ['stages', 'alloc.ts, stage-in.ts, comm-in.ts', 'reserve memory, command copies'],
      ['stages', 'exec.ts', 'collects the events that the command follows'],
      ['devices/memory', 'directory.ts', 'knows the events of every copy'],
      ['devices', 'submission.ts', 'drops events that are over'],
      ['devices/native', 'backend.ts', 'writes the command into the ring of the queue'],
      ['native/workers', 'worker.cpp, executor.cpp', 'wait for the events, run the kernel'],
      ['scheduler/engine', 'completions.ts', 'sees the count of completed commands move'],
      ['scheduler/engine', 'retirement.ts', 'finalizes the task'],
      ['scheduler/reports', 'engine-tracer.ts, task-tracer.ts', 'record the times of its stages'],
      ['stages', 'stage-out.ts', 'writes results back where memory is short'],
      ['trace', 'recorder.ts, chunk-writer.ts', 'write the trace'],
    ],
  },
  {
    name: 'A remote datum',
    color: 'datum',
    steps: [
      { rank: 'the rank that writes it' },
      ['scheduler/program', 'graph.ts', 'takes the same insertion on both ranks'],
      ['scheduler/ranks', 'insertion.ts, plan.ts', 'find the movements that it needs'],
      ['scheduler/ranks', 'planned-transfers.ts', 'inserts a send here and a receive there'],
      ['scheduler/engine', 'engine.ts, dispatcher.ts', 'order the send like a task and release it'],
      ['scheduler/ranks', 'movement-tasks.ts, sends.ts', 'begin the send'],
      ['scheduler/ranks', 'lane-movements.ts, rank-lanes.ts', 'name the lane and the ranks'],
      [
        'stages',
        'comm-in.ts, pipeline.ts, exec-message.ts',
        'grant credit, pin the copy, name its writer',
      ],
      ['devices', 'submission.ts', 'writes a command that waits for the writer'],
      [
        'native/mpi',
        'lane_rounds.cpp, lane_offers.cpp',
        'see the writer end and offer the version',
      ],
      ['native/mpi', 'session_letters.cpp', 'sends the announcement'],
      { rank: 'the rank that reads it' },
      ['native/mpi', 'lane_letters.cpp', 'keeps the announcement'],
      ['devices/native', 'network.ts', 'takes the news from the ring'],
      ['devices/network', 'device.ts', 'hands them over'],
      ['scheduler/ranks', 'receives.ts, movements.ts', 'find the receive that they are for'],
      [
        'scheduler/ranks',
        'lane-movements.ts, rank-lanes.ts',
        'name the key, the way and the flush',
      ],
      ['stages', 'comm-in.ts, alloc.ts, exec-message.ts', 'give it memory and command it'],
      ['devices/network', 'receive-lanes.ts', 'has a free lane'],
      ['native/mpi', 'lane_server.cpp', 'asks for the bytes or reads them'],
      [
        'native/mpi',
        'session_transfers.cpp, session_gpus.cpp',
        'move them, flush, end the command',
      ],
      [
        'scheduler/engine',
        'completions.ts, retirement.ts',
        'end the receive and release the readers',
      ],
    ],
  },
  {
    name: 'An evicted tile',
    color: 'tile',
    steps: [
      ['stages', 'alloc.ts', 'counts the bytes that a task lacks'],
      ['stages', 'next-use.ts', 'looks ahead for the next use of every copy'],
      ['devices/memory', 'space.ts', 'gives the ticket to the first task in line'],
      ['devices/memory', 'eviction.ts, lru.ts', 'choose the copy that is needed last'],
      ['devices/memory', 'zone.ts', 'frees the block of a clean copy at once'],
      ['devices/memory', 'transfers.ts', 'commands the copy of a dirty one to the host'],
      ['devices', 'submission.ts', 'puts it behind the last users of the copy'],
      ['devices/native', 'backend.ts', 'writes the command into the ring'],
      ['native/gpu', 'device_thread.cpp, device_commands.cpp', 'copy it to the host'],
      ['scheduler/engine', 'completions.ts', 'sees the end of the copy'],
      ['devices/memory', 'transfers.ts, directory.ts, coherency.ts', 'make the host the owner'],
      ['scheduler/engine', 'completions.ts', 'wakes the holder of the ticket'],
      ['stages', 'pipeline.ts, alloc.ts', 'give the block to the task'],
    ],
  },
  {
    name: 'A plan',
    color: 'plan',
    steps: [
      ['scheduler/program', 'runtime.ts', 'takes the program of the plan'],
      [
        'scheduler/plans',
        'make-plan.ts, plan-graph.ts, slot.ts',
        'call it and take its insertions',
      ],
      ['scheduler/plans', 'planning-engine.ts, insertions.ts', 'insert them into another engine'],
      ['devices/planning', 'backend.ts, commands.ts', 'keep every command of that engine'],
      ['scheduler/plans', 'planner.ts, iteration.ts', 'make the commands begin where they end'],
      ['scheduler/plans', 'ranges.ts, waits.ts', 'find which bytes and which waits they need'],
      ['scheduler/plans', 'assembly.ts, layout.ts', 'make a list of records per queue'],
      ['scheduler/plans', 'plan.ts', 'is asked for a play'],
      ['scheduler/engine', 'exclusive.ts', 'lets the play begin alone'],
      ['scheduler/plans', 'play.ts, placement.ts', 'find memory, bring the data, begin'],
      ['devices/native', 'backend.ts', 'hands the lists to the queues'],
      ['native/queues', 'feed.cpp', 'writes the next records into the ring'],
      ['native/workers', 'worker.cpp, executor.cpp', 'wait for the events, run the kernels'],
      ['scheduler/plans', 'play.ts', 'tells the directory where the data lie'],
    ],
  },
  {
    name: 'An error',
    color: 'error',
    steps: [
      [
        'native/workers',
        'executor.cpp',
        'cancels the run in shared memory, then publishes the end',
      ],
      ['devices/native', 'backend.ts', 'reads the count of failures'],
      ['scheduler/engine', 'completions.ts', 'takes failed commands before all others'],
      ['scheduler/failure', 'effects.ts', 'finds the tasks that used the missing value'],
      ['scheduler/failure', 'poison.ts', 'marks the data without a value'],
      ['scheduler/engine', 'retirement.ts', 'finalizes the task'],
      ['scheduler/failure', 'describe.ts', 'names the task, the stage and the cause'],
      ['scheduler/failure', 'effects.ts', 'fails the run'],
      ['scheduler/ranks', 'early-ends.ts, agreement.ts', 'tell the other ranks'],
      ['scheduler/failure', 'dropped-tasks.ts', 'keeps the order across tasks that will not run'],
      ['scheduler/engine', 'runs.ts', 'ends the run with its last task'],
      ['scheduler/program', 'run.ts', 'rejects with the error'],
    ],
  },
];

/** Files of a way, each once, with their folders. */
export function filesOf(way) {
  const files = way.steps
    .filter(Array.isArray)
    .flatMap(([folder, names]) => names.split(', ').map((name) => `${folder}/${name}`));
  return [...new Set(files)];
}

/** How often a way turns back to rooms on its left; from room to room in one go is one turn. It begins anew on another rank. */
export function turnsOf(way) {
  const rooms = [...new Set(columns.map(({ room }) => room))];
  let turns = 0;
  let before = -1;
  let goesBack = false;
  for (const step of way.steps) {
    const room = Array.isArray(step) ? rooms.indexOf(`${step[0].split('/')[0]}/`) : -1;
    const isBehind = room >= 0 && room < before;
    if (isBehind && !goesBack) turns++;
    if (room !== before) goesBack = isBehind;
    before = room;
  }
  return turns;
}

const left = 44;
const pitch = 67;
const width = left + pitch * (columns.length - 1) + 50;
const rowHeight = 21;
const top = 148;

const x = (column) => left + pitch * column;
const columnOf = (folder) => columns.findIndex((each) => each.folder === folder);
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

const style = `
  svg { --paper: #ffffff; --ink: #1f2328; --pale: #59636e; --line: #d1d9e0; --band: #f6f8fa; --bar: #e6eaef;
    --task: #0072b2; --datum: #00785a; --tile: #b45309; --plan: #6f42c1; --error: #b0306f; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --pale: #9198a1; --line: #2f3742; --band: #151b23; --bar: #262c36;
      --task: #56b4e9; --datum: #3fc79a; --tile: #f0a83c; --plan: #b79bf0; --error: #f291c4; }
  }
  text { font: 11px -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif; fill: var(--ink); }
  .head { font-weight: 600; font-size: 12px; } .pale { fill: var(--pale); }
  .way { font-weight: 600; font-size: 14px; }
  .file { font-weight: 600; }
  .label { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
  .guide { stroke: var(--line); } .paper { fill: var(--paper); } .band { fill: var(--band); } .bar { fill: var(--bar); }
  .path { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
${['task', 'datum', 'tile', 'plan', 'error']
  .map((name) => `  .${name} { stroke: var(--${name}); } .${name}-fill { fill: var(--${name}); }`)
  .join('\n')}
`;

function text(at, y, words, { anchor = 'middle', kind = '' } = {}) {
  return `<text x="${at}" y="${y}" text-anchor="${anchor}"${kind && ` class="${kind}"`}>${escaped(words)}</text>`;
}

/** Draws the rooms, their folders, and the threads that run them. */
function header() {
  const parts = [
    text(
      left - 24,
      24,
      'A column is a folder. Rooms import from left to right. A way goes down from file to file.',
      {
        anchor: 'start',
        kind: 'pale',
      },
    ),
    text(left - 24, 40, 'A bar names the threads that run the code of the folders above it.', {
      anchor: 'start',
      kind: 'pale',
    }),
  ];
  for (let from = 0; from < columns.length; ) {
    let to = from;
    while (columns[to + 1]?.room === columns[from].room) to++;
    parts.push(
      `<rect class="band" x="${x(from) - 31}" y="54" width="${pitch * (to - from) + 62}" height="52" rx="5"/>`,
      text((x(from) + x(to)) / 2, 70, columns[from].room, { kind: 'head' }),
    );
    from = to + 1;
  }
  columns.forEach(({ name, more }, column) => {
    parts.push(text(x(column), more === undefined ? 90 : 86, name));
    if (more !== undefined) parts.push(text(x(column), 98, more));
  });
  for (const { from, to, name } of threads) {
    parts.push(
      `<rect class="bar" x="${x(from) - 31}" y="112" width="${pitch * (to - from) + 62}" height="20" rx="4"/>`,
      text((x(from) + x(to)) / 2, 126, name),
    );
  }
  return parts;
}

/** Draws one way: its line, and at each step a dot with the files and their part. */
function drawWay(way, y0) {
  const kind = way.color;
  const labels = [];
  const dots = [];
  let line = '';
  let y = y0 + 22;
  let before;
  for (const step of way.steps) {
    if (!Array.isArray(step)) {
      labels.push(text(left - 24, y + 4, step.rank, { anchor: 'start', kind: 'label pale' }));
      y += rowHeight;
      continue;
    }
    const [folder, files, part] = step;
    const column = columnOf(folder);
    const at = x(column);
    const middle = y - rowHeight / 2;
    line +=
      before === undefined ? `M${at} ${y}` : before === column ? `V${y}` : `V${middle}H${at}V${y}`;
    before = column;
    dots.push(`<circle class="${kind}-fill" cx="${at}" cy="${y}" r="4.5"/>`);
    const isLeft = column < 9;
    labels.push(
      `<text class="label" x="${isLeft ? at + 11 : at - 11}" y="${y + 4}" text-anchor="${isLeft ? 'start' : 'end'}">` +
        `<tspan class="file">${escaped(files)}</tspan> ${escaped(part)}</text>`,
    );
    y += rowHeight;
  }
  const title = `${way.name}: ${filesOf(way).length} files`;
  return {
    parts: [
      text(left - 24, y0, title, { anchor: 'start', kind: `label way ${kind}-fill` }),
      `<path class="path ${kind}" d="${line}"/>`,
      ...dots,
      ...labels,
    ],
    end: y,
  };
}

export function picture() {
  const body = [];
  let y = top + 18;
  for (const way of ways) {
    const { parts, end } = drawWay(way, y);
    body.push(...parts);
    y = end + 22;
  }
  const height = y - 6;
  const guides = columns.map(
    (_, column) =>
      `<line class="guide" x1="${x(column)}" x2="${x(column)}" y1="136" y2="${height - 14}"/>`,
  );
  const words = ways
    .map(({ name, steps }) => {
      const each = steps.filter(Array.isArray).map(([, files, part]) => `${files} ${part}`);
      return `${name}: ${each.join('; ')}.`;
    })
    .join(' ');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title desc">`,
    '<title id="title">Folders, threads and five ways through Headrace</title>',
    `<desc id="desc">${escaped(words)}</desc>`,
    `<style>${style}</style>`,
    `<rect class="paper" width="${width}" height="${height}"/>`,
    ...guides,
    ...header(),
    ...body,
    '</svg>',
    '',
  ].join('\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values } = commandLine(usage, { check: { type: 'boolean' } });
  const file = path.join(root, 'docs', 'architecture.svg');
  if (values.check !== true) writeFileSync(file, picture());
  else if (readFileSync(file, 'utf8') !== picture()) {
    console.error(
      'docs/architecture.svg is not the picture that scripts/architecture-picture.mjs draws; run the script',
    );
    process.exit(1);
  }
}
