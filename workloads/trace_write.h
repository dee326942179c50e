#pragma once

#include <string>

#include "workloads/request.h"

namespace medley {

/// The trace as native CSV (workloads/README.md), one row a request in trace order; columns that
/// say nothing are left out. Times are exact: seconds with as many digits as they need. Reading
/// the text back gives the same trace up to row numbers, names that occur on no request, and the
/// sharing of equal id ranges.
std::string native_csv(const Trace& trace);

/// Writes it, compressed when the name ends in ".gz". The same trace gives the same bytes.
void write_native_csv(const Trace& trace, const std::string& path);

}  // namespace medley
