// Plays one simulated case: opens the machines of all ranks in one world, inserts the tasks, lets virtual time run, and
// makes every check: every read (weak memory), each rank (rank-player.ts), and that the ranks agree on the end of the
// run.
//
// Invariant: this file drives the world, so a failing engine throws into `play` instead of ending the process, and
// a run without progress is seen at once.

import { describeThrown, isError } from '../../../trace/thrown.js';
import { checkContents, checkLeft, checkReads, checkRuns } from '../checkers/rank-checks.js';
import { Adversary } from '../machine/adversary.js';
import { World } from '../machine/world.js';
import { SerialOracle } from '../memory/oracle.js';
import { WeakMemory } from '../memory/weak-memory.js';
import { SimulatedNetwork } from '../network/network.js';
import { visibleTo, WeakNetwork } from '../network/weak-network.js';
import type { SimulatedCase } from './case.js';
import { backendOf, machineOf } from './machine.js';
import { RankPlayer } from './rank-player.js';
import { Steps } from './steps.js';

/** The result of a case. */
export interface Played {
  /** Empty if all promises hold. */
  readonly problems: readonly string[];
  /** Code of the error of the run, '' when it ended well, 'stalled' when it did not end. */
  readonly outcome: string;
  readonly ranks: number;
  readonly tasks: number;
  readonly events: number;
  readonly checks: number;
  readonly evictions: number;
  readonly spills: number;
  /** Messages between ranks, and transfers of data. */
  readonly messages: number;
  readonly transfers: number;
  readonly injected: number;
  readonly nanoseconds: number;
}

/** Turns of engines after which a case counts as endless. */
const MOST_TURNS = 400_000;
/** Turns of the promise queue after which no code will continue a run. */
const MICROTASKS = 16;

export class Player {
  readonly world: World = new World(false);
  readonly oracle: SerialOracle;
  readonly memory: WeakMemory;
  readonly network: SimulatedNetwork | undefined;
  readonly ranks: readonly RankPlayer[];
  readonly problems: string[] = [];
  stalled = false;
  /** Tasks that were over when the ranks asked each other for their calls. */
  private overWhenAsked: number | undefined;
  private readonly c: SimulatedCase;
  private readonly steps: Steps;
  private flushesStruck = 0;
  private lateMessages = 0;

  constructor(c: SimulatedCase) {
    this.c = c;
    const { world } = this;
    const size = c.ranks ?? 1;
    this.oracle = new SerialOracle(size);
    this.memory = new WeakMemory(this.oracle, machineOf(c), size);
    const backends = Array.from({ length: size }, (_, rank) =>
      backendOf(c, rank, world, this.memory),
    );
    this.network = this.connect(backends);
    this.ranks = backends.map(
      (backend, rank) =>
        new RankPlayer(c, rank, backend, this.network?.ports[rank], this.memory, this.oracle),
    );
    this.steps = new Steps(c, this.ranks, this.oracle, world, (isOver) => this.drive(isOver));
  }

  private connect(backends: ReturnType<typeof backendOf>[]): SimulatedNetwork | undefined {
    const { network, adversary } = this.c;
    const { network: link } = machineOf(this.c);
    if (network === undefined || link === undefined) return undefined;
    const lost = network.faults.find((fault) => fault.kind === 'peerLost');
    const built = new SimulatedNetwork(this.world, backends, {
      link,
      ranksPerHost: network.ranksPerHost,
      room: network.room,
      treeFrom: network.treeFrom,
      adversary: new Adversary({ ...adversary, seed: adversary.seed + 99 }),
      ordering: visibleTo[network.ordering],
      watcher: new WeakNetwork(this.memory, network.ordering),
      flushFault: (rank, nth) => {
        const fault = network.faults.find(
          (f) => f.kind === 'flush' && f.rank === rank && f.at === nth,
        );
        if (fault?.kind !== 'flush') return undefined;
        this.flushesStruck++;
        return fault.waits === true ? 'waits' : 'fails';
      },
      lateBy: (nth) => {
        const late = network.faults.find((f) => f.kind === 'late' && f.at === nth);
        if (late?.kind !== 'late') return 0;
        this.lateMessages++;
        return late.ns;
      },
    });
    if (lost?.kind === 'peerLost') {
      this.world.at(lost.ns, () => {
        this.memory.tolerant = true;
        built.lose(lost.rank);
      });
    }
    return built;
  }

