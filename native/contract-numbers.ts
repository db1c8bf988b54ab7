// Generated from the contracts by scripts/generate-contract.mjs. Do not edit.
// An addon that was built from another contract has another number, and is not loaded.

export const contractNumber = 590923154;
export const netContractNumber = 1732271597;
