// Headless Chromium of the system, for tests, benchmarks and screenshots of the viewer.
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** The part of playwright-core that the tests use. */
export interface Page {
  goto(url: string, options?: { timeout?: number }): Promise<unknown>;
  on(event: string, listener: (value: never) => void): void;
  evaluate<T>(script: string): Promise<T>;
  click(selector: string): Promise<void>;
  fill(selector: string, text: string): Promise<void>;
  press(selector: string, key: string): Promise<void>;
  textContent(selector: string): Promise<string | null>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
  emulateMedia(media: { colorScheme: 'light' | 'dark' }): Promise<void>;
  screenshot(options: { path: string }): Promise<unknown>;
  readonly keyboard: { press(key: string): Promise<void> };
  readonly mouse: {
    move(x: number, y: number): Promise<void>;
    click(x: number, y: number): Promise<void>;
    wheel(x: number, y: number): Promise<void>;
    down(): Promise<void>;
    up(): Promise<void>;
  };
  close(): Promise<void>;
}

export interface Browser {
  newPage(options: {
    viewport: { width: number; height: number };
    colorScheme?: 'light' | 'dark';
    deviceScaleFactor?: number;
  }): Promise<Page>;
  close(): Promise<void>;
}

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const names = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser's program: HEADRACE_CHROMIUM, or the first of the usual names on PATH; undefined when there is none. */
export function findChromium(): string | undefined {
  const given = process.env['HEADRACE_CHROMIUM'];
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  const places =
    given !== undefined
      ? [given]
      : folders.flatMap((folder) => names.map((name) => path.join(folder, name)));
  return places.find((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Starts the browser, or returns the reason why it cannot. */
export async function launchChromium(): Promise<Browser | string> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    return 'no Chromium found; install the package chromium, or set HEADRACE_CHROMIUM to the program';
  }
  const name: string = 'playwright-core';
  let playwright: { chromium: { launch(options: object): Promise<Browser> } };
  try {
    playwright = await import(name);
  } catch {
    return 'playwright-core is not installed; npm ci installs it';
  }
  return playwright.chromium.launch({ executablePath, headless: true, args: flags });
}
