// Guards that no simulated case needs, because their code is native or they concern real ranks. Each has a test of its
// own, named `without <guard>: ...`, that switches the guard off and detects the damage.
// Invariant: every guard is either in devices/simulated/cases/mutations.ts or here (test/simulated/mutations.test.ts).

const ranks = { project: 'mpi', file: 'test/mpi/guards.test.ts' };
const native = { project: 'native-gpu', file: 'test/native-gpu/guards.test.ts' };
const growth = { project: 'unit', file: 'test/simulated/growth.test.ts' };
const plans = { project: 'unit', file: 'test/simulated/plans.test.ts' };
const stretches = { project: 'unit', file: 'test/simulated/stretches.test.ts' };
const recognised = { project: 'unit', file: 'test/simulated/recognition.test.ts' };
const agreedPlays = { project: 'unit', file: 'test/simulated/rank-recognition.test.ts' };
const recognitionCosts = { project: 'unit', file: 'test/simulated/recognition-cost.test.ts' };
const planScriptFiles = { project: 'unit', file: 'test/simulated/plan-script-files.test.ts' };
const balance = { project: 'unit', file: 'test/simulated/plan-balance.test.ts' };
const joins = { project: 'unit', file: 'test/scheduler/joins.test.ts' };
const commuting = { project: 'unit', file: 'test/scheduler/commute.test.ts' };
const parts = { project: 'unit', file: 'test/scheduler/parts.test.ts' };
const partFailures = { project: 'unit', file: 'test/scheduler/part-failures.test.ts' };
const bodyParts = { project: 'unit', file: 'test/scheduler/body-parts.test.ts' };
const callbacks = { project: 'unit', file: 'test/scheduler/callbacks.test.ts' };
const reducedParts = { project: 'unit', file: 'test/scheduler/reduced-parts.test.ts' };
const planHeldParts = { project: 'unit', file: 'test/scheduler/plan-held-parts.test.ts' };
const endedParts = { project: 'unit', file: 'test/scheduler/ended-parts.test.ts' };
const partRanks = { project: 'unit', file: 'test/scheduler/parts-ranks.test.ts' };
const restores = { project: 'unit', file: 'test/scheduler/restore-ranks.test.ts' };
const localTasks = { project: 'unit', file: 'test/simulated/local-tasks.test.ts' };
const earlyReads = { project: 'unit', file: 'test/scheduler/read-before-failure.test.ts' };
const arrivals = { project: 'unit', file: 'test/scheduler/arrivals.test.ts' };
const laneMovements = { project: 'unit', file: 'test/scheduler/lane-movements.test.ts' };
const idle = { project: 'unit', file: 'test/scheduler/idle.test.ts' };
const localControls = { project: 'unit', file: 'test/simulated/local-controls.test.ts' };
const pruned = { project: 'unit', file: 'test/simulated/parameterised.test.ts' };
const H6 = 'H6 handles of memory';
const H8 = 'H8 waiting for kernels';

