// What profiles are checked against, from the op list: families, names of dimensions, keys.
#pragma once

#include "dispatch/profile.h"

namespace cudabk {

// Of every op that has a choice. Keys are the values of the op's "type" axis.
FamilySet family_set();

}  // namespace cudabk
