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

/// The folder below the nearest one of these names ("compute/a100/..." -> "a100"), cut at "_"; else
/// the one above organisation and model.
std::string device_after(const KernelFile& file, std::initializer_list<std::string_view> names);
/// "organisation/model" as the folders say, or "model" below the device.
std::string model_of_folder(const KernelFile& file);

}  // namespace medley
