// The memory of a plan in the real machine: each region gets a block, and the lists get its addresses.
//
// The region of one datum is the block of that datum's copy, so a datum that lies on the device already stays where it is.
// Blocks are found and pinned before a play and stay pinned until it is over. Other copies leave to make room, by the rules of
// devices/memory/eviction.ts. If free memory is in pieces that are too small, everything leaves the device once, and the
// regions are placed one after the other.
import { HeadraceError } from '../../devices/errors.js';
import { guards } from '../../devices/guards.js';
import { type DatumId, HOST, NO_TASK, type SpaceId } from '../../devices/handles.js';
import { CopyState } from '../../devices/memory/coherency.js';
import { NO_BLOCK, Poison } from '../../devices/memory/directory.js';
import { makeRoom, startWriteBack } from '../../devices/memory/eviction.js';
import { ALIGNMENT } from '../../devices/memory/zone.js';
import { poisonedDatum } from '../../stages/poison.js';
import { TransferReason } from '../../trace/format.js';
import type { EngineState } from '../engine/state.js';
import { writeAddresses } from './layout.js';
import type { PlannedCopy, PlannedProgram, PlannedRegion } from './planned-program.js';

const UNPLACED = -1;

export class Placement {
  private readonly state: EngineState;
  private readonly program: PlannedProgram;
  /** Offset of each region; UNPLACED between plays. */
  private readonly base: Float64Array;
  /** Offsets that the lists hold now. */
  private readonly patched: Float64Array;
  private readonly values: readonly Float64Array[];
  /** The space is emptied because its free memory is in pieces. */
  private readonly isCompacting: boolean[] = [];

  constructor(state: EngineState, program: PlannedProgram) {
    this.state = state;
    this.program = program;
    this.base = new Float64Array(program.regions.length).fill(UNPLACED);
    this.patched = new Float64Array(program.regions.length).fill(UNPLACED);
    this.values = program.queues.map(({ records }) => new Float64Array(records.buffer));
  }

  /** Offset of a region, while it is placed. */
  baseOf(region: number): number {
    return this.base[region];
  }

  /**
   * Finds memory for all regions and brings the copies that an iteration needs. True when all is there; false while copies
   * are under way: call it again when one has ended.
   * @throws HeadraceError `ERR_OUT_OF_HOST_MEMORY`, `ERR_OUT_OF_DEVICE_MEMORY`, `ERR_DATUM_POISONED`
   */
  enter(): boolean {
    const { program, state } = this;
    for (const { datum } of program.entry)
      if (state.directory.poison[datum] !== Poison.none)
        throw poisonedDatum(state.directory, datum);
    this.pinExisting();
    for (let g = 0; g < program.regions.length; g++)
      if (this.base[g] === UNPLACED && !this.place(program.regions[g], g)) return false;
    let isThere = true;
    for (const copy of program.entry) if (!this.bring(copy)) isThere = false;
    if (!isThere || state.transfers.live > 0) return false;
    this.patch();
    return true;
  }

  /**
   * Whether `enter` finds all that it needs, on a machine without GPUs, where nothing is under way and nothing else is made before.
   * `isHere`: whether the latest version of a datum is here; others come before.
   */
  mayEnter(isHere: (datum: DatumId) => boolean): boolean {
    const { program, state } = this;
    const { directory: dir, spaces } = state;
    const isMissing = ({ datum }: PlannedCopy): boolean =>
      dir.poison[datum] !== Poison.none && isHere(datum);
    if (program.entry.some(isMissing)) return false;
    let bytes = 0;
    for (const { datum, space, bytes: size } of program.regions)
      if (datum === undefined || dir.block[datum * dir.spaces + space] === NO_BLOCK)
        bytes += size + ALIGNMENT;
    // Free memory may be in pieces.
    return 2 * bytes <= spaces[HOST].zone.available;
  }

  /** Gives the blocks back. Copies that are valid stay until others need the memory. */
  leave(): void {
    const { program, base } = this;
    program.regions.forEach(({ datum, space }, g) => {
      if (base[g] === UNPLACED) return;
      if (datum === undefined) this.state.spaces[space].zone.release(base[g]);
      else this.state.spaces[space].unpin(datum);
      base[g] = UNPLACED;
    });
    this.isCompacting.length = 0;
  }

  /** Blocks that are there already stay, unless the space must be emptied. */
  private pinExisting(): void {
    const { directory: dir, spaces } = this.state;
    this.program.regions.forEach(({ datum, space }, g) => {
      if (this.base[g] !== UNPLACED || datum === undefined || this.isCompacting[space] === true)
        return;
      const block = dir.block[datum * dir.spaces + space];
      if (block === NO_BLOCK) return;
      this.base[g] = block;
      spaces[space].pin(datum);
    });
  }

