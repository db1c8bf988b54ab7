// Checks a small instance of a parameterised graph from outside: every edge from both ends, then the order, then every datum.

import { Datum } from '../program/datum.js';
import { functionMistake } from './class-functions.js';
import { FlowEnd } from './ends.js';
import type { GraphClass } from './graph-class.js';
import { homeProblem } from './home-copy.js';
import type { LocalInputs } from './local-inputs.js';
import { whyNotLocal } from './local-rules.js';
import { brokenPromises } from './repeat-checks.js';
import { Ancestors, cycleOf, topological } from './task-order.js';
import { type GraphProblem, type Output, Unrolled } from './unrolled.js';
import { verifyOrder } from './verify-order.js';

/** What `verify` has found. */
export interface GraphCheck {
  /** Number of tasks of the instance. */
  readonly tasks: number;
  /** Empty if the instance is correct. */
  readonly problems: readonly GraphProblem[];
}

/** A use of a datum by a task. */
interface Access {
  readonly task: number;
  /** The version that it uses, and the one that it leaves. */
  readonly before: number;
  readonly behind: number;
  readonly output: Output | undefined;
}

/** A datum of the instance. */
interface Place {
  /** Undefined for a temporary. */
  readonly datum: Datum | undefined;
  readonly accesses: Access[];
}

/** A version of a place. */
interface Version {
  readonly place: Place;
  readonly number: number;
}

/** @internal */
export function verify(classes: readonly GraphClass[], inputs: LocalInputs): GraphCheck {
  const unrolled = new Unrolled(classes);
  const { tasks, problems } = unrolled;
  checkWriters(unrolled);
  // The order of the tasks of a graph with wrong edges says nothing.
  if (problems.length > 0) return { tasks: tasks.length, problems };
  for (const words of brokenPromises(tasks)) unrolled.report('repeat', words);
  const order = topological(unrolled.after);
  if (order.length < tasks.length) {
    const cycle = cycleOf(unrolled.after, order).map((n) => unrolled.name(n));
    unrolled.report('cycle', `tasks wait for each other: ${cycle.join(' -> ')}`);
    return { tasks: tasks.length, problems };
  }
  const ancestors = new Ancestors(unrolled.after, order);
  for (const place of placesOf(unrolled, order)) {
    checkRaces(unrolled, ancestors, place);
    if (place.datum === undefined) checkTemporary(unrolled, place);
    else checkHome(unrolled, place, place.datum);
  }
  if (whyNotLocal(classes) === undefined) verifyOrder(unrolled, order, inputs);
  const mistake = functionMistake(classes);
  if (mistake !== undefined) unrolled.report('edge', mistake.message);
  return { tasks: tasks.length, problems };
}

/** A version has one writer, and the readers come before it. */
function checkWriters(unrolled: Unrolled): void {
  for (const outputs of unrolled.outputs) {
    for (const output of outputs) {
      if (output === undefined) continue;
      const { readers, writers } = output;
      if (writers.length > 1) {
        const [one, other] = writers.map((n) => unrolled.name(n));
        const what = unrolled.outputName(output);
        unrolled.report('race', `${one} and ${other} both overwrite ${what}`);
      }
      for (const writer of writers)
        for (const reader of readers) if (reader !== writer) unrolled.after[reader].push(writer);
    }
  }
}

/** The data of the instance and their uses, in an order of the tasks. */
function placesOf(unrolled: Unrolled, order: readonly number[]): Place[] {
  const places = new Places();
  /** The versions that each task leaves, by flow. */
  const left: Version[][] = unrolled.tasks.map(() => []);
  for (const n of order) {
    const task = unrolled.tasks[n];
    const { cls } = task;
    for (let flow = 0; flow < cls.from.length; flow++) {
      for (const source of task.sourcesOf(flow)) {
        const version =
          source instanceof FlowEnd
            ? left[unrolled.numberOf(source)][source.flow]
            : { place: places.of(source instanceof Datum ? source : undefined), number: 0 };
        const { place, number: before } = version;
        const behind = before + (cls.isWritten[flow] ? 1 : 0);
        const output = unrolled.outputs[n][flow];
        place.accesses.push({ task: n, before, behind, output });
        left[n][flow] = { place, number: behind };
      }
      for (const home of unrolled.outputs[n][flow]?.homes ?? []) {
        const { datum } = left[n][flow].place;
        if (home === datum) continue;
        const problem = datum === undefined ? undefined : homeProblem(datum, home);
        if (problem !== undefined)
          unrolled.report(
            'edge',
            `'${cls.runs.flowNames[flow]}' of ${unrolled.name(n)} ${problem}`,
          );
        places.of(home).accesses.push({ task: n, before: 0, behind: 1, output: undefined });
      }
    }
  }
  return places.all;
}

/** The data that tasks use; every temporary is one of its own. */
class Places {
  readonly all: Place[] = [];
  private readonly known: Map<Datum, Place> = new Map();

  of(datum: Datum | undefined): Place {
    const known = datum === undefined ? undefined : this.known.get(datum);
    if (known !== undefined) return known;
    const made: Place = { datum, accesses: [] };
    this.all.push(made);
    if (datum !== undefined) this.known.set(datum, made);
    return made;
  }
}

/** Whoever overwrites a version comes behind all who use it, and before all who use a later one. */
function checkRaces(unrolled: Unrolled, ancestors: Ancestors, { datum, accesses }: Place): void {
  const what = datum === undefined ? 'a temporary' : `datum '${datum.name}'`;
  for (const writer of accesses) {
    if (writer.behind === writer.before) continue;
    for (const other of accesses) {
      if (other.task === writer.task) continue;
      const isWriter = other.behind > other.before;
      // Pairs of writers are looked at once.
      if (isWriter && other.task < writer.task) continue;
      const [one, two] = [unrolled.name(writer.task), unrolled.name(other.task)];
      const verb = isWriter ? 'writes' : 'reads';
      const isFirst = ancestors.isBefore(writer.task, other.task);
      if (!isFirst && !ancestors.isBefore(other.task, writer.task))
        unrolled.report('race', `${one} writes ${what} and ${two} ${verb} it, in no order`);
      else if (isFirst ? other.before < writer.behind : other.behind > writer.before) {
        const [early, late] = isFirst ? [one, two] : [two, one];
        unrolled.report(
          'race',
          `${early} comes before ${late}, which needs an older value of ${what}`,
        );
      }
    }
  }
}

/** Every version of a temporary is used. */
function checkTemporary(unrolled: Unrolled, { accesses }: Place): void {
  for (const { task, before, behind, output } of accesses) {
    if (behind === before || output === undefined) continue;
    if (output.readers.length + output.writers.length + output.homes.length > 0) continue;
    const flow = unrolled.outputName(output);
    unrolled.report(
      'temporary',
      `no task reads the temporary that ${unrolled.name(task)} leaves, ${flow}`,
    );
  }
}

/** The last version of a datum comes home. */
function checkHome(unrolled: Unrolled, { accesses }: Place, datum: Datum): void {
  for (const { before, behind, output } of accesses) {
    if (behind === before || output === undefined || output.writers.length > 0) continue;
    if (output.homes.includes(datum)) continue;
    unrolled.report(
      'home',
      `datum '${datum.name}' gets its last version from ${unrolled.outputName(output)}, which does not send it home`,
    );
  }
}
