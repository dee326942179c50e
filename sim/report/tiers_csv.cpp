#include "sim/report/table_file.h"
#include "sim/report/writers.h"

namespace medley {

namespace {
void place(TableFile& out, std::uint32_t index) {
  if (index == TierRecord::kAll) {
    out.blank();
  } else {
    out.integer(index);
  }
}
}  // namespace

void write_tiers_csv(const Analysis& a, const std::string& path) {
  TableFile out("tiers.csv", path);
  for (const TierRecord& t : a.result().tiers) {
    const PoolSpec& pool = a.scenario().pools[t.pool];
    out.text(pool.name).integer(t.level).text(to_string(pool.tiering.tiers[t.level].where));
    place(out, t.node);
    place(out, t.replica);
    out.number(t.capacity).number(t.peak).integer(t.recalls).integer(t.recalled_tokens);
    out.number(t.bytes_in).number(t.bytes_out).integer(t.stored_entries);
    out.integer(t.evicted_entries).integer(t.dropped_entries);
    out.end_row();
  }
  out.close();
}

void write_migrations_csv(const Analysis& a, const std::string& path) {
  TableFile out("migrations.csv", path);
  for (const MigrationRecord& m : a.result().migrations) {
    const ReplicaRecord& from = a.result().replicas[m.from];
    out.integer(a.scenario().trace.requests[m.request].row);
    out.text(a.scenario().pools[from.pool].name).integer(from.replica);
    out.integer(a.result().replicas[m.to].replica);
    out.seconds(m.began.ns()).seconds(m.stopped.ns()).seconds(m.arrived.ns());
    out.seconds(m.arrived.ns() - m.stopped.ns()).integer(m.rounds).number(m.bytes);
    out.end_row();
  }
  out.close();
}

}  // namespace medley
