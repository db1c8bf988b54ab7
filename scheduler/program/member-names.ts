// Names in the shapes of a task class with lists (class-shapes.ts).

/** The flow of a shape for member `i` of a list. */
export function memberOf(list: string, i: number): string {
  return `${list}[${i}]`;
}

/** Whether a flow of a shape is a member of a list. */
export function isMember(list: string, flow: string): boolean {
  return flow.startsWith(`${list}[`);
}

/** The parameter of a shape with the number of data in a list. */
export function sizeOf(list: string): string {
  return `${list}.length`;
}

/** A name of a class that a shape may use for a list; undefined: there is none. */
export function ambiguousName(
  names: readonly string[],
  lists: readonly string[],
): string | undefined {
  return names.find((name) => lists.some((list) => name === sizeOf(list) || isMember(list, name)));
}
