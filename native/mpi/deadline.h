// Ends this process in time after a signal that asks for its end, even if JavaScript never runs its own handler:
// a program that inserts tasks in a plain loop keeps the event loop, and so Node's handlers, from running.
//
// A handler in C notes the signal and calls the handler that was there before (Node's). A thread that sleeps until then
// ends the process when the time is over. The sockets of the lifeline end with the process, so the other ranks learn it.
//
// Invariants: the handler makes only calls that are allowed in a handler (atomics, sem_post); the thread exists once per
// process and touches no other state of it.
#pragma once

namespace headrace::mpi::deadline {

/// From now on a signal of that number leaves this process `milliseconds`. Call it after Node's own handler is installed.
void watch(int signal, int milliseconds);
/// JavaScript has seen the signal and ends the process itself.
void heard(int signal);
/// Undoes `watch`.
void leave(int signal);

}  // namespace headrace::mpi::deadline
