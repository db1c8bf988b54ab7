// Generated from native/mpi-contract.ts by scripts/generate-contract.mjs. Do not edit.
#pragma once

#include <cstdint>

namespace headrace {

/// Differs for every other contract: the loader compares it.
inline constexpr std::int32_t netContractNumber = 1732271597;

namespace NetCommand {
inline constexpr std::int32_t message = 1;
inline constexpr std::int32_t close = 2;
inline constexpr std::int32_t era = 3;
inline constexpr std::int32_t abandon = 4;
inline constexpr std::int32_t decline = 5;
inline constexpr std::int32_t withdraw = 6;
inline constexpr std::int32_t refuse = 7;
inline constexpr std::int32_t refuseCalls = 8;
inline constexpr std::int32_t expect = 9;
inline constexpr std::int32_t want = 10;
}  // namespace NetCommand

namespace NetEvent {
inline constexpr std::int32_t message = 1;
inline constexpr std::int32_t lost = 2;
inline constexpr std::int32_t closed = 3;
inline constexpr std::int32_t departed = 4;
inline constexpr std::int32_t came = 5;
}  // namespace NetEvent

namespace NetRecord {
inline constexpr std::int32_t bytes = 64;
inline constexpr std::int32_t words = 16;
inline constexpr std::int32_t doubles = 8;
inline constexpr std::int32_t kind = 0;
inline constexpr std::int32_t rank = 1;
inline constexpr std::int32_t request = 2;
inline constexpr std::int32_t tag = 3;
inline constexpr std::int32_t status = 4;
inline constexpr std::int32_t space = 5;
inline constexpr std::int32_t position = 6;
inline constexpr std::int32_t offset = 4;
inline constexpr std::int32_t size = 5;
inline constexpr std::int32_t start = 6;
inline constexpr std::int32_t end = 7;
}  // namespace NetRecord

namespace NetMode {
inline constexpr std::int32_t direct = 0;
inline constexpr std::int32_t staged = 1;
inline constexpr std::int32_t mapped = 2;
inline constexpr std::int32_t open = 3;
}  // namespace NetMode

namespace NetScope {
inline constexpr std::int32_t none = 0;
inline constexpr std::int32_t owner = 100;
inline constexpr std::int32_t all = 200;
}  // namespace NetScope

namespace NetStatus {
inline constexpr std::int32_t ok = 0;
inline constexpr std::int32_t cancelled = 1;
inline constexpr std::int32_t truncated = 2;
inline constexpr std::int32_t library = 3;
inline constexpr std::int32_t mapping = 4;
inline constexpr std::int32_t outOfRange = 5;
inline constexpr std::int32_t flush = 6;
inline constexpr std::int32_t lost = 7;
inline constexpr std::int32_t device = 8;
inline constexpr std::int32_t flushTimeout = 9;
}  // namespace NetStatus

namespace NetWord {
inline constexpr std::int32_t words = 64;
inline constexpr std::int32_t commandsPublished = 0;
inline constexpr std::int32_t eventsTaken = 1;
inline constexpr std::int32_t inboxFreed = 2;
inline constexpr std::int32_t quiet = 3;
inline constexpr std::int32_t lanesPublished = 4;
inline constexpr std::int32_t commandsTaken = 16;
inline constexpr std::int32_t eventsPublished = 17;
inline constexpr std::int32_t outboxFreed = 18;
inline constexpr std::int32_t sleeping = 32;
inline constexpr std::int32_t messagesSent = 33;
inline constexpr std::int32_t messagesReceived = 34;
inline constexpr std::int32_t flushes = 35;
}  // namespace NetWord

namespace NetLimit {
inline constexpr std::int32_t message = 65536;
inline constexpr std::int32_t ring = 2097152;
inline constexpr std::int32_t records = 4096;
inline constexpr std::int32_t letter = 65536;
inline constexpr std::int32_t told = 4;
inline constexpr std::int32_t buffers = 32;
inline constexpr std::int32_t spaces = 32;
}  // namespace NetLimit

}  // namespace headrace
