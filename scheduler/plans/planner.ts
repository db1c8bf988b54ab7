// Makes a plan: inserts the tasks into the engine over the planning backend and turns the commands into lists.
//
// A plan can be played again and again only if every copy that an iteration needs at its begin is there again at its end.
// Three ways are tried in this order:
// 1. from the host: all data lie on the host before the iteration. It serves if they do so afterwards, as with tasks of the
//    host only;
// 2. resident: the iteration begins where the first one ended. It serves if no copy has to leave a GPU: then every datum has
//    its own memory on every device that uses it. It is taken in place of the first way if it moves fewer bytes: data that are only
//    read come to the GPUs once, and not in every iteration;
// 3. from the host, and back to the host at the end.
//
// Eviction. The third way is tried twice: with the look ahead of the engine, and with all uses known (whole-future.ts). To know more need
// not mean to move less, because clean copies leave before dirty ones and tasks that were issued hold their memory. What
// moves fewer bytes is taken. It is known that the data do not fit, so the devices are short of memory from the begin
// (memory-pressure.ts): otherwise the first tasks that are ready would fill the memory with data that are needed late. Such a device
// uses one queue, whose order decides which data move. The memory and the copies are planned for that order. So the kernels
// can be dealt to all streams of the device in the end: a small kernel runs beside a large one.
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, type SpaceId } from '../../devices/handles.js';
import { AccessMode } from '../../trace/format.js';
import type { Engine } from '../engine/engine.js';
import { assemble } from './assembly.js';
import { criticalPath } from './chains.js';
import { inTurn } from './deal-to-streams.js';
import { dealAgain, isOfWorkers } from './dealing.js';
import { type CopyPlace, type Iteration, iterationOf, repeats } from './iteration.js';
import type { PlannedProgram } from './planned-program.js';
import type { PlanningEngine } from './planning-engine.js';

/** One way to run the tasks. */
interface Attempt {
  readonly iteration: Iteration;
  readonly evictions: number;
  readonly makespan: number;
}

export class Planner {
  private readonly engine: PlanningEngine;
  private readonly real: Engine;
  private readonly began: number = performance.now();
  /** All tasks of the plan are on workers of the host: they are dealt with all of them known (dealing.ts). */
  isOfWorkers = false;
  /** Devices whose memory the data do not fit. */
  private evicting: ReadonlySet<SpaceId> = new Set();

  constructor(engine: PlanningEngine, real: Engine) {
    this.engine = engine;
    this.real = real;
  }

  /** The tasks are inserted into the engine: makes the plan. */
  finish(name: string): PlannedProgram {
    this.engine.drain();
    return this.plan(name);
  }

  /** Inserts the tasks of the engine that this one is like, and makes the plan. */
  again(name: string): PlannedProgram {
    this.engine.repeat();
    return this.plan(name);
  }

  private plan(name: string): PlannedProgram {
    const { insertions, share } = this.engine;
    insertions.trim();
    const chosen = this.dealt(this.choose());
    const longest = criticalPath(chosen.iteration, insertions.after);
    const decisions = { name, insertions, share, ...chosen, criticalPath: longest };
    return assemble(this.real, decisions, this.began);
  }

  /** Ranks deal their tasks in program order (messages.ts). */
  private dealt(attempt: Attempt): Attempt {
    const { insertions, share, planning, directory } = this.engine;
    const { iteration } = attempt;
    const { queues } = this.real.backend;
    this.isOfWorkers = share === undefined && isOfWorkers(iteration.commands, queues);
    if (!this.isOfWorkers) return this.onStreams(attempt);
    const secondsOf = (n: number): number =>
      planning.secondsOf(insertions.classOf(n).kernels[HOST]);
    const better = dealAgain(iteration, insertions.after, queues, secondsOf);
    if (better === undefined) return attempt;
    const exits = this.exits();
    const { commands, makespan } = better;
    return {
      ...attempt,
      makespan,
      iteration: iterationOf({ insertions, commands, exits, directory, queues }),
    };
  }

  private onStreams(attempt: Attempt): Attempt {
    const { iteration, evictions } = attempt;
    if (evictions === 0) return attempt;
    const commands = iteration.commands.copy();
    commands.queue = inTurn(commands, this.real.backend.queues, this.evicting);
    return { ...attempt, iteration: { ...iteration, commands } };
  }

