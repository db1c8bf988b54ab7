// The guards of the engine, by name: every event edge, count, rule and wake-up whose absence would corrupt data or
// stop progress. They are constants: in a normal process the object is frozen and the compiler folds them away.
//
// A test proves for each guard that some test fails without it (`npm run test:mutations`, docs/reliability.md). Only a test
// can remove guards: its preload (test/support/removable-guards.ts) says so before this file is loaded. No environment
// variable, option or shipped file does.
// Invariant: all are true outside of such a test.

/** One switch per guard. */
export interface Guards {
  /** A kernel follows the event that wrote its inputs (stages/exec.ts). */
  execReadAfterWrite: boolean;
  /** A kernel follows the event that wrote the copies that it overwrites. */
  execWriteAfterWrite: boolean;
  /** A kernel follows the readers of the copies that it overwrites. */
  execWriteAfterRead: boolean;
  /** A kernel follows its control predecessors. */
  execControl: boolean;
  /** A kernel leaves its event with the copies that it reads. */
  execRegistersRead: boolean;
  /** A kernel leaves its event with the copies that it writes. */
  execRegistersWrite: boolean;
  /** A task that reads a part gets the newest version of it (scheduler/program/parts/versions.ts). */
  partTakesOver: boolean;
  /** A task that writes a part leaves no older version to the parts and the datum that overlap it. */
  partOverwrites: boolean;
  /** A part that did not get elements from another one keeps its other elements (scheduler/program/parts/losses.ts). */
  partMends: boolean;
  /** After a failed run all ranks forget which part has the newest version of what (scheduler/program/parts/on-ranks.ts). */
  partEras: boolean;
  /** A part counts from the first task or call that uses it, as on all ranks, and not from the call that makes it (scheduler/program/parts/view.ts). */
  partUses: boolean;
  /** A call on a part that some ranks may have made in the era before leaves no trace. */
  partsApart: boolean;
  /** Where a datum was before the first use of a part of it does not count: ranks may make the part at other times. */
  partsBegin: boolean;
  /** `restore` brings back no elements of which a closed part had newer ones. */
  partsSealed: boolean;
  /** A part that the program has is not closed with a plan that uses it (scheduler/program/parts/plan-parts.ts). */
  partHolds: boolean;
  /** A part that only plans have used is not in use any more once they are closed, also on ranks whose programs have it. */
  planPartUses: boolean;
  /** A part that no task uses ends no reduction when it is closed: other ranks may not have made it. */
  unusedParts: boolean;
  /** A reduction into a part ends before its elements are used by way of another part (scheduler/program/reductions.ts). */
  partsReduced: boolean;
  /** What a body has spawned on parts of a datum is in the datum before its task is over (scheduler/program/parts/body-parts.ts). */
  bodyPartsReturn: boolean;
  /** A JavaScript body waits until the writers of its data are over. */
  bodyReadAfterWrite: boolean;
  /** A version for a read leaves only after its writer is over, which may have failed (stages/exec.ts). */
  announceWritten: boolean;
  /** A JavaScript body waits for the readers of the copies that it overwrites. */
  bodyWriteAfterRead: boolean;
  /** An asynchronous body that has inserted tasks keeps no others from starting (scheduler/engine/script-bodies.ts). */
  parentSlots: boolean;
  /** A body gets space when all other bodies under way wait. */
  spaceForBodies: boolean;
  /** Successors keep their tasks when the window moves its rows (scheduler/engine/window.ts). */
  movedEdges: boolean;
  /** ... and so do completions of commands under way. */
  movedFlight: boolean;
  /** A JavaScript body waits for its control predecessors. */
  bodyControl: boolean;
  /** A write invalidates all other copies. */
  writeInvalidates: boolean;
  /** A copy between spaces follows the event that wrote its source (devices/memory/transfers.ts). */
  copyReadAfterWrite: boolean;
  /** ... the event that wrote its destination. */
  copyWriteAfterWrite: boolean;
  /** ... the readers of its destination. */
  copyWriteAfterRead: boolean;
  /** ... and leaves its event with its source as a reader. */
  copyRegistersRead: boolean;
  /** ... and with its destination as the writer. */
  copyRegistersWrite: boolean;
  /** Source and destination of a copy keep their memory until its end was seen. */
  copyPins: boolean;
  /** The data of a task keep their memory until its end was seen. */
  taskPins: boolean;
  /** No task overtakes the first in line for memory. */
  ticket: boolean;
  /** A task that gets only part of its memory returns that part. */
  allOrNothing: boolean;
  /** Making room never takes the task's own inputs. */
  pinBeforeTaking: boolean;
  /** Dirty copies are written back when clean ones do not suffice. */
  writeBack: boolean;
  /** Two devices short of memory do not hand a copy to and fro (devices/memory/eviction.ts). */
  handOverOneWay: boolean;
  /** Fragmented memory is emptied if nothing else can help. */
  compaction: boolean;
  /** Insertion refuses a task that fits no device. */
  feasibility: boolean;
  /** Memory that becomes free or evictable wakes the first in line. */
  memoryWake: boolean;
  /** Room in a ring wakes the tasks that wait for it. */
  slotWake: boolean;
  /** An event that happened wakes the bodies that wait for it. */
  eventWake: boolean;
  /** Data whose writer failed or was cancelled cannot be read. */
  poisonOutputs: boolean;
  /** The last writer of a datum in program order decides whether it has a value, not the last one seen to end. */
  laterWriterDecides: boolean;
  /** Results computed behind a failed transfer cannot be read. */
  poisonBehindTransfer: boolean;
  /** A failed run cancels the commands that its queues have not started. */
  cancelQueued: boolean;
  /** A failed run drops the tasks that were not issued. */
  dropUnissued: boolean;
  /** Successors of a dropped task follow its predecessors (scheduler/failure/dropped-tasks.ts). */
  dropKeepsOrder: boolean;
  /** A dropped task returns its pins. */
  dropReleasesPins: boolean;
  /** Writes of the network to a device are flushed before they count as arrived (devices/network/ways.ts). */
  networkFlush: boolean;
  /** One receive per version and rank (scheduler/ranks/plan.ts). */
  receiveOnce: boolean;
  /** Offers leave room for the largest task in one piece (stages/comm-in.ts). */
  offerRoom: boolean;
  /** Receives that have memory on a device before their announcement leave room for the largest task, wherever they lie. */
  aheadRoom: boolean;
  /** They count as offered: tasks before them do not wait for their end. */
  aheadHeld: boolean;
  /** A task for which offers leave no room lets others pass (stages/alloc.ts). */
  offerAside: boolean;
  /** No task waits for room on the host while offers of only copies hold all pinned memory (stages/alloc.ts). */
  hostOffers: boolean;
  /** Memory that a movement returns in the middle of a pass wakes the tasks that wait for it. */
  movementWake: boolean;
  /** Messages that found no room are tried again. */
  messageRetry: boolean;
  /** A task follows the tasks of other ranks in its `after` (scheduler/ranks/cross-rank-order.ts). */
  afterTokens: boolean;
  /** In a pruned run a task follows the tasks of its rank that it names in `after`. */
  prunedAfter: boolean;
  /** No rank waits in a tree for one that pulls its input (stages/exec-message.ts). */
  pullApart: boolean;
  /** A pulled receive waits for a lane behind no receive that is held (scheduler/ranks/rank-lanes.ts). */
  pullPasses: boolean;
  /** A task asks for its pulled inputs after the tasks that it follows without data (scheduler/ranks/plan.ts). */
  pullLast: boolean;
  /** Tasks with pulled inputs reserve no more than their share of a device (scheduler/ranks/pull-admission.ts). */
  pullShare: boolean;
  /** A group of pulled inputs is admitted when all of its tasks were inserted (scheduler/ranks/pull-admission.ts). */
  pullWhole: boolean;
  /** Ranks whose programs differ get an error (scheduler/ranks/agreement.ts). */
  graphDigest: boolean;
  /** Ranks that wait for each other in calls that differ get an error (scheduler/ranks/calls.ts). */
  callOrder: boolean;
  /** On several ranks runs that are open at the same time fail together (scheduler/ranks/agreement.ts). */
  failTogether: boolean;
  /** A run fails that ranks began in different eras (scheduler/ranks/ballots.ts). */
  oneEra: boolean;
  /**
   * A read that ranks make in different eras is rejected, and leaves no trace in the plans. So is one whose value had not
   * come when the era ended (scheduler/ranks/eras.ts).
   */
  tornReads: boolean;
  /** A read is rejected that a rank makes between a failure and its settlement. */
  readsRefused: boolean;
  /** A read is rejected that a rank makes after the loss of another one (scheduler/ranks/datum-calls.ts). */
  readsAfterLoss: boolean;
  /** A rank without work of its own answers the messages of others (scheduler/engine/idle.ts). */
  idleAnswers: boolean;
  /** A queue waits for an arrival only if all tasks before the receive are issued (scheduler/engine/arrivals.ts). */
  arrivalsInOrder: boolean;
  /** A send that is announced by several commands counts as issued after the last one (scheduler/engine/arrivals.ts). */
  offerWhole: boolean;
  /** Receives ahead leave room and a lane for the tasks before them (scheduler/ranks/rank-lanes.ts). */
  arrivalCredit: boolean;
  /** The last free lane goes to a receive that has its memory (scheduler/ranks/rank-lanes.ts). */
  lastLane: boolean;
  /** A receive stands in a lane behind receives of its own datum only (devices/network/receive-lanes.ts). */
  laneOfDatum: boolean;
  /** An event comes after what its queue has waited for only if it is the last of that queue (devices/submission.ts). */
  impliedByLast: boolean;
  /** ... and no queue of a GPU: a lost one ends its records without their waits. */
  impliedOnHost: boolean;
  /** A small version is sent after its writer is over (stages/exec-message.ts). */
  sendAfterWrite: boolean;
  /** ... and its send is a reader of the copy. */
  sendRegistersRead: boolean;
  /** A small version is received after the writer of the copy that it replaces ... */
  receiveAfterWrite: boolean;
  /** ... and after the readers of that copy; ... */
  receiveAfterRead: boolean;
  /** ... and its receive is the writer of the copy. */
  receiveRegistersWrite: boolean;
  /** An iteration of a plan follows the one before, command by command (scheduler/plans/waits.ts). */
  planLoop: boolean;
  /** A plan is repeated only if its data lie at the end where they lay at the begin (scheduler/plans/planner.ts). */
  planRepeats: boolean;
  /** A file gives a body no queue of kernels, and a kernel no queue of bodies: their numbers are not the same (scheduler/plans/read-decisions.ts). */
  planFileBodies: boolean;
  /** Data that a plan only reads stay on the devices that read them (scheduler/plans/planner.ts). */
  planStays: boolean;
  /** A task that a plan deals anew comes behind the readers of what it writes (scheduler/plans/deal-by-path.ts). */
  planDealt: boolean;
  /** The addresses in a plan are those of its data now (scheduler/plans/placement.ts). */
  planPlaces: boolean;
  /** What is inserted after a play starts after it, and the play after what was inserted before (scheduler/engine/exclusive.ts). */
  planAlone: boolean;
  /** A task behind a play that is dropped keeps its place until the play is over (scheduler/failure/dropped-tasks.ts). */
  planDropped: boolean;
  /** An aborted play ends before its last iteration (scheduler/plans/play.ts). */
  planCancel: boolean;
  /** Parameters of a play are not written over before their iteration is over (scheduler/plans/part-values.ts). */
  playRoom: boolean;
  /** The times of a played record are kept before its slot is used again (devices/simulated/machine/player.ts). */
  planTimes: boolean;
  /** On several ranks the commands of a plan have the order of the program (scheduler/plans/messages.ts). */
  planRankOrder: boolean;
  /** Messages of at most two iterations of a plan wait at a rank (scheduler/plans/messages.ts). */
  planRunAhead: boolean;
  /** Ranks compare times and condition of a play before they wait for each other (scheduler/plans/together.ts). */
  planSameLook: boolean;
  /** What a play that fails before its begin should have written has no value (scheduler/plans/together.ts). */
  failedPlayEnters: boolean;
  /** A run that is aborted before it begins has its number, by which other ranks learn of it (scheduler/program/run.ts). */
  abortNumbered: boolean;
  /** A datum of which some partial results were not combined is not restored (scheduler/failure/poison.ts). */
  partialSums: boolean;
  /** Partial results that no reduction uses have a share of the host memory at most (scheduler/program/partials.ts). */
  fewPartials: boolean;
  /** A restore that a rank refuses counts as a call of its program (scheduler/program/program-data.ts). */
  refusedRestores: boolean;
  /** A run that is over on all ranks is not cancelled on one of them (scheduler/program/run.ts). */
  overStaysOver: boolean;
  /** A run whose graph was refused has failed on all ranks, whatever their votes say (scheduler/ranks/ballots.ts). */
  refusalCounts: boolean;
  /** Ranks that load a plan compare their parts (scheduler/plans/load-together.ts). */
  planParts: boolean;
  /** Ranks play in place of a run if all of them do, with the same plan and the same parameters (scheduler/ranks/play-votes.ts). */
  allPlay: boolean;
  /** A rank that has never voted on such a play is asked (scheduler/ranks/play-votes.ts). */
  votesAsked: boolean;
  /** A rank that has voted for a play does nothing else before it knows the decision (scheduler/recognition/agreed-plays.ts). */
  votesBind: boolean;
  /** A plan is played in place of a run only if its insertions are those of the plan (scheduler/recognition/expectation.ts). */
  recognisedSame: boolean;
  /** A plan of data without parts is not played when they have parts (scheduler/recognition/recognition.ts). */
  recognisedWhole: boolean;
  /** Only a run that begins as one that has come before is recorded (scheduler/recognition/signatures.ts). */
  recordsOnEvidence: boolean;
  /** Recognition does nothing while it has cost more than it saves (scheduler/recognition/account.ts). */
  recognitionPauses: boolean;
  /** After some looks in a row that have found nothing, few runs are looked at (scheduler/recognition/attention.ts). */
  looksRarely: boolean;
  /** Plans that are not played for long are given up (scheduler/recognition/account.ts). */
  idlePlans: boolean;
  /** Insertions are not held back while the program computes (scheduler/recognition/held-run.ts, held-stretches.ts). */
  heldSoon: boolean;
  /** Nothing is held back beside a run whose insertions are not seen (scheduler/recognition/recognition.ts). */
  recognitionAlone: boolean;
  /** A stretch is planned when it is known how long its tasks take (scheduler/recognition/recognition.ts). */
  stretchMeasured: boolean;
  /** A play that is taken back gives back no memory of another play of its plan (scheduler/plans/play.ts). */
  withdrawsOwn: boolean;
  /** No task whose body may insert others is live when stretches are held back (scheduler/recognition/recognition.ts). */
  stretchBodies: boolean;
  /** Stretches that are held back or under way have no more tasks than the window (scheduler/recognition/held-stretches.ts). */
  stretchLimit: boolean;
  /** A copy that a lane has announced does not change until every receiver has it (scheduler/ranks/lane-movements.ts). */
  longSendHeld: boolean;
  /** A rank whose run has failed declines long versions at once: their senders may have no room (scheduler/ranks/early-ends.ts). */
  longDeclined: boolean;
  /** ... but not those of reads before the failed run (scheduler/ranks/early-ends.ts). */
  readsWanted: boolean;
  /** Sends and receives of an era that is over end before they are commanded (scheduler/ranks/lane-movements.ts). */
  eraEndsMovements: boolean;
  /** A receive for a `read` that gets no version is withdrawn from its lane (scheduler/ranks/lane-movements.ts). */
  laneWithdrawn: boolean;
  /** After a failure the queues are looked at until nothing changes (devices/native/progress.ts). */
  failuresSettle: boolean;
  /** A task that a body spawns does not start before the body has ended (scheduler/engine/joins.ts). */
  spawnedHeld: boolean;
  /** A task is over only when the tasks that it has spawned are. */
  joinWaits: boolean;
  /** A parent has failed if a task of its family has (H15). */
  familyFails: boolean;
  /** On several ranks `restore` brings no value from before a run that has succeeded (scheduler/failure/poison.ts, H17). */
  restoresLatest: boolean;
  /** A datum that is marked as without a value has one still for the tasks that were inserted before (stages/poison.ts). */
  marksInOrder: boolean;
  /** What begins or ends before such a mark says whether the tasks before the mark find a value (scheduler/failure/poison.ts). */
  endsBeforeMark: boolean;
  /** All ranks bring the data of a plan up to date in the same order (scheduler/program/parts/on-ranks.ts). */
  partsInOrder: boolean;
  /** Runs that begin alike and take turns are recognised, each of them (scheduler/recognition/recognition.ts). */
  straysNoted: boolean;
  /** What a family has written comes, in program order, before the tasks behind its parent (H15). */
  familyInPlace: boolean;
  /** Tasks that commute run one after the other (scheduler/engine/dependencies.ts). */
  commuteInTurn: boolean;
  /** What came behind a failed task among those that commute is found whatever its number (H15). */
  commuteFailures: boolean;
  /** A graph relies on the promise of a class up to its end only (scheduler/parameterised/promised-rounds.ts). */
  repeatsEnd: boolean;
  /** Insertions that come again are passed over where a stretch of the run begins only (scheduler/recognition/run-watch.ts). */
  againAtStretch: boolean;
  /** In a pruned graph the rank that wrote a version inserts the tasks that use it (scheduler/parameterised/pruning.ts). */
  prunedSends: boolean;
  /** In a pruned graph a rank inserts the tasks that overwrite what it has a copy of (H17). */
  prunedCopies: boolean;
  /** After a pruned graph every rank knows the writer of every datum. */
  prunedLast: boolean;
  /** After a graph of which ranks look at their own tasks only no rank has a copy (scheduler/ranks/local-rank.ts, H17). */
  localCopies: boolean;
  /** A function that the engine calls in the middle of a pass cannot call the runtime (scheduler/engine/callbacks.ts). */
  callbacks: boolean;
}

