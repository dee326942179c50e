#include <nlohmann/json.hpp>

#include "hwmodels/read.h"

namespace medley {

namespace {
template <class Read>
auto load(const std::string& path, const Read& read) {
  const nlohmann::ordered_json document = load_json(path);
  Problems problems;
  ObjectReader reader(document, path, "", problems);
  auto spec = read(reader, problems);
  problems.throw_if_any();
  return spec;
}
}  // namespace

DeviceSpec load_device(const std::string& path, const Priors* priors) {
  return load(path, [&](ObjectReader& r, Problems& p) { return read_device(r, p, priors); });
}
LinkSpec load_link(const std::string& path, const Priors* priors) {
  return load(path, [&](ObjectReader& r, Problems& p) { return read_link(r, p, priors); });
}
NodeSpec load_node(const std::string& path) {
  return load(path, read_node);
}
BackendSpec load_backend(const std::string& path) {
  return load(path, read_backend);
}
Priors load_priors(const std::string& path) {
  return load(path, read_priors);
}

}  // namespace medley
