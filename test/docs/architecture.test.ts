// The picture of docs/architecture.md equals the output of the script, and the page names the same files on each way.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { filesOf, picture, turnsOf, ways } from '../../scripts/architecture-picture.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');

/** The section of a way: its heading begins with the way's name. */
function sectionOf(name: string): string {
  const [section] = page
    .split(/^## /m)
    .filter((each) => each.startsWith(`The way of ${name.toLowerCase()}`));
  return section ?? '';
}

test('the picture in the repository is up to date', () => {
  expect(readFileSync(path.join(root, 'docs/architecture.svg'), 'utf8')).toBe(picture());
});

describe.each(ways as { name: string }[])('$name', (way) => {
  const files: string[] = filesOf(way);

  test('goes through files that exist', () => {
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });

  test('leads back into a higher room at most twice', () => {
    expect(turnsOf(way)).toBeLessThanOrEqual(2);
  });

  test('is walked by the page, with its number of files', () => {
    const section = sectionOf(way.name);
    expect(section).toContain(`goes through ${files.length} files`);
    expect(files.filter((file) => !section.includes(`\`${file}\``))).toEqual([]);
  });
});