  async play(): Promise<Played> {
    const { ranks } = this;
    try {
      await this.steps.play();
      if (!this.stalled)
        await this.drive(() => this.alive.every((rank) => rank.runs.every((run) => run.isOver)));
      if (this.stalled) this.checkStall();
      else await this.check();
    } catch (error) {
      // With a command that never ends, insertion into a full window waits for ever, and is stopped.
      if (this.hangs) this.stalled = true;
      else this.problems.push(describeThrown(error));
    }
    this.problems.unshift(...this.memory.violations.map((v) => v.message));
    for (const rank of ranks) {
      const where = ranks.length > 1 ? `rank ${rank.rank}: ` : '';
      this.problems.push(...rank.problems.map((problem) => where + problem));
    }
    return this.result();
  }

  private async check(): Promise<void> {
    this.checkOutcomes();
    this.steps.readBack(this.c.reads);
    // A rank that is lost meanwhile sends no report.
    await this.drive(() => this.alive.every((rank) => rank.open === 0));
    if (this.stalled) {
      this.checkStall();
      return;
    }
    await this.drain();
    this.memory.tasks.settleDoubts();
    this.checkAnswers();
    const isGood =
      this.isCalm && this.alive.every((rank) => rank.runs.every((run) => run.outcome === ''));
    for (const rank of this.alive) {
      checkRuns(rank, this.c);
      checkReads(rank, this.c);
      checkContents(rank, isGood);
    }
    await this.closeAll();
  }

  private result(): Played {
    const { ranks, network } = this;
    const sum = (of: (rank: RankPlayer) => number): number =>
      ranks.reduce((total, rank) => total + of(rank), 0);
    const runs = this.alive.flatMap((rank) => rank.runs);
    const failed = runs.find((run) => run.outcome !== '');
    return {
      problems: this.problems,
      outcome: this.stalled ? 'stalled' : failed === undefined ? '' : (failed.outcome ?? 'open'),
      ranks: ranks.length,
      tasks: this.c.tasks.length,
      events: sum((rank) => rank.backend.events),
      checks: this.memory.checks + sum((rank) => rank.invariants.checks),
      evictions: sum((rank) => rank.engine.x.counters.evictions),
      spills: sum((rank) => rank.engine.transfers.spills),
      messages: network?.messages ?? 0,
      transfers: network?.transfers ?? 0,
      injected:
        sum((rank) => rank.backend.faults.injected) +
        this.flushesStruck +
        this.lateMessages +
        (network?.isLost === true ? 1 : 0),
      nanoseconds: this.world.time,
    };
  }

  private get alive(): RankPlayer[] {
    return this.ranks.filter((rank) => !rank.isDead);
  }

  private get hangs(): boolean {
    return this.c.faults.some((fault) => fault.kind === 'hang');
  }

  /** The case has no faults. */
  private get isCalm(): boolean {
    const { faults, network, shortOfHost } = this.c;
    return faults.length === 0 && (network?.faults.length ?? 0) === 0 && !shortOfHost;
  }

  /** Lets time run until a condition is true; gives up when no event can happen any more. */
  private async drive(isOver: () => boolean): Promise<boolean> {
    const { world } = this;
    const limit = world.turns + MOST_TURNS;
    while (world.turns < limit) {
      await undefined;
      if (isOver()) return true;
      const { turns } = world;
      let moved = false;
      while (world.turns === turns && world.step()) moved = true;
      for (let i = 0; i < MICROTASKS && !moved && !isOver(); i++) {
        await undefined;
        moved = world.next < Number.POSITIVE_INFINITY;
      }
      this.checkQuestion();
      if (moved) continue;
      // Only a rank that waits asks.
      if (isOver()) return true;
      // A waiting rank may ask the others for their calls.
      const over = this.tasksOver;
      if (world.askAround()) {
        this.overWhenAsked ??= over;
        continue;
      }
      this.stalled = !isOver();
      return !this.stalled;
    }
    this.problems.push(`the run did not end within ${MOST_TURNS} turns`);
    this.stalled = true;
    return false;
  }

  /** Tasks that are over on live ranks. */
  private get tasksOver(): number {
    return this.alive.reduce((sum, { engine }) => sum + engine.tasks.head, 0);
  }