  private exits(): ReadonlyMap<DatumId, readonly CopyPlace[]> {
    return new Map(Array.from(this.written(), (d) => [d, this.copiesOf(d)] as const));
  }

  private choose(): Attempt {
    const { engine } = this;
    const fromHost = this.attempt(0, 0);
    const serves = repeats(fromHost.iteration);
    const moved = movedIn(fromHost);
    if (serves && (moved === 0 || !guards.planStays)) return fromHost;
    const deviceOf = this.devicesOf(fromHost);
    // Data that do not fit the first time do not fit the second time either.
    if (fromHost.evictions === 0) {
      const begin = engine.backend.now();
      engine.repeat();
      const resident = this.attempt(0, begin);
      const isResident = resident.evictions === 0 && repeats(resident.iteration);
      if (isResident && (!serves || movedIn(resident) < moved)) return resident;
    }
    if (serves) return fromHost;
    this.evicting = engine.staysShort();
    engine.goHome();
    const seen = this.home();
    engine.foresee(deviceOf);
    const foreseen = this.home();
    return isShorter(foreseen, seen) ? foreseen : seen;
  }

  /** The third way; all data lie on the host now. */
  private home(): Attempt {
    const { engine } = this;
    const { counters } = engine.x;
    const before = counters.evictions;
    const begin = engine.backend.now();
    engine.repeat();
    const dropped = counters.evictions - before;
    engine.goHome();
    // Before and after, all data lie on the host, each in a place of its own: this way always repeats.
    return this.attempt(counters.evictions - dropped, begin);
  }

  /** What the commands since the last begin need and leave. */
  private attempt(evictionsBefore: number, begin: number): Attempt {
    const { engine } = this;
    const { insertions, directory, backend, planning } = engine;
    planning.end();
    planning.commands.trim();
    const exits = this.exits();
    const { commands } = planning;
    const { queues } = this.real.backend;
    return {
      iteration: iterationOf({ insertions, commands, exits, directory, queues }),
      evictions: engine.x.counters.evictions - evictionsBefore,
      makespan: (backend.now() - begin) * 1e-9,
    };
  }

  /** Device of each insertion in an attempt. */
  private devicesOf({ iteration: { commands } }: Attempt): Uint8Array {
    const { queues } = this.real.backend;
    const devices = new Uint8Array(this.engine.insertions.count);
    for (let c = 0; c < commands.count; c++)
      if (!commands.isCopy[c]) devices[commands.insertion[c]] = queues[commands.queue[c]].space;
    return devices;
  }

  /** The copies of a datum that are valid now; the owner's first. */
  private copiesOf(d: DatumId): CopyPlace[] {
    const { directory: dir } = this.engine;
    const list: CopyPlace[] = [];
    const owner = dir.owner(d);
    for (let s = HOST; s < dir.spaces; s++) {
      if (((dir.validMask[d] >> s) & 1) === 0) continue;
      const copy = { space: s, offset: dir.block[d * dir.spaces + s] };
      if (s === owner) list.unshift(copy);
      else list.push(copy);
    }
    return list;
  }

  private *written(): Iterable<DatumId> {
    const { insertions } = this.engine;
    const seen = new Set<DatumId>();
    for (let n = 0; n < insertions.count; n++) {
      const { modes } = insertions.classOf(n);
      for (let i = 0; i < modes.length; i++) {
        const d = insertions.datum(n, i);
        if (modes[i] === AccessMode.read || seen.has(d)) continue;
        seen.add(d);
        yield d;
      }
    }
  }
}

/** Whether an attempt moves fewer bytes, or as many in less time. */
function isShorter(a: Attempt, b: Attempt): boolean {
  const [bytes, others] = [movedIn(a), movedIn(b)];
  return bytes < others || (bytes === others && a.makespan <= b.makespan);
}

function movedIn({ iteration: { commands } }: Attempt): number {
  let bytes = 0;
  for (let c = 0; c < commands.count; c++)
    if (commands.isCopy[c]) bytes += commands.values[commands.first[c] + 2];
  return bytes;
}
