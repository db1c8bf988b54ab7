// The scripts are plain JavaScript, which runs before anything is compiled; tests use them untyped.
declare module '*.mjs';
