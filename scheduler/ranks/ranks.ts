// Many ranks, one program: every rank inserts the same tasks. This file makes the parts of a rank and joins them: it
// answers the engine's questions, hands the network's news to the part that they are for, and links the parts with each
// other.
//
// plan.ts decides which tasks run here and which data move, and turns each movement into a task of its own.
// movement-tasks.ts runs these tasks: sends.ts and receives.ts have the two directions, lane-movements.ts their
// commands. early-ends.ts and loss.ts end movements that cannot be completed.

import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import type { DatumId } from '../../devices/handles.js';
import { NetworkDevice } from '../../devices/network/device.js';
import { MAX_RANKS, type NoVersion } from '../../devices/network/keys.js';
import type {
  NetworkListener,
  NetworkOptions,
  NetworkTimes,
  NetworkWay,
} from '../../devices/network/listener.js';
import type { AnnouncedPlace, NetworkPort } from '../../devices/network/port.js';
import { Wire, type WireRecord } from '../../devices/network/wire.js';
import { NetworkCredits } from '../../stages/comm-in.js';
import type { NetworkReport, Remote } from '../engine/remote.js';
import type { RunState } from '../engine/run-state.js';
import { RankRuns } from './agreement.js';
import { RankCalls } from './calls.js';
import { RankClocks } from './clocks.js';
import { RankAfter } from './cross-rank-order.js';
import { DatumCalls } from './datum-calls.js';
import { EarlyEnds } from './early-ends.js';
import type { RankHost } from './host.js';
import { InsertionCopies } from './insertion.js';
import { LaneMovements } from './lane-movements.js';
import type { RankLinks } from './links.js';
import { RankLoss } from './loss.js';
import { MovementTasks } from './movement-tasks.js';
import { Movements } from './movements.js';
import { RankPlan } from './plan.js';
import { PlayVotes } from './play-votes.js';
import { RankPulls } from './pull-admission.js';
import { RankLanes } from './rank-lanes.js';
import { Receives } from './receives.js';
import { Refusals } from './refusals.js';
import { Sends } from './sends.js';
import { RankTraffic } from './traffic.js';

export class Ranks implements NetworkListener, RankLinks, Remote {
  readonly rank: number;
  readonly size: number;
  readonly device: NetworkDevice;
  readonly credits: NetworkCredits;
  readonly runs: RankRuns;
  readonly calls: RankCalls;
  readonly votes: PlayVotes;
  readonly clocks: RankClocks;
  readonly plan: RankPlan;
  readonly after: RankAfter;
  readonly copies: InsertionCopies = new InsertionCopies();
  readonly pulls: RankPulls;
  /** The tasks of movements, as the engine runs them. */
  readonly tasks: MovementTasks;
  /** The program's calls on data. */
  readonly datumCalls: DatumCalls;
  private readonly engine: RankHost;
  private readonly movements: Movements = new Movements();
  private readonly traffic: RankTraffic;
  private readonly receives: Receives;
  private readonly lanes: LaneMovements;
  private readonly earlyEnds: EarlyEnds;
  private readonly loss: RankLoss;
  /**
   * Plays that all ranks have begun together in this era (scheduler/plans/together.ts). A play that not all ranks count
   * fails, and so the era ends.
   */
  plays = 0;
  /** A failed run is settled, and every datum has its owner's value again. */
  whenEraBegins: () => void = () => {};
  /** A run has failed on this rank, or on another one. */
  whenRunFails: (run: RunState) => void = () => {};
  /** The last value that the port received: whether this rank waits for no other. */
  private isQuiet = false;

  constructor(engine: RankHost, port: NetworkPort, options: NetworkOptions) {
    if (port.size > MAX_RANKS) {
      throw new HeadraceError(
        'ERR_OPTION',
        `at most ${MAX_RANKS} ranks are supported, not ${port.size}`,
      );
    }
    const { movements } = this;
    const { rank, size } = port;
    this.engine = engine;
    this.rank = rank;
    this.size = size;
    const device = new NetworkDevice(port, engine.backend.spaces, options, this);
    this.device = device;
    const credits = new NetworkCredits(engine.x);
    this.credits = credits;
    const isInline = (bytes: number): boolean => device.isInline(bytes);
    const rankLanes = new RankLanes(engine, credits, isInline, port);
    this.votes = new PlayVotes(engine, this);
    const runs = new RankRuns(engine, this);
    this.runs = runs;
    this.clocks = new RankClocks(engine, this);
    const pulls = new RankPulls(engine, engine.x, (receive) => this.receives.begin(receive));
    this.pulls = pulls;
    const plan = new RankPlan(
      { engine, movements, pulls, runs },
      {
        rank,
        size,
        treeFrom: options.treeFrom,
        isInline,
        largest: credits.floor,
      },
    );
    this.plan = plan;
    this.after = new RankAfter(engine, plan, runs, rank);
    const { data } = plan;
    const loss = new RankLoss({
      engine,
      movements,
      device,
      runs,
      receives: () => this.receives,
      lanes: () => this.lanes,
    });
    this.loss = loss;
    const traffic = new RankTraffic(engine);
    this.traffic = traffic;
    const refusals = new Refusals(engine, movements, runs);
    const shared = { engine, device, movements, data, rankLanes, refusals, traffic, loss };
    const lanes = new LaneMovements({ ...shared, rank, credits });
    const sends = new Sends({ ...shared, credits, lanes });
    this.lanes = lanes;
    const receives = new Receives({ ...shared, credits, pulls, lanes, runs });
    this.receives = receives;
    this.tasks = new MovementTasks({ ...shared, sends, receives, lanes, pulls });
    this.earlyEnds = new EarlyEnds({ ...shared, lanes, plan, pulls, receives, runs });
    const calls = new RankCalls(engine, this, data);
    this.calls = calls;
    this.datumCalls = new DatumCalls({ ...shared, rank, credits, plan, runs, calls });
    engine.backend.alsoDue = () => port.due();
  }

