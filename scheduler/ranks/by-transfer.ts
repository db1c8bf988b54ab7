// A table of transfers by their names: the rank of origin, and the key (devices/network/keys.ts).

export class ByTransfer<T> {
  /** One map per rank of origin that has sent something. */
  private readonly maps: Map<number, Map<number, T>> = new Map();
  /** Number of transfers in the table. */
  size = 0;

  get(origin: number, key: number): T | undefined {
    return this.maps.get(origin)?.get(key);
  }

  set(origin: number, key: number, value: T): void {
    const map = this.maps.get(origin);
    if (map?.has(key) !== true) this.size++;
    if (map === undefined) this.maps.set(origin, new Map([[key, value]]));
    else map.set(key, value);
  }

  delete(origin: number, key: number): void {
    if (this.maps.get(origin)?.delete(key) === true) this.size--;
  }

  clear(): void {
    this.maps.clear();
    this.size = 0;
  }

  /** All values, rank by rank. */
  *values(): Generator<T> {
    for (const map of this.maps.values()) yield* map.values();
  }
}