  private place(region: PlannedRegion, g: number): boolean {
    const { directory: dir, spaces, x } = this.state;
    const { space: s, datum } = region;
    const space = spaces[s];
    // While the space is emptied, nothing is placed in it until nothing is left.
    if (this.isCompacting[s] === true && !this.empty(s)) return false;
    const offset = makeRoom(space, x.counters, region.bytes);
    if (offset < 0) return this.makeWay(region);
    this.base[g] = offset;
    if (datum !== undefined) {
      dir.block[datum * dir.spaces + s] = offset;
      space.pin(datum);
    }
    return true;
  }

  /** There is no room: dirty copies are written back; if none is left, the space is emptied. */
  private makeWay(region: PlannedRegion): false {
    const { directory: dir, spaces, transfers, x } = this.state;
    const { space: s } = region;
    if (transfers.live > 0) return false;
    const bytes = startWriteBack(spaces[s], spaces, dir, transfers, x.counters, x.now);
    if (bytes > 0) return false;
    if (s === HOST || bytes < 0) throw this.outOfMemory(HOST, region);
    if (this.isCompacting[s] === true) throw this.outOfMemory(s, region);
    this.isCompacting[s] = true;
    this.program.regions.forEach(({ datum, space }, g) => {
      if (space !== s || this.base[g] === UNPLACED) return;
      if (datum === undefined) spaces[s].zone.release(this.base[g]);
      else spaces[s].unpin(datum);
      this.base[g] = UNPLACED;
    });
    return false;
  }

  /** Drops and writes back all copies of a GPU; true when it is empty or when regions are being placed in it again. */
  private empty(s: SpaceId): boolean {
    const { program, state, base } = this;
    if (program.regions.some(({ space }, g) => space === s && base[g] !== UNPLACED)) return true;
    const { spaces, directory: dir, transfers, x } = state;
    const space = spaces[s];
    // No block is as large as the space, so everything clean leaves.
    if (space.cleanBytes > 0) makeRoom(space, x.counters, space.zone.capacity + 1);
    if (space.zone.used === 0) return true;
    if (transfers.live > 0) return false;
    const bytes = startWriteBack(space, spaces, dir, transfers, x.counters, x.now);
    if (bytes < 0) throw this.outOfMemory(HOST, { space: HOST, bytes: space.dirtyBytes });
    return bytes === 0 && transfers.live === 0;
  }

  private outOfMemory(s: SpaceId, region: { space: SpaceId; bytes: number }): HeadraceError {
    const { zone } = this.state.spaces[s];
    const device = this.state.spaceName(s);
    const code = s === HOST ? 'ERR_OUT_OF_HOST_MEMORY' : 'ERR_OUT_OF_DEVICE_MEMORY';
    return new HeadraceError(
      code,
      `plan '${this.program.report.name}' needs a block of ${region.bytes} bytes of ${device}, and ${zone.available} of ${zone.capacity} bytes are free`,
      {
        bytes: region.bytes,
        limit: zone.capacity,
        device,
        remedy: 'close data that are no longer needed, or raise the memory option of the device',
      },
    );
  }

  /** Commands the copy that makes an entry copy valid; true when it is valid or on its way. */
  private bring({ datum, region }: PlannedCopy): boolean {
    const { space } = this.program.regions[region];
    const { directory: dir } = this.state;
    const state = dir.state[datum * dir.spaces + space];
    if (state !== CopyState.invalid) return state !== CopyState.arriving;
    return this.copy(datum, space);
  }

  private copy(d: DatumId, to: SpaceId): false {
    const { directory: dir, spaces, transfers, x } = this.state;
    const from = transfers.chooseSource(d, to);
    if (from >= 0) {
      if (transfers.canIssue(to, from))
        transfers.issue(d, to, from, TransferReason.prefetch, NO_TASK, x.now);
      return false;
    }
    // Two GPUs without peer access: by way of the host.
    const owner = dir.owner(d);
    const home = d * dir.spaces;
    if (owner <= HOST || dir.state[home] !== CopyState.invalid) return false;
    if (dir.block[home] === NO_BLOCK) {
      const offset = makeRoom(spaces[HOST], x.counters, dir.bytes[d]);
      if (offset < 0) throw this.outOfMemory(HOST, { space: HOST, bytes: dir.bytes[d] });
      dir.block[home] = offset;
    }
    if (transfers.canIssue(HOST, owner))
      transfers.issue(d, HOST, owner, TransferReason.readBack, NO_TASK, x.now);
    return false;
  }

  /** Writes the addresses of the regions that have moved into the lists. */
  private patch(): void {
    const { base, patched, program, values } = this;
    for (let g = 0; g < base.length; g++) {
      if (base[g] === patched[g] || !guards.planPlaces) continue;
      patched[g] = base[g];
      writeAddresses(values, program.addresses, g, base[g]);
    }
  }
}
