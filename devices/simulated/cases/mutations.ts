// Proves that every guard of the engine is needed: switches one off and plays cases until a violation appears.
// A guard whose absence causes no violation is either not tested or not needed.
import { type Guards, guards } from '../../guards.js';
import { type CaseOptions, randomCase, type SimulatedCase } from './case.js';
import { directedCases } from './directed-cases.js';
import { play } from './play.js';
import { guardNames, setGuard } from './set-guard.js';

/** The subject of a guard, and the cases in which its absence shows. */
interface Mutation {
  readonly guard: keyof Guards;
  /** Hazards of the design that it answers. */
  readonly hazard: string;
  readonly faults?: boolean;
  readonly cases?: CaseOptions;
  /** The options to begin with, if only an unusual case shows the absence. */
  readonly firstSeed?: number;
  /** The case to play, if no random one shows the absence. */
  readonly directed?: SimulatedCase;
  /** Without it the engine may loop for ever: only in a process of its own. */
  readonly endless?: boolean;
}

const H3 = 'H3 edges of peer copies';
const H5 = 'H5 overwritten or evicted while in use';
const H12 = 'H12 partial allocation and cancel';
const H15 = 'H15 errors spread';

/** A guard that is not here has a test of its own (scripts/lib/guard-tests.mjs). */
const about: Readonly<Partial<Record<keyof Guards, Omit<Mutation, 'guard'>>>> = {
  execReadAfterWrite: { hazard: H3 },
  execWriteAfterWrite: { hazard: H3 },
  execWriteAfterRead: { hazard: H5 },
  execControl: { hazard: 'control order' },
  execRegistersRead: { hazard: H5 },
  execRegistersWrite: { hazard: H3 },
  bodyReadAfterWrite: { hazard: 'H4 used before it is finished' },
  announceWritten: { hazard: H15, faults: true, cases: { mixed: true, ranks: 2 } },
  bodyWriteAfterRead: { hazard: H5 },
  bodyControl: { hazard: 'control order' },
  writeInvalidates: { hazard: 'H17 stale copies' },
  copyReadAfterWrite: { hazard: H3 },
  copyWriteAfterWrite: { hazard: H3 },
  copyWriteAfterRead: { hazard: H5 },
  copyRegistersRead: { hazard: H5 },
  copyRegistersWrite: { hazard: 'H2 consumer before arrival' },
  copyPins: { hazard: H5 },
  taskPins: { hazard: H5 },
  ticket: { hazard: H12 },
  allOrNothing: { hazard: H12 },
  pinBeforeTaking: { hazard: H12 },
  writeBack: { hazard: 'all dirty' },
  handOverOneWay: {
    hazard: 'progress',
    directed: directedCases.bothShort,
    endless: true,
  },
  compaction: { hazard: H12 },
  feasibility: { hazard: 'too large', cases: { tooLarge: true } },
  memoryWake: { hazard: 'progress' },
  slotWake: { hazard: 'progress' },
  eventWake: { hazard: 'progress' },
  poisonOutputs: { hazard: H15, faults: true },
  laterWriterDecides: { hazard: H15, cases: { mixed: true, ranks: 1 } },
  poisonBehindTransfer: { hazard: H15, faults: true },
  cancelQueued: { hazard: H12, faults: true },
  dropUnissued: { hazard: H12, faults: true, endless: true },
  dropKeepsOrder: { hazard: 'order across drops', cases: { mixed: true, ranks: 1 } },
  dropReleasesPins: { hazard: H12, faults: true },
  networkFlush: { hazard: 'H1 writes of the network', cases: { ranks: 2 } },
  receiveOnce: { hazard: 'H18 received twice', cases: { ranks: 2 } },
  offerRoom: { hazard: H12, cases: { tasks: 200 }, firstSeed: 900_200 },
  aheadRoom: { hazard: H12, cases: { ranks: 2 } },
  aheadHeld: { hazard: H12, directed: directedCases.aheadInTheWay },
  offerAside: { hazard: H12, directed: directedCases.offerInTheWay },
  hostOffers: {
    hazard: 'progress',
    faults: true,
    cases: { ranks: 3, shortHosts: true },
    firstSeed: 20_000,
  },
  movementWake: { hazard: 'progress', cases: { ranks: 3 }, firstSeed: 200 },
  messageRetry: { hazard: 'progress', cases: { ranks: 3 } },
  failTogether: { hazard: 'progress', cases: { ranks: 2, mixed: true } },
  oneEra: { hazard: 'runs that fail together', directed: directedCases.lateNews },
  tornReads: { hazard: 'progress', directed: directedCases.readBetweenEras },
  arrivalsInOrder: {
    hazard: 'progress',
    directed: directedCases.answerAhead,
  },
  arrivalCredit: {
    hazard: H12,
    directed: directedCases.lanesInTheWay,
  },
  lastLane: { hazard: H12, directed: directedCases.lastLaneTaken },
  laneOfDatum: { hazard: 'progress', cases: { ranks: 2 } },
  impliedByLast: { hazard: H3, cases: {} },
  sendAfterWrite: { hazard: 'H4 used before it is finished', cases: { ranks: 2 } },
  sendRegistersRead: { hazard: H5, cases: { ranks: 2 } },
  receiveAfterWrite: { hazard: H3, cases: { ranks: 2 } },
  receiveAfterRead: { hazard: H5, cases: { ranks: 2 } },
  receiveRegistersWrite: { hazard: 'H2 consumer before arrival', cases: { ranks: 2 } },
  longSendHeld: { hazard: H5, cases: { ranks: 2 } },
  longDeclined: {
    hazard: 'progress',
    faults: true,
    cases: { ranks: 3, gpus: 0, shortHosts: true },
    firstSeed: 290,
  },
  pullApart: {
    hazard: 'progress',
    cases: { ranks: 4, gpus: 0, pulls: true },
  },
  pullLast: { hazard: 'progress', directed: directedCases.pulledBeforeNamed },
  pullWhole: { hazard: 'progress', directed: directedCases.pulledInPart },
  pullPasses: { hazard: 'progress', directed: directedCases.pulledBehindHeld },
  laneWithdrawn: {
    hazard: 'progress',
    faults: true,
    cases: { ranks: 3, gpus: 0, mixed: true },
    firstSeed: 20_000,
  },
  readsRefused: {
    hazard: 'reads of failing runs',
    directed: directedCases.readOfFailedRun,
  },
  readsAfterLoss: {
    hazard: 'reads after the loss of a rank',
    directed: directedCases.readAfterLoss,
  },
};