export const guardTests = [
  {
    ...arrivals,
    guard: 'offerWhole',
    hazard: 'progress',
    breaks:
      'what waits for an arrival stands in a lane before the other commands of an earlier send',
  },
  {
    ...earlyReads,
    guard: 'readsWanted',
    hazard: 'progress',
    breaks:
      'a read from before a failed run, which the program of that run awaits, gets no version',
  },
  {
    ...laneMovements,
    guard: 'eraEndsMovements',
    hazard: 'progress',
    breaks: 'a version of an era that is over is sent to ranks that have begun the next one',
  },
  {
    ...ranks,
    guard: 'afterTokens',
    hazard: 'control order',
    breaks: 'a task starts before one of another rank that it follows',
  },
  {
    ...localControls,
    guard: 'prunedAfter',
    hazard: 'control order',
    breaks: 'a task of a pruned run starts before one of the same rank that it follows',
  },
  {
    ...ranks,
    guard: 'pullShare',
    hazard: 'progress',
    breaks: 'pulled inputs reserve more than their share of a device',
  },
  {
    ...ranks,
    guard: 'graphDigest',
    hazard: 'programs that differ',
    breaks: 'ranks whose programs differ are not told',
  },
  {
    ...ranks,
    guard: 'callOrder',
    hazard: 'programs that differ',
    breaks: 'ranks that make other calls than the others are not told',
  },
  {
    ...idle,
    guard: 'idleAnswers',
    hazard: 'progress',
    breaks: 'a message of another rank does not wake a rank without work',
  },
  {
    ...growth,
    guard: 'movedEdges',
    hazard: 'the window grows',
    breaks: 'a successor of a task that was moved is never released',
  },
  {
    ...growth,
    guard: 'movedFlight',
    hazard: 'the window grows',
    breaks: 'a completion is taken for that of another task',
  },
  {
    ...growth,
    guard: 'parentSlots',
    hazard: 'progress',
    breaks: 'bodies that await what they inserted keep it from starting',
  },
  {
    ...growth,
    guard: 'spaceForBodies',
    hazard: 'progress',
    breaks: 'bodies await space that only they can make',
  },
  {
    ...plans,
    guard: 'planLoop',
    hazard: 'H5 overwritten or evicted while in use',
    breaks: 'an iteration overtakes the one before',
  },
  {
    ...plans,
    guard: 'planRepeats',
    hazard: 'H17 stale copies',
    breaks: 'an iteration begins where its data are not',
  },
  {
    project: 'unit',
    file: 'test/simulated/plan-stays.test.ts',
    guard: 'planStays',
    hazard: 'overhead',
    breaks: 'data that a plan only reads come from the host in each iteration',
  },
  {
    ...plans,
    guard: 'planDealt',
    hazard: 'H5 overwritten or evicted while in use',
    breaks: 'a task overwrites what another one is still to read',
  },
  {
    ...plans,
    guard: 'planPlaces',
    hazard: 'H5 overwritten or evicted while in use',
    breaks: 'a plan uses the memory of other data',
  },
  {
    ...joins,
    guard: 'spawnedHeld',
    hazard: 'H4 used before it is finished',
    breaks: 'a spawned task uses the data of a body that has not ended',
  },
  {
    ...joins,
    guard: 'joinWaits',
    hazard: 'H2 consumer before arrival',
    breaks: 'a task behind a parent misses what it has spawned',
  },
  {
    ...joins,
    guard: 'familyFails',
    hazard: 'H15 errors spread',
    breaks: 'a datum keeps what a part of a failed family has written',
  },
  {
    ...parts,
    guard: 'partTakesOver',
    hazard: 'H17 stale copies',
    breaks: 'a task reads a part as it was before a task wrote another one that overlaps it',
  },
  {
    ...parts,
    guard: 'partOverwrites',
    hazard: 'H17 stale copies',
    breaks: 'a part keeps its older version when an overlapping one is written',
  },
  {
    ...partFailures,
    guard: 'partMends',
    hazard: 'H15 errors spread',
    breaks: 'elements lose their value, because others of a datum that was read had none',
  },
  {
    ...partRanks,
    guard: 'partEras',
    hazard: 'H17 stale copies',
    breaks:
      'ranks disagree about which part is newest, because a failed run ended at other tasks on each of them',
  },
  {
    ...partRanks,
    guard: 'partsBegin',
    hazard: 'programs that differ',
    breaks: 'ranks infer other copies than those that have made a part later',
  },
  {
    ...partRanks,
    guard: 'partUses',
    hazard: 'programs that differ',
    breaks: 'ranks infer different copies, because some have made a part in a failed run',
  },
  {
    ...bodyParts,
    guard: 'bodyPartsReturn',
    hazard: 'H2 consumer before arrival',
    breaks: 'a task behind a parent misses what its family has written by way of parts',
  },
  {
    ...partRanks,
    guard: 'partsApart',
    hazard: 'progress',
    breaks:
      'a read that ranks made before and after the end of a failed run leaves them with other parts',
  },
  {
    ...callbacks,
    guard: 'callbacks',
    hazard: 'progress',
    breaks:
      'a function that the engine calls in a pass inserts tasks into it, and runs fail that have done nothing',
  },
  {
    ...planHeldParts,
    guard: 'partHolds',
    hazard: 'H6 handles of memory',
    breaks: 'a plan that is closed takes a part of the program with it',
  },
  {
    ...planHeldParts,
    guard: 'planPartUses',
    hazard: 'programs that differ',
    breaks:
      'ranks infer different copies, because some programs have a part of a plan that is closed',
  },
  {
    ...reducedParts,
    guard: 'unusedParts',
    hazard: 'programs that differ',
    breaks: 'a rank ends a reduction when it closes a part that others have not made',
  },
  {
    ...reducedParts,
    guard: 'partsReduced',
    hazard: 'H2 consumer before arrival',
    breaks: 'a task misses contributions to elements that it uses by way of another part',
  },
  {
    ...endedParts,
    guard: 'partsSealed',
    hazard: 'H17 stale copies',
    breaks: 'restore() brings back elements that a closed part had newer ones of',
  },
  {
    ...restores,
    guard: 'restoresLatest',
    hazard: 'H17 stale copies',
    breaks: 'restore() brings a value from before a run that has succeeded',
  },
  {
    project: 'unit',
    file: 'test/simulated/marked-data.test.ts',
    guard: 'marksInOrder',
    hazard: 'H15 errors spread',
    breaks: 'a read that waits is refused because of a run that came after it',
  },
  {
    project: 'unit',
    file: 'test/simulated/marked-data.test.ts',
    guard: 'endsBeforeMark',
    hazard: 'H15 errors spread',
    breaks: 'a read gives what no task has written',
  },
  {
    ...partRanks,
    guard: 'partsInOrder',
    hazard: 'programs that differ',
    breaks: 'ranks that have had other parts plan different graphs',
  },
  {
    ...joins,
    guard: 'familyInPlace',
    hazard: 'H15 errors spread',
    breaks: 'a datum has the value of a family, although a later writer was dropped',
  },
  {
    ...commuting,
    guard: 'commuteInTurn',
    hazard: 'H5 overwritten or evicted while in use',
    breaks: 'tasks that commute change a datum at the same time',
  },
  {
    ...commuting,
    guard: 'commuteFailures',
    hazard: 'H15 errors spread',
    breaks: 'what came behind a failed task counts as valid',
  },
  {
    ...pruned,
    guard: 'prunedSends',
    hazard: 'progress',
    breaks: 'a rank waits for a version that nobody sends',
  },
  {
    ...pruned,
    guard: 'prunedCopies',
    hazard: 'H17 stale copies',
    breaks: 'a rank takes its copy for the latest version',
  },
  {
    ...pruned,
    guard: 'prunedLast',
    hazard: 'progress',
    breaks: 'ranks take different ranks for the writer of a datum',
  },
  {
    ...localTasks,
    guard: 'localCopies',
    hazard: 'H17 stale copies',
    breaks: 'a rank takes a copy for the latest version of a datum that it did not see overwritten',
  },
  {
    ...plans,
    guard: 'planAlone',
    hazard: 'H4 used before it is finished',
    breaks: 'a play and a run use the same data at the same time',
  },
  {
    ...plans,
    guard: 'planDropped',
    hazard: 'order across drops',
    breaks: 'a task behind a play that is dropped leaves its datum without a value before the play',
  },
  {
    ...plans,
    guard: 'planCancel',
    hazard: 'H12 partial allocation and cancel',
    breaks: 'an aborted play goes on to its last iteration',
  },
  {
    ...plans,
    guard: 'planTimes',
    hazard: 'H5 overwritten or evicted while in use',
    breaks: 'a trace has the times of other records',
  },
  {
    ...agreedPlays,
    guard: 'allPlay',
    hazard: 'programs that differ',
    breaks: 'a rank plays in place of a run whose tasks another one inserts',
  },
  {
    ...agreedPlays,
    guard: 'votesAsked',
    hazard: 'progress',
    breaks: 'ranks wait for the vote of one that knows of no vote',
  },
  {
    ...agreedPlays,
    guard: 'votesBind',
    hazard: 'programs that differ',
    breaks: 'a rank that has voted for a play inserts the tasks that others play',
  },
  {
    ...recognised,
    guard: 'recognisedSame',
    hazard: 'programs that differ',
    breaks: 'a plan is played in place of tasks that differ',
  },
  {
    ...recognised,
    guard: 'recognisedWhole',
    hazard: 'H17 stale copies',
    breaks: 'a recognised run begins with data as they were before a task wrote a part of them',
  },
  {
    project: 'unit',
    file: 'test/scheduler/parameterised/repeats.test.ts',
    guard: 'repeatsEnd',
    hazard: 'programs that differ',
    breaks:
      'tasks of a graph that come where its classes repeat no more are inserted as those before',
  },
  {
    project: 'unit',
    file: 'test/scheduler/parameterised/repeated-stretches.test.ts',
    guard: 'againAtStretch',
    hazard: 'program order',
    breaks: 'insertions in the middle of a stretch are taken for those of its begin',
  },
  {
    ...recognised,
    guard: 'recordsOnEvidence',
    hazard: 'overhead',
    breaks: 'programs that do not repeat pay for recording from their first run on',
  },
  {
    ...recognised,
    guard: 'recognitionPauses',
    hazard: 'overhead',
    breaks: 'programs that do not repeat pay for recognition for ever',
  },
  {
    project: 'unit',
    file: 'test/simulated/runs-in-turn.test.ts',
    guard: 'straysNoted',
    hazard: 'overhead',
    breaks: 'of runs that begin alike and take turns only one is recognised',
  },
  {
    ...recognitionCosts,
    guard: 'looksRarely',
    hazard: 'overhead',
    breaks: 'programs that do not repeat pay for a look at each of their runs',
  },
  {
    ...recognitionCosts,
    guard: 'idlePlans',
    hazard: 'overhead',
    breaks: 'a program that does not repeat any more pays for its plans for ever',
  },
  {
    ...balance,
    guard: 'stretchMeasured',
    hazard: 'balance',
    breaks: 'a stretch of tasks of different lengths is dealt out as if they took equally long',
  },
  {
    ...recognitionCosts,
    guard: 'heldSoon',
    hazard: 'overhead',
    breaks: 'tasks wait for their program while it computes',
  },
  {
    ...recognised,
    guard: 'recognitionAlone',
    hazard: 'program order',
    breaks: 'a run is held back while another one inserts',
  },
  {
    ...stretches,
    guard: 'withdrawsOwn',
    hazard: 'H6 handles of memory',
    breaks: 'a play that is taken back gives back the memory of another one',
  },
  {
    project: 'unit',
    file: 'test/simulated/growing-plays.test.ts',
    guard: 'playRoom',
    hazard: 'H5 overwritten or evicted while in use',
    breaks: 'parameters of an iteration are written over before it begins',
  },
  {
    ...stretches,
    guard: 'stretchBodies',
    hazard: 'program order',
    breaks: 'a body inserts while tasks of its program are held back',
  },
  {
    ...stretches,
    guard: 'stretchLimit',
    hazard: 'memory',
    breaks: 'a program holds back all tasks that it inserts',
  },
  {
    project: 'unit',
    file: 'test/scheduler/plan-order.test.ts',
    guard: 'planRankOrder',
    hazard: 'progress',
    breaks: 'ranks wait for each other in a circle',
  },
  {
    project: 'unit',
    file: 'test/scheduler/plan-order.test.ts',
    guard: 'planRunAhead',
    hazard: 'progress',
    breaks: 'a rank fills the memory of another with letters',
  },
  {
    project: 'unit',
    file: 'test/simulated/rank-while.test.ts',
    guard: 'planSameLook',
    hazard: 'programs that differ',
    breaks: 'ranks that play with other options wait for each other',
  },
  {
    project: 'unit',
    file: 'test/simulated/rank-early-ends.test.ts',
    guard: 'failedPlayEnters',
    hazard: 'H15 errors spread',
    breaks: 'what a play that fails before its begin should have written has its old value',
  },
  {
    project: 'unit',
    file: 'test/simulated/rank-early-ends.test.ts',
    guard: 'abortNumbered',
    hazard: 'H15 errors spread',
    breaks: 'other ranks wait for a run that was aborted before its begin',
  },
  {
    project: 'unit',
    file: 'test/simulated/rank-early-ends.test.ts',
    guard: 'overStaysOver',
    hazard: 'H15 errors spread',
    breaks: 'a run fails on one rank and ends well on the others',
  },
  {
    project: 'unit',
    file: 'test/scheduler/restore-ranks.test.ts',
    guard: 'refusedRestores',
    hazard: 'programs that differ',
    breaks: 'the ranks are out of step when a datum is restored of which one rank has parts',
  },
  {
    project: 'unit',
    file: 'test/scheduler/reductions-cancelled.test.ts',
    guard: 'partialSums',
    hazard: 'H12 partial allocation and cancel',
    breaks: 'a cancelled reduction leaves the sum of some contributions, which can be restored',
  },
  {
    project: 'unit',
    file: 'test/scheduler/reductions-memory.test.ts',
    guard: 'fewPartials',
    hazard: 'memory',
    breaks: 'partial results of reductions that are over fill the host memory',
  },
  {
    project: 'unit',
    file: 'test/scheduler/agreement.test.ts',
    guard: 'refusalCounts',
    hazard: 'programs that differ',
    breaks:
      'ranks whose graphs differ stay in the era of the failed run, in which long versions are declined',
  },
  {
    project: 'unit',
    file: 'test/simulated/rank-plan-files.test.ts',
    guard: 'planParts',
    hazard: 'programs that differ',
    breaks: 'ranks play parts of different plans',
  },
  {
    project: 'unit',
    file: 'test/devices/submission.test.ts',
    guard: 'impliedOnHost',
    hazard: 'H15 errors spread',
    breaks: 'what the queue of a lost GPU was to wait for counts as over',
  },
  {
    project: 'unit',
    file: 'test/devices/queue-progress.test.ts',
    guard: 'failuresSettle',
    hazard: 'H15 errors spread',
    breaks: 'what was computed from a failure counts as valid',
  },
  {
    ...native,
    guard: 'closeImports',
    hazard: H6,
    breaks: 'memory is freed that another process has open',
  },
  {
    ...native,
    guard: 'importGeneration',
    hazard: `${H6}, H17`,
    breaks: 'a mapping shows memory that is gone',
  },
  {
    ...native,
    guard: 'wakePassed',
    hazard: 'H7 counts that are passed',
    breaks: 'a sleeper is not woken by a larger number than its own',
  },
  {
    ...native,
    guard: 'nonBlockingStreams',
    hazard: H8,
    breaks: 'streams are made that the NULL stream blocks',
  },
  {
    ...native,
    guard: 'graphOrder',
    hazard: 'H4 used before it is finished',
    breaks: 'a captured command overtakes one on another stream',
  },
  {
    ...native,
    guard: 'graphOutcome',
    hazard: 'H15 errors spread',
    breaks: 'the next launch of a graph hides the failure of the last one',
  },
  {
    ...native,
    guard: 'graphWatch',
    hazard: 'H15 errors spread',
    breaks: 'a play waits for ever for a GPU that was lost in its graph',
  },
  {
    ...native,
    guard: 'launchPause',
    hazard: H8,
    breaks: 'memory is page-locked while a kernel may be running',
  },
  {
    ...native,
    guard: 'lockPatience',
    hazard: 'fast paths',
    breaks:
      'a program out of core copies memory that is never page-locked, at a tenth of the speed',
  },
  {
    ...native,
    guard: 'flushDeadline',
    hazard: 'H16 a flush that hangs',
    breaks: 'a run waits for a flush that does not return',
  },
  {
    ...native,
    guard: 'laneFailures',
    hazard: 'H15 errors spread',
    breaks: 'a lane sends bytes before a failure is handled',
  },
  {
    ...native,
    guard: 'laneCancel',
    hazard: 'H12 partial allocation and cancel',
    breaks: "a cancelled run's version is sent",
  },
  {
    ...native,
    guard: 'laneAwaitsBytes',
    hazard: 'H12 partial allocation and cancel',
    breaks: 'a version of a cancelled run is written over what has its memory next',
  },
  {
    ...native,
    guard: 'laneLooks',
    hazard: 'H7 counts that are passed',
    breaks: 'lanes sleep on when the condition of a play lets it go on',
  },
  {
    ...native,
    guard: 'mailOrder',
    hazard: 'H4 used before it is finished',
    breaks: 'a rank reads a letter of another one of its host before all of it is written',
  },
  {
    ...native,
    guard: 'mailRoom',
    hazard: 'H4 used before it is finished',
    breaks: 'a letter is written over another one that was not taken',
  },
  {
    ...native,
    guard: 'mailClears',
    hazard: 'H4 used before it is finished',
    breaks: 'values of an old letter are taken for a letter',
  },
  {
    ...native,
    guard: 'playPassed',
    hazard: 'H4 used before it is finished',
    breaks: 'records of a play that ended early are executed after it',
  },
  {
    ...native,
    guard: 'failureRings',
    hazard: 'H7 counts that are passed',
    breaks: 'the engine sleeps while lanes wait for it to handle a failure',
  },
  {
    ...native,
    guard: 'restLooksAgain',
    hazard: 'H7 counts that are passed',
    breaks: 'a script worker sleeps while its queue has a record',
  },
  {
    ...native,
    guard: 'playKeepsServer',
    hazard: 'H7 counts that are passed',
    breaks: 'a script worker ends when a play ends at its barrier, and its queue stands still',
  },
  {
    ...planScriptFiles,
    guard: 'planFileBodies',
    hazard: 'memory of the process',
    breaks: 'a file makes a worker call the kernel that has the number of a body',
  },
  {
    ...native,
    guard: 'playAwaits',
    hazard: 'H2 consumer before arrival',
    breaks: 'a body behind a barrier of a play does not wait for what it reads, and is left out',
  },
  {
    ...native,
    guard: 'playFinal',
    hazard: 'H7 counts that are passed',
    breaks: 'a play gets iterations that a queue which has ended never plays',
  },
  {
    ...native,
    guard: 'doubtFailures',
    hazard: 'H15 errors spread',
    breaks: 'a rank that died is not named as the cause of what could not be read from it',
  },
];
