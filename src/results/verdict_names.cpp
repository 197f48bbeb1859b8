#include "results/compare.h"

namespace cudabk {

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kImproved:
      return "improved";
    case Verdict::kSame:
      return "same";
    case Verdict::kRegressed:
      return "regressed";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kMissing:
      return "missing";
    case Verdict::kUnchangedCode:
      return "unchanged code";
  }
  return "missing";
}

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kFewSamples:
      return "few-samples";
    case Reason::kNoise:
      return "noise";
    case Reason::kClock:
      return "clock";
    case Reason::kRepetitions:
      return "repetitions";
    case Reason::kThrottled:
      return "throttled";
    case Reason::kNoBaseline:
      return "no-baseline";
    case Reason::kNoCandidate:
      return "no-candidate";
    case Reason::kOtherDevice:
      return "other-device";
    case Reason::kOtherMode:
      return "other-mode";
    case Reason::kOtherTimer:
      return "other-timer";
    case Reason::kWrongOutput:
      return "wrong-output";
    case Reason::kNotMeasured:
      return "not-measured";
    case Reason::kNeitherSide:
      return "neither-side";
  }
  return "";
}

}  // namespace cudabk