export const mutations: readonly Mutation[] = guardNames.flatMap((guard) => {
  const row = about[guard];
  return row === undefined ? [] : [{ guard, ...row }];
});

/** The violation found without a guard. */
export interface MutationResult {
  readonly guard: string;
  readonly hazard: string;
  /** Cases played until the first violation; 0: there was none. */
  readonly seeds: number;
  /** The first violation. */
  readonly breaks: string;
}

/** Plays up to `most` cases without a guard. The guard is back in place afterwards. */
export async function mutate(
  mutation: Mutation,
  most = 2000,
  firstSeed: number = mutation.firstSeed ?? 1,
): Promise<MutationResult> {
  const { guard, hazard } = mutation;
  setGuard(guard, false);
  if (guards[guard]) throw new Error(`guard ${guard} could not be switched off`);
  try {
    const { directed, cases, faults = false } = mutation;
    for (let i = 0; i < (directed === undefined ? most : 1); i++) {
      const c = directed ?? randomCase(firstSeed + i, { ...cases, faults });
      const { problems } = await play(c);
      if (problems.length > 0) return { guard, hazard, seeds: i + 1, breaks: problems[0] };
    }
    return { guard, hazard, seeds: 0, breaks: '' };
  } finally {
    setGuard(guard, true);
  }
}
