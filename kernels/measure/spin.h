// Keeps one SM busy for a time and counts its cycles: the SM clock, and a delay behind which launches queue up.
#pragma once

#include "measure/args.h"
#include "platform/platform.h"

namespace cudabk {

// One block. The global timer moves in ticks (32 ns to 1 us): the count starts and ends right behind a tick.
template <int Threads>
KERNEL(spin, Threads)(SpinArgs a) {
  if (thread_x() != 0) {
    return;
  }
  const int64_t before = global_time_ns();
  int64_t first = before;
  while (first == before) {
    first = global_time_ns();
  }
  const int64_t first_cycle = clock_cycles();
  int64_t last = first;
  while (last - first < a.duration_ns) {
    last = global_time_ns();
  }
  a.result[0] = clock_cycles() - first_cycle;
  a.result[1] = last - first;
}

}  // namespace cudabk