  /**
   * A rank that waits while nothing moves asks the others which calls they made. If the answer is that all made the same,
   * the question must not have moved anything: else a wake-up was lost, and the question only hid it.
   */
  private checkQuestion(): void {
    if (this.overWhenAsked === undefined || this.overWhenAsked === this.tasksOver) return;
    this.overWhenAsked = undefined;
    // A command that never ends is an intended standstill.
    if (this.hangs) return;
    const isApart = ({ runtime }: RankPlayer): boolean =>
      runtime.peers?.calls.mismatch !== undefined;
    if (this.alive.some(isApart)) return;
    this.problems.push('nothing moved until the ranks asked each other where they are');
  }

  /** The ranks agree on the end of every run. */
  private checkOutcomes(): void {
    const { alive } = this;
    const runs = Math.max(0, ...alive.map((rank) => rank.runs.length));
    let isGood = true;
    for (let r = 0; r < runs; r++) {
      const ends = alive.map((rank) => rank.runs[r]?.outcome);
      const good = ends.filter((outcome) => outcome === '').length;
      if (good > 0 && good < alive.length && this.network?.isLost !== true)
        this.problems.push('the run ended well on some ranks and failed on others');
      if (good < this.ranks.length) isGood = false;
    }
    if (!isGood) return;
    const kernelFaults = this.c.faults.some((fault) => fault.kind === 'kernel');
    if (kernelFaults && this.ranks.some((rank) => rank.backend.faults.injected > 0))
      this.problems.push('a kernel failed, but the run succeeded');
    if (this.c.steps !== undefined) return;
    let ran = 0;
    for (const n of this.oracle.executed) if (n !== undefined) ran++;
    if (ran < this.c.tasks.length) this.problems.push(`${ran} of ${this.c.tasks.length} tasks ran`);
  }

  /** All ranks got the same from each read. */
  private checkAnswers(): void {
    const [first, ...others] = this.alive;
    for (const other of others) {
      for (const [i, { got, datum }] of first.asked.entries()) {
        const there = other.asked[i]?.got;
        if (got !== undefined && there !== undefined && got !== there)
          this.problems.push(
            `read() of d${datum} gives ${this.oracle.describe(got)} on rank ${first.rank}, ${this.oracle.describe(there)} on rank ${other.rank}`,
          );
      }
    }
  }

  private checkStall(): void {
    if (this.hangs) return;
    const lines = this.alive.map(
      ({ rank, engine, backend }) =>
        `rank ${rank}:\n${engine.explain()}\n${backend.describeQueues()}`,
    );
    this.problems.push(`nothing moves any more:\n${lines.join('\n')}`);
  }

  /** Lets everything under way end. */
  private async drain(): Promise<void> {
    for (let i = 0; i < 10_000; i++) {
      while (this.world.step());
      await undefined;
      if (!this.alive.some((rank) => rank.isBusy)) return;
      for (const rank of this.alive) rank.engine.pump();
    }
  }

  private async closeAll(): Promise<void> {
    const { alive } = this;
    for (const rank of alive) rank.closeData();
    await this.drive(() => this.alive.every((rank) => rank.engine.tasks.live === 0));
    if (this.stalled) {
      this.checkStall();
      return;
    }
    await this.drain();
    for (const rank of alive) rank.engine.pump();
    await this.drain();
    for (const rank of alive) checkLeft(rank);
    let open = alive.length;
    for (const rank of alive) {
      rank.runtime.close().then(
        () => open--,
        (error: unknown) => {
          open--;
          rank.problems.push(`closing: ${String(error)}`);
        },
      );
    }
    await this.drive(() => open === 0);
    if (this.stalled) this.checkStall();
  }
}

/** Plays a case. Never rejects: violations are in `problems`. */
export async function play(c: SimulatedCase): Promise<Played> {
  try {
    return await new Player(c).play();
  } catch (error) {
    const text = isError(error) && error.stack !== undefined ? error.stack : describeThrown(error);
    return {
      problems: [text],
      outcome: 'threw',
      ranks: c.ranks ?? 1,
      tasks: 0,
      events: 0,
      checks: 0,
      evictions: 0,
      spills: 0,
      messages: 0,
      transfers: 0,
      injected: 0,
      nanoseconds: 0,
    };
  }
}