const all: Guards = {
  execReadAfterWrite: true,
  execWriteAfterWrite: true,
  execWriteAfterRead: true,
  execControl: true,
  execRegistersRead: true,
  execRegistersWrite: true,
  parentSlots: true,
  spaceForBodies: true,
  movedEdges: true,
  movedFlight: true,
  partTakesOver: true,
  partOverwrites: true,
  partMends: true,
  partEras: true,
  partUses: true,
  partsApart: true,
  partsBegin: true,
  partsSealed: true,
  partHolds: true,
  planPartUses: true,
  unusedParts: true,
  partsReduced: true,
  bodyPartsReturn: true,
  bodyReadAfterWrite: true,
  announceWritten: true,
  bodyWriteAfterRead: true,
  bodyControl: true,
  writeInvalidates: true,
  copyReadAfterWrite: true,
  copyWriteAfterWrite: true,
  copyWriteAfterRead: true,
  copyRegistersRead: true,
  copyRegistersWrite: true,
  copyPins: true,
  taskPins: true,
  ticket: true,
  allOrNothing: true,
  pinBeforeTaking: true,
  writeBack: true,
  handOverOneWay: true,
  compaction: true,
  feasibility: true,
  memoryWake: true,
  slotWake: true,
  eventWake: true,
  poisonOutputs: true,
  laterWriterDecides: true,
  poisonBehindTransfer: true,
  cancelQueued: true,
  dropUnissued: true,
  dropKeepsOrder: true,
  dropReleasesPins: true,
  networkFlush: true,
  receiveOnce: true,
  offerRoom: true,
  aheadRoom: true,
  aheadHeld: true,
  offerAside: true,
  hostOffers: true,
  movementWake: true,
  messageRetry: true,
  afterTokens: true,
  prunedAfter: true,
  pullApart: true,
  pullLast: true,
  pullPasses: true,
  pullShare: true,
  pullWhole: true,
  graphDigest: true,
  callOrder: true,
  failTogether: true,
  oneEra: true,
  tornReads: true,
  readsRefused: true,
  readsAfterLoss: true,
  idleAnswers: true,
  arrivalsInOrder: true,
  offerWhole: true,
  arrivalCredit: true,
  lastLane: true,
  laneOfDatum: true,
  impliedByLast: true,
  impliedOnHost: true,
  sendAfterWrite: true,
  sendRegistersRead: true,
  receiveAfterWrite: true,
  receiveAfterRead: true,
  receiveRegistersWrite: true,
  planLoop: true,
  planRepeats: true,
  planFileBodies: true,
  planStays: true,
  planDealt: true,
  stretchMeasured: true,
  planPlaces: true,
  planAlone: true,
  planDropped: true,
  planCancel: true,
  playRoom: true,
  planTimes: true,
  planRankOrder: true,
  planRunAhead: true,
  planSameLook: true,
  failedPlayEnters: true,
  abortNumbered: true,
  partialSums: true,
  fewPartials: true,
  refusedRestores: true,
  overStaysOver: true,
  refusalCounts: true,
  planParts: true,
  allPlay: true,
  votesAsked: true,
  votesBind: true,
  recognisedSame: true,
  recognisedWhole: true,
  recordsOnEvidence: true,
  recognitionPauses: true,
  looksRarely: true,
  idlePlans: true,
  heldSoon: true,
  recognitionAlone: true,
  withdrawsOwn: true,
  stretchBodies: true,
  stretchLimit: true,
  longSendHeld: true,
  longDeclined: true,
  readsWanted: true,
  eraEndsMovements: true,
  laneWithdrawn: true,
  failuresSettle: true,
  spawnedHeld: true,
  joinWaits: true,
  familyFails: true,
  restoresLatest: true,
  marksInOrder: true,
  endsBeforeMark: true,
  partsInOrder: true,
  straysNoted: true,
  familyInPlace: true,
  commuteInTurn: true,
  commuteFailures: true,
  repeatsEnd: true,
  againAtStretch: true,
  prunedSends: true,
  prunedCopies: true,
  prunedLast: true,
  localCopies: true,
  callbacks: true,
};

/** Set to true on `globalThis` by the preload of a test that removes guards. */
const REMOVABLE: symbol = Symbol.for('headrace.removable-guards');

export const guards: Readonly<Guards> =
  Reflect.get(globalThis, REMOVABLE) === true ? all : Object.freeze(all);
