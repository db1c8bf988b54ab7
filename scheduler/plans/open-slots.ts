// The open parameters of a plan, by slot: what values the tasks that share a slot accept.
import type { Parameters, TaskClass } from '../program/task-class.js';
import type { Insertions } from './insertions.js';

export interface OpenSlot {
  readonly name: string;
  /** A task takes it as an integer of 32 bits. */
  isWhole: boolean;
  /** A task takes it as a truth value. */
  isTruth: boolean;
}

/** By name. `classes`: those of the program by the id of their row. */
export function openSlots(
  insertions: Pick<Insertions, 'open' | 'classOf'>,
  classes: readonly TaskClass[],
): ReadonlyMap<string, OpenSlot> {
  const slots = new Map<string, OpenSlot>();
  for (const { insertion, parameter, slot: name } of insertions.open) {
    const { definition, paramNames } = classes[insertions.classOf(insertion).id];
    const type = (definition.params as Parameters)[paramNames[parameter]];
    const slot = slots.get(name) ?? { name, isWhole: false, isTruth: false };
    slots.set(name, slot);
    if (type === 'i32') slot.isWhole = true;
    if (type === 'bool') slot.isTruth = true;
  }
  return slots;
}
