// Generated from the contracts by scripts/generate-contract.mjs. Do not edit.
// An addon that was built from another contract has another number, and is not loaded.

export const contractNumber = 952721547;
export const netContractNumber = 753464460;
