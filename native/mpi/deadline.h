// Ends this process in time after a signal that asks for its end, also when JavaScript does not come to its own handler:
// a program that inserts tasks in a plain loop keeps the event loop from turning, and Node's handlers with it.
//
// A handler in C notes the signal and goes on to the one that was there before (Node's); a thread that sleeps until then
// ends the process when the time is over. The sockets of the lifeline end with the process, so the others are told.
//
// Invariants: the handler does what is allowed in one (atomics, sem_post); the thread exists once per process and
// touches nothing else of it.
#pragma once

namespace headrace::mpi::deadline {

/// From now on a signal of that number leaves this process `milliseconds`. Call it when Node's own handler is in place.
void watch(int signal, int milliseconds);
/// JavaScript has seen the signal and looks after the end itself.
void heard(int signal);
/// Undoes `watch`.
void leave(int signal);

}  // namespace headrace::mpi::deadline
