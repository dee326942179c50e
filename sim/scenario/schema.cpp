#include "sim/scenario/schema.h"

#include <fmt/format.h>

#include "sim/core/csv.h"
#include "sim/scenario/schema_sections.h"
#include "sim/serving/routing.h"

namespace medley {

namespace {
SchemaSection routing_section() {
  SchemaSection s;
  s.title = "Routing";
  s.note = "Which replica a request goes to, among those that serve its model.";
  s.keys.push_back({"routing.policy", "name", "least_outstanding_requests", "one of the below"});
  for (const auto& [name, entry] : routing_registry().entries()) {
    s.keys.push_back({"", "`" + name + "`", "", entry.summary});
    for (const ParamInfo& p : entry.params) {
      s.keys.push_back({"routing." + p.name, fmt::format("number (with {})", name),
                        number_text(p.fallback), p.summary});
    }
  }
  return s;
}

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}
}  // namespace

const std::vector<SchemaSection>& scenario_schema() {
  static const std::vector<SchemaSection> sections = [] {
    std::vector<SchemaSection> all = {general_section(), nodes_section(), fabric_section(),
                                      pools_section(), engine_section()};
    for (SchemaSection& t : tier_sections()) all.push_back(std::move(t));
    all.push_back(routing_section());
    for (SchemaSection& s : workload_sections()) all.push_back(std::move(s));
    for (SchemaSection& s : settings_sections()) all.push_back(std::move(s));
    all.push_back(failures_section());
    return all;
  }();
  return sections;
}

std::string schema_markdown() {
  std::string out;
  for (const SchemaSection& section : scenario_schema()) {
    out += fmt::format("\n### {}\n\n", section.title);
    if (!section.note.empty()) out += section.note + "\n\n";
    out += "| key | value | default | meaning |\n|---|---|---|---|\n";
    for (const SchemaKey& k : section.keys) {
      const std::string path = k.path.empty() ? "" : fmt::format("`{}`", k.path);
      out += fmt::format("| {} | {} | {} | {} |\n", path, cell(k.type), cell(k.fallback),
                         cell(k.summary));
    }
  }
  return out;
}

}  // namespace medley
