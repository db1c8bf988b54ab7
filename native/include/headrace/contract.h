// Generated from native/contract.ts by scripts/generate-contract.mjs. Do not edit.
#pragma once

#include <cstdint>

namespace headrace {

/// Differs for every other contract: the loader compares it.
inline constexpr std::int32_t contractNumber = 590923154;

namespace Opcode {
inline constexpr std::int32_t nop = 0;
inline constexpr std::int32_t wait = 1;
inline constexpr std::int32_t exec = 2;
inline constexpr std::int32_t copy = 3;
inline constexpr std::int32_t fill = 4;
inline constexpr std::int32_t args = 5;
inline constexpr std::int32_t stop = 6;
inline constexpr std::int32_t send = 7;
inline constexpr std::int32_t receive = 8;
inline constexpr std::int32_t offer = 9;
inline constexpr std::int32_t graph = 10;
inline constexpr std::int32_t deliver = 11;
}  // namespace Opcode

namespace Record {
inline constexpr std::int32_t bytes = 64;
inline constexpr std::int32_t words = 16;
inline constexpr std::int32_t doubles = 8;
inline constexpr std::int32_t head = 0;
inline constexpr std::int32_t timed = 128;
inline constexpr std::int32_t kernel = 1;
inline constexpr std::int32_t task = 2;
inline constexpr std::int32_t run = 3;
inline constexpr std::int32_t waitSeq = 4;
inline constexpr std::int32_t status = 5;
inline constexpr std::int32_t argument = 3;
inline constexpr std::int32_t inlineArguments = 5;
}  // namespace Record

namespace Times {
inline constexpr std::int32_t doubles = 2;
inline constexpr std::int32_t start = 0;
inline constexpr std::int32_t end = 1;
}  // namespace Times

namespace Control {
inline constexpr std::int32_t words = 64;
inline constexpr std::int32_t published = 0;
inline constexpr std::int32_t doorbellAt = 1;
inline constexpr std::int32_t doorbellArmed = 2;
inline constexpr std::int32_t completed = 16;
inline constexpr std::int32_t failures = 17;
inline constexpr std::int32_t sleeping = 32;
inline constexpr std::int32_t serving = 40;
inline constexpr std::int32_t submitted = 48;
inline constexpr std::int32_t busy = 50;
}  // namespace Control

namespace Serving {
inline constexpr std::int32_t none = 0;
inline constexpr std::int32_t script = 1;
inline constexpr std::int32_t ended = 2;
inline constexpr std::int32_t refused = 3;
}  // namespace Serving

namespace Shared {
inline constexpr std::int32_t words = 128;
inline constexpr std::int32_t timing = 0;
inline constexpr std::int32_t engineAsleep = 16;
inline constexpr std::int32_t beat = 17;
inline constexpr std::int32_t engineCore = 18;
inline constexpr std::int32_t aside = 32;
inline constexpr std::int32_t failed = 48;
inline constexpr std::int32_t failuresHandled = 49;
inline constexpr std::int32_t arrivals = 56;
inline constexpr std::int32_t cancel = 64;
inline constexpr std::int32_t runs = 64;
}  // namespace Shared

namespace Status {
inline constexpr std::int32_t ok = 0;
inline constexpr std::int32_t cancelled = -1;
inline constexpr std::int32_t unknownKernel = -2;
inline constexpr std::int32_t outOfRange = -3;
inline constexpr std::int32_t deviceLost = -4;
inline constexpr std::int32_t driver = -5;
inline constexpr std::int32_t badArguments = -6;
inline constexpr std::int32_t truncated = -7;
inline constexpr std::int32_t threw = -8;
inline constexpr std::int32_t workerEnded = -9;
inline constexpr std::int32_t transfer = -32;
}  // namespace Status

namespace PlanOpen {
inline constexpr std::int32_t words = 3;
inline constexpr std::int32_t record = 0;
inline constexpr std::int32_t argument = 1;
inline constexpr std::int32_t slot = 2;
}  // namespace PlanOpen

namespace PlanElement {
inline constexpr std::int32_t f64 = 0;
inline constexpr std::int32_t f32 = 1;
inline constexpr std::int32_t i32 = 2;
inline constexpr std::int32_t u32 = 3;
inline constexpr std::int32_t u8 = 4;
}  // namespace PlanElement

namespace SpaceKind {
inline constexpr std::int32_t host = 0;
inline constexpr std::int32_t emulated = 1;
inline constexpr std::int32_t cuda = 2;
inline constexpr std::int32_t hip = 3;
}  // namespace SpaceKind

namespace QueueKind {
inline constexpr std::int32_t worker = 0;
inline constexpr std::int32_t compute = 1;
inline constexpr std::int32_t h2d = 2;
inline constexpr std::int32_t d2h = 3;
inline constexpr std::int32_t peer = 4;
inline constexpr std::int32_t lane = 5;
inline constexpr std::int32_t script = 6;
}  // namespace QueueKind

namespace ScriptNext {
inline constexpr std::int32_t rest = -1;
inline constexpr std::int32_t turn = -2;
inline constexpr std::int32_t end = -3;
}  // namespace ScriptNext

namespace ScriptCall {
inline constexpr std::int32_t words = 4;
inline constexpr std::int32_t flows = 0;
inline constexpr std::int32_t arguments = 1;
}  // namespace ScriptCall

}  // namespace headrace
