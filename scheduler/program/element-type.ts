// Element types of data: their names, sizes and typed arrays.
import { HeadraceError } from '../../devices/errors.js';
import { describeThrown } from '../../trace/thrown.js';

const ARRAYS: {
  readonly f64: Float64ArrayConstructor;
  readonly f32: Float32ArrayConstructor;
  readonly i32: Int32ArrayConstructor;
  readonly u32: Uint32ArrayConstructor;
  readonly u8: Uint8ArrayConstructor;
} = {
  f64: Float64Array,
  f32: Float32Array,
  i32: Int32Array,
  u32: Uint32Array,
  u8: Uint8Array,
};

const TYPED_ARRAY = Object.getOwnPropertyDescriptors(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
) as Record<PropertyKey, PropertyDescriptor>;
/** The getter from which every typed array has its name; undefined for other objects. */
const kindOf = TYPED_ARRAY[Symbol.toStringTag].get as () => string | undefined;
/** The one from which it has its length: an array may have a property `length` of its own. */
const countOf = TYPED_ARRAY['length'].get as () => number;

/** Name of an element type: 64 and 32 bit floats, 32 bit integers, bytes. */
export type ElementType = 'f64' | 'f32' | 'i32' | 'u32' | 'u8';
/** The typed array of an element type. */
export type ElementArray<E extends ElementType> = InstanceType<(typeof ARRAYS)[E]>;
/** Any array from which data can be made. */
export type AnyElementArray = ElementArray<ElementType>;

/** All element types. */
export const ELEMENT_TYPES: readonly ElementType[] = Object.keys(ARRAYS) as ElementType[];

/** Bytes per element. */
export function elementBytes(element: ElementType): number {
  return ARRAYS[element].BYTES_PER_ELEMENT;
}

/** Whether a string names an element type. */
export function isElementType(value: unknown): value is ElementType {
  return typeof value === 'string' && Object.hasOwn(ARRAYS, value);
}

/** Element type of an array, or undefined when data cannot be made from it. */
export function elementTypeOf(array: unknown): ElementType | undefined {
  // This asks the array itself: its prototype may come from another realm, or may be wrong.
  const kind = Reflect.apply(kindOf, array, []) as string | undefined;
  for (const [name, type] of Object.entries(ARRAYS)) {
    if (kind === type.name) return name as ElementType;
  }
  return undefined;
}

/** Number of elements of a typed array. */
export function lengthOf(array: unknown): number {
  return Reflect.apply(countOf, array, []) as number;
}

/** An array over `bytes` (which start at a multiple of the element size). */
export function viewAs<E extends ElementType>(element: E, bytes: Uint8Array): ElementArray<E> {
  const type = ARRAYS[element] as unknown as new (
    b: ArrayBufferLike,
    o: number,
    n: number,
  ) => ElementArray<E>;
  return new type(bytes.buffer, bytes.byteOffset, bytes.byteLength / elementBytes(element));
}

/**
 * A new zero-filled array.
 * @throws HeadraceError `ERR_ARRAY_TOO_LARGE` when JavaScript cannot make one of that length.
 */
export function newArray<E extends ElementType>(element: E, length: number): ElementArray<E> {
  try {
    return new (ARRAYS[element] as unknown as new (n: number) => ElementArray<E>)(length);
  } catch (cause) {
    const bytes = length * elementBytes(element);
    throw new HeadraceError(
      'ERR_ARRAY_TOO_LARGE',
      `JavaScript cannot make an array of ${length} elements of ${element}: ${describeThrown(cause)}`,
      { bytes, remedy: 'use smaller data or tiles, and read them one at a time', cause },
    );
  }
}
