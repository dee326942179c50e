#include "sim/runtime/records.h"

namespace medley {

std::string_view to_string(RequestStatus status) {
  switch (status) {
    case RequestStatus::kFinished:
      return "finished";
    case RequestStatus::kRejectedTooLong:
      return "rejected_too_long";
    case RequestStatus::kRejectedNeverFits:
      return "rejected_never_fits";
    case RequestStatus::kRejectedNoModel:
      return "rejected_no_model";
    case RequestStatus::kLost:
      return "lost";
    case RequestStatus::kShed:
      return "shed";
    case RequestStatus::kUnfinished:
      return "unfinished";
  }
  return "";
}

std::string_view to_string(LinkRecord::Kind kind) {
  switch (kind) {
    case LinkRecord::Kind::kWire:
      return "wire";
    case LinkRecord::Kind::kArithmetic:
      return "arithmetic";
    case LinkRecord::Kind::kMemory:
      return "memory";
    case LinkRecord::Kind::kDeviceTime:
      return "device";
  }
  return "";
}

std::string_view to_string(Stability s) {
  switch (s) {
    case Stability::kStable:
      return "stable";
    case Stability::kSaturated:
      return "saturated";
    case Stability::kInconclusive:
      return "inconclusive";
  }
  return "";
}

}  // namespace medley
