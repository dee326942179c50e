#include "sim/report/table_file.h"
#include "sim/report/writers.h"

namespace medley {

void write_links_csv(const Analysis& a, const std::string& path) {
  TableFile out("links.csv", path);
  const double run = a.account().run_s();
  for (const LinkRecord& link : a.result().links) {
    const bool in_bytes =
        link.kind == LinkRecord::Kind::kWire || link.kind == LinkRecord::Kind::kMemory;
    out.text(to_string(link.kind)).text(link.name).text(link.link);
    out.text(in_bytes ? to_string(link.provenance) : "");
    out.number(in_bytes ? link.capacity : kBlank).number(in_bytes ? link.bytes : kBlank);
    out.number(link_utilization(link, run)).number(link.busy_s).number(link.saturated_s);
    out.number(link.waited_s());
    for (const TrafficWaits& w : link.waits) out.integer(w.count).number(w.seconds);
    out.end_row();
  }
  out.close();
}

double link_utilization(const LinkRecord& link, double run_s) {
  return link.capacity > 0.0 && run_s > 0.0 ? link.bytes / (link.capacity * run_s) : kBlank;
}

}  // namespace medley
