// Every weight format that has a device decoder.
#pragma once

#include "formats/q4_0.h"
#include "formats/q4_K.h"
#include "formats/q6_K.h"
#include "formats/q8_0.h"
