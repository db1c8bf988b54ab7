// Sends and receives that the stages have: what ends them before their command is written, and what a failed run leaves.
import '../support/removable-guards.js';
import { afterEach, describe, expect, it } from 'vitest';
import { HeadraceError } from '../../devices/errors.js';
import { type DatumId, HOST, NO_QUEUE } from '../../devices/handles.js';
import type { NetworkDevice } from '../../devices/network/device.js';
import { NetOutcome } from '../../devices/network/port.js';
import { setGuard } from '../../devices/simulated/cases/set-guard.js';
import type { RankHost } from '../../scheduler/ranks/host.js';
import { LaneMovements } from '../../scheduler/ranks/lane-movements.js';
import { type Movement, Movements } from '../../scheduler/ranks/movements.js';
import { RankLanes } from '../../scheduler/ranks/rank-lanes.js';
import type { Refusals } from '../../scheduler/ranks/refusals.js';
import type { NetworkCredits } from '../../stages/comm-in.js';
import { execMessage } from '../../stages/exec-message.js';
import { Outcome } from '../../stages/stage.js';
import { Execution, NetworkRole, TaskStage } from '../../stages/task-table.js';
import { PartsState } from '../support/parts-state.js';

const LANES = 8;

interface World {
  readonly state: PartsState;
  readonly movements: Movements;
  readonly lanes: LaneMovements;
  readonly rankLanes: RankLanes;
  /** The ends of movements, in order: 'dropped 3', 'failed 3 ERR_PEER_FAILED', 'ended 3'. */
  readonly ends: string[];
  /** A movement of the runtime's own run that the stages have; `run` names another run. */
  handedOver(role: number, run?: number, isAnnounced?: boolean): Movement;
}

function setUp(isShort = true, window = 128): World {
  const state = new PartsState({ lanes: LANES, window });
  const movements = new Movements();
  const ends: string[] = [];
  const host = Object.assign(state, {
    arrivals: { isReached: () => true },
    fail: (row: number, error: HeadraceError) => void ends.push(`failed ${row} ${error.code}`),
    ended: (row: number) => void ends.push(`ended ${row}`),
    dropTask: (row: number) => void ends.push(`dropped ${row}`),
  }) as unknown as RankHost;
  const credits = {
    floor: [0],
    limit: [Number.POSITIVE_INFINITY],
    inFlight: [0],
  } as unknown as NetworkCredits;
  const port = { hostOnly: true, commanded: () => {}, withdraw: () => {} };
  const rankLanes = new RankLanes(host, credits, () => isShort, port);
  const lanes = new LaneMovements({
    engine: host,
    device: { port } as unknown as NetworkDevice,
    movements,
    rank: 0,
    credits,
    data: { closeSend: () => {}, owner: new Int16Array(100) },
    rankLanes,
    refusals: {
      of: () => undefined,
      leftBehind: () => new HeadraceError('ERR_DATUM_POISONED', 'left behind'),
      told: () => new HeadraceError('ERR_PEER_FAILED', 'told'),
      note: () => {},
    } as unknown as Refusals,
    traffic: {
      tell: () => {},
      countSent: () => {},
    } as unknown as ConstructorParameters<typeof LaneMovements>[0]['traffic'],
    loss: { error: undefined },
  });
  const handedOver = (role: number, run = 0, isAnnounced = false): Movement => {
    const d: DatumId = state.datum(1, 0);
    const isReceive = role === NetworkRole.receive;
    const movement = movements.add({
      role,
      d,
      gid: 1,
      run,
      origin: 1,
      key: d,
      call: -1,
      wanted: HOST,
      receive: undefined,
      pull: undefined,
    });
    const row = state.task({
      [isReceive ? 'writes' : 'reads']: [d],
      stage: TaskStage.alloc,
      network: role,
      params: [movement.index],
    });
    movement.task = state.tasks.idOf(row);
    for (const rank of role === NetworkRole.send ? [1, 2] : [])
      movements.addDestination(movement, rank, 0, false);
    const isAhead = isReceive && !isAnnounced && rankLanes.begins(row);
    const lane = isAhead ? rankLanes.laneAhead(row) : NO_QUEUE;
    const hasLane = lane !== NO_QUEUE;
    if (isReceive) state.tasks.target[row] = hasLane ? lane : rankLanes.anyLane;
    else state.tasks.target[row] = rankLanes.sendLane();
    lanes.handOver(row, movement).hasLane = hasLane;
    return movement;
  };
  return { state, movements, lanes, rankLanes, ends, handedOver };
}

const rowOf = ({ state }: World, { task }: Movement): number => task & state.tasks.mask;

/** Two of an earlier era that wait in the stages, one of them a receive; a commanded one; and one of the new era. */
function overAnEra(world: World): { receive: number; send: number } {
  const { state, movements, lanes, handedOver } = world;
  const receive = rowOf(world, handedOver(NetworkRole.receive));
  const send = rowOf(world, handedOver(NetworkRole.send));
  const commanded = rowOf(world, handedOver(NetworkRole.send));
  state.tasks.stage[commanded] = TaskStage.exec;
  expect(execMessage(state.x, commanded)).toBe(Outcome.issued);
  movements.beginEra(1);
  handedOver(NetworkRole.send);
  lanes.endEra();
  return { receive, send };
}

afterEach(() => setGuard('eraEndsMovements', true));