  // --- The engine's questions ---------------------------------------------------------------------------------------

  ownerOf(d: DatumId): number {
    return this.plan.data.owner[d];
  }

  /** Every thread has a core, and a message from another rank may come at any moment. */
  get maySpin(): boolean {
    return !this.device.port.crowded && this.expecting;
  }

  /** The engine has something to wait for. */
  get expecting(): boolean {
    const { movements, runs, calls } = this;
    return (
      movements.live > 0 || runs.open > 0 || runs.eras.isOpen || calls.leaving || this.mustRetry
    );
  }

  /** Messages that found no room must be sent again; nothing wakes the engine when room appears. */
  get mustRetry(): boolean {
    return this.device.wire.unsent > 0 && this.lostError === undefined && guards.messageRetry;
  }

  lanesChanged(): void {
    this.device.port.commanded();
  }

  poll(): boolean {
    return this.device.poll();
  }

  publish(): void {
    this.device.publish();
    if (this.isQuiet === !this.expecting) return;
    this.isQuiet = !this.isQuiet;
    this.device.port.setQuiet(this.isQuiet);
  }

  blocks(): void {
    this.calls.blocks();
  }

  runFailed(run: RunState, error: HeadraceError): void {
    this.earlyEnds.runFailed(run, error);
    this.whenRunFails(run);
  }

  runEnded(run: RunState): void {
    this.runs.ended(run);
  }

  waits(): string[] {
    const lines: string[] = [];
    if (this.calls.leaving)
      lines.push('this rank has closed its runtime and waits for the others to close theirs');
    if (this.runs.open > 0) lines.push(`${this.runs.open} of the runs have not ended on all ranks`);
    return lines;
  }

  /** Totals so far. */
  report(): NetworkReport {
    const { messagesSent, messagesReceived, flushes } = this.device.port.counters();
    return {
      rank: this.rank,
      ranks: this.size,
      messagesSent,
      messagesReceived,
      ...this.traffic.figures,
      ...this.plan.figures,
      spilledReceives: this.credits.spilled,
      flushes,
    };
  }

  // --- The network's news -------------------------------------------------------------------------------------------

  refused(news: NoVersion): void {
    this.receives.refused(news);
  }

  departed(number: number, outcome: number, way: NetworkWay, times: NetworkTimes): void {
    this.lanes.departed(number, outcome, way, times);
  }

  came(number: number, from: AnnouncedPlace): void {
    this.receives.came(number, from);
  }

  control(from: number, record: WireRecord): void {
    if (record.kind === Wire.clock || record.kind === Wire.time) this.clocks.take(from, record);
    else if (record.kind >= Wire.waiting && record.kind <= Wire.left) this.calls.take(from, record);
    else if (record.kind >= Wire.wouldPlay) this.votes.take(from, record);
    else this.runs.take(from, record);
  }

  lost(rank: number): void {
    this.loss.lost(rank);
    this.calls.lost();
  }

  // --- Links between the parts --------------------------------------------------------------------------------------

  get lostError(): HeadraceError | undefined {
    return this.loss.error;
  }

  get isLost(): boolean {
    return this.loss.isLost;
  }

  breaksOff(error: HeadraceError): boolean {
    return this.loss.breaksOff(error);
  }

  failLaterReads(): void {
    this.earlyEnds.failLaterReads();
  }

  beginEra(era: number): void {
    this.plays = 0;
    this.earlyEnds.beginEra(era);
    this.whenEraBegins();
  }

  dropTorn(first: number): void {
    this.earlyEnds.dropTorn(first);
  }

  /** Joins all ranks; afterwards no rank needs anything from this one. */
  async close(): Promise<void> {
    await this.calls.leaves();
    this.calls.stop();
    this.engine.backend.alsoDue = undefined;
    this.device.publish();
    await this.device.port.close();
  }
}
