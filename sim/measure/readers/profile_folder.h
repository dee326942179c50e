#pragma once

#include "sim/measure/readers/kernel_readers.h"
#include "workloads/model.h"

namespace medley {

/// What the folders around a profile say: <device>/<organisation>/<model>/<format>/tp<N>/..., and a
/// meta.yaml (keys gpu, model, variant) in one of the two folders above, which goes first.
/// Options go before both. Throws InputError where no model is named that we know.
struct ProfileFolder {
  ModelSpec model;
  Precision precision;
  int tp = 1;
};
ProfileFolder profile_folder(const KernelFile& file, KernelSink& sink);

/// The same for a table that names shapes itself: device by the folder above the model's.
std::string device_of_folder(const KernelFile& file);

}  // namespace medley