describe('a send or receive that waits in a stage', () => {
  it('keeps its way when the window grows, and rows change', () => {
    const world = setUp(true, 8);
    const { state, handedOver } = world;
    const { tasks } = state;
    for (let i = 0; i < 11; i++) {
      state.task({ stage: TaskStage.done });
      tasks.retireHead();
    }
    const sends = [handedOver(NetworkRole.send), handedOver(NetworkRole.send)];
    const rows = sends.map((send) => rowOf(world, send));
    while (tasks.mask === 7) if (!tasks.extend(1, 1)) state.task();
    expect(sends.map((send) => rowOf(world, send))).not.toEqual(rows);
    for (const send of sends) {
      const row = rowOf(world, send);
      tasks.stage[row] = TaskStage.exec;
      expect(execMessage(state.x, row)).toBe(Outcome.issued);
      expect(send.parcel?.next).toBe(4);
    }
  });

  it('ends with its era; those that are commanded, or of the new era, go on', () => {
    const world = setUp();
    const { receive, send } = overAnEra(world);
    expect(world.ends).toEqual([`failed ${receive} ERR_DATUM_POISONED`, `dropped ${send}`]);
  });

  it('without eraEndsMovements: is commanded in an era that is over', () => {
    setGuard('eraEndsMovements', false);
    const world = setUp();
    const { send } = overAnEra(world);
    expect(world.ends).toEqual([]);
    world.state.tasks.stage[send] = TaskStage.exec;
    expect(execMessage(world.state.x, send)).toBe(Outcome.issued);
  });

  it('goes on when its era ends, if it passes on what it has announced to ranks that it does not know', () => {
    const world = setUp(false);
    const { state, movements, lanes, ends } = world;
    const forward = world.handedOver(NetworkRole.forward);
    const row = rowOf(world, forward);
    state.tasks.stage[row] = TaskStage.exec;
    expect(execMessage(state.x, row)).toBe(Outcome.issued);
    movements.beginEra(1);
    lanes.endEra();
    lanes.failSends(new HeadraceError('ERR_PEER_LOST', 'gone'));
    expect(ends).toEqual([]);
    lanes.departed(forward.index, NetOutcome.ok, 'direct', { start: 0, end: 1 });
    expect(ends).toEqual([`ended ${row}`]);
  });

  it('ends when a rank says that it has no version', () => {
    const world = setUp();
    const receive = world.handedOver(NetworkRole.receive);
    world.lanes.refused(receive);
    expect(world.ends).toEqual([`failed ${rowOf(world, receive)} ERR_PEER_FAILED`]);
    expect(receive.withdrawn).toBe(true);
  });

  it('ends when a rank is lost, if its run cannot fail with that rank', () => {
    const world = setUp();
    const own = world.handedOver(NetworkRole.send);
    world.handedOver(NetworkRole.send, 1);
    world.lanes.failSends(new HeadraceError('ERR_PEER_LOST', 'gone'));
    expect(world.ends).toEqual([`failed ${rowOf(world, own)} ERR_PEER_LOST`]);
  });
});

describe('a send whose run has failed', () => {
  it('writes no further command, and ends with those that it has written', () => {
    const world = setUp(false);
    const { state, lanes, ends } = world;
    const send = world.handedOver(NetworkRole.send, 1);
    const row = rowOf(world, send);
    state.tasks.stage[row] = TaskStage.exec;
    const parcel = send.parcel as NonNullable<Movement['parcel']>;
    // One of its two commands is written, and the ring has no room for the other.
    parcel.next = 2;
    parcel.open = 1;
    state.tasks.execution[row] = Execution.movement;
    lanes.outlives(row, send);
    const commands = state.manual.commands.length;
    expect(execMessage(state.x, row)).toBe(Outcome.running);
    expect(state.manual.commands.length).toBe(commands);
    expect(ends).toEqual([]);
    lanes.departed(send.index, 0, 'direct', { start: 0, end: 0 });
    expect(ends).toEqual([`ended ${row}`]);
  });

  it('ends at once when all ranks have what it has announced', () => {
    const world = setUp(false);
    const send = world.handedOver(NetworkRole.send, 1);
    (send.parcel as NonNullable<Movement['parcel']>).next = 2;
    world.lanes.outlives(rowOf(world, send), send);
    expect(world.ends).toEqual([`ended ${rowOf(world, send)}`]);
  });
});

describe('an announced receive', () => {
  it('takes a lane in stage exec, and stands in line when there is none', () => {
    const world = setUp(false);
    const { state, rankLanes } = world;
    const ahead = Array.from({ length: LANES - 2 }, () => world.handedOver(NetworkRole.receive));
    // The last of these takes its lane after its memory.
    const last = rowOf(world, ahead[LANES - 3]);
    state.tasks.stage[last] = TaskStage.exec;
    expect(execMessage(state.x, last)).toBe(Outcome.issued);
    const announced = world.handedOver(NetworkRole.receive, 0, true);
    const row = rowOf(world, announced);
    state.tasks.stage[row] = TaskStage.exec;
    expect(execMessage(state.x, row)).toBe(Outcome.running);
    expect(rankLanes.waitLists(announced.task)).toBe(1);
    expect(rankLanes.next()).toBe(-1);
    rankLanes.ended(rowOf(world, ahead[2]), state.tasks.target[rowOf(world, ahead[2])], true);
    expect(rankLanes.next()).toBe(row);
    expect(execMessage(state.x, row)).toBe(Outcome.issued);
    expect(state.tasks.queue[row]).toBe(state.tasks.target[rowOf(world, ahead[2])]);
  });
});
