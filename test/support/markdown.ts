// The fenced blocks of a Markdown page, which tests execute like a reader.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** One fenced block; the mark is the word behind the language, or ''. */
export interface Block {
  readonly language: string;
  readonly mark: string;
  readonly text: string;
}

/** The fenced blocks of a page, in its order. The page's name is relative to the project folder. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(path.join(root, page), 'utf8');
  return [...text.matchAll(/^```(\w+)(?: ([\w-]+))?\n([\s\S]*?)^```/gm)].map(
    ([, language, mark, block]) => ({ language, mark: mark ?? '', text: block }),
  );
}

/** The texts of the blocks of one language. */
export function blocks(page: string, language: string): string[] {
  return blocksOf(page)
    .filter((block) => block.language === language)
    .map(({ text }) => text);
}
