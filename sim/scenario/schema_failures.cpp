#include "sim/scenario/schema_sections.h"

namespace medley {

SchemaSection failures_section() {
  return {
      "Failures",
      "Devices, nodes, replicas (their engine) and links that fail, at given times or at random; "
      "the first two take down every replica that sits on them, a link those whose own traffic "
      "crosses it. What fails is seen at once. `<kind>` is device, node, replica or link; each "
      "part has a random stream of its own.",
      {{"failures.events", "list of {at, for, device or node or replica or link}", "none",
        "`for` absent: for good; `h100/0/3` is a device, `h100/0` a node, `chat/1` a replica, "
        "`h100/0/gpu3 - h100/0/nvswitch` a link (`medley show topology`)"},
       {"failures.mtbf", "{<kind>: time}", "none",
        "mean time between failures of one part of that kind, from its last repair"},
       {"failures.mttr", "{<kind>: time}", "required with mtbf (replica: 0 s)",
        "mean time to repair, exponential"},
       {"failures.shape", "{<kind>: number}", "1",
        "of the Weibull distribution of the time between failures; 1 is exponential"},
       {"failures.restart", "time", "0 s",
        "engine start after the repair, until the replica takes requests"},
       {"failures.requests", "retry, lose", "retry",
        "what becomes of requests on a replica that fails, running or queued: another takes them, "
        "or they are lost"},
       {"failures.keep_output", "true/false", "true",
        "retried: tokens already streamed are kept and recomputed as part of the prompt; false: "
        "the answer starts again"},
       {"failures.max_retries", "integer 0..1000", "3", "then a request is lost"},
       {"failures.shed.above", "number", "required in shed",
        "outstanding requests per healthy replica from which requests are refused while a replica "
        "of their model is down"},
       {"failures.shed.below_priority", "integer", "0",
        "only requests less urgent than this: with a higher number"},
       {"failures.power", "deep_idle, off", "deep_idle",
        "of the devices of a replica that is down, until repaired; context idle from then on. The "
        "node around them draws what it always does"}}};
}

}  // namespace medley
