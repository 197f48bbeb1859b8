// Arguments of the probe: a kernel of no op, with which devices and the emulated GPU check themselves.
#pragma once

#include "platform/types.h"

namespace cudabk {

// y[i] = scale * x[i] for i < count.
struct ProbeArgs {
  const float* x;
  float* y;
  int count;
  float scale;
};

}  // namespace cudabk
