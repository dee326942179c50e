#include <fmt/format.h>

#include <csignal>
#include <exception>

#include "sim/core/error.h"
#include "sim/core/version.h"
#include "sim/runtime/simulation.h"
#include "tools/command.h"

namespace medley::cli {

namespace {
std::atomic<bool> g_interrupt{false};  // NOLINT: a signal handler has nothing else to talk to
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int /*signal*/) {
  g_interrupt.store(true);
}

/// The first Ctrl-C asks the run to stop, the second one kills it.
void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

int run_action(const Action& action) {
  try {
    return action();
  } catch (const InputError& e) {
    for (const Problem& p : e.problems()) complain(to_text(p));
    return kBadInput;
  } catch (const InfeasibleError& e) {
    complain(e.what());
    return kFailed;
  } catch (const Interrupted& e) {
    complain(e.what());
    return kInterrupted;
  } catch (const InternalError& e) {
    complain(fmt::format("internal error, please report it: {}", e.what()));
    return kInternal;
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return kInternal;
  } catch (const std::runtime_error& e) {  // the system said no: disk, pipe, permissions
    complain(e.what());
    return kBadInput;
  } catch (const std::exception& e) {
    complain(fmt::format("internal error, please report it: {}", e.what()));
    return kInternal;
  }
}

void build(CLI::App& app, Action& action) {
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("medley {}", kVersion));
  app.set_help_flag("-h,--help", "show this help");
  app.fallthrough(false);
  add_run(app, action);
  add_compare(app, action);
  add_check(app, action);
  add_list(app, action);
  add_show(app, action);
  add_explain(app, action);
  add_trace(app, action);
  add_calibrate(app, action);
  add_check_against(app, action);
  add_import(app, action);
  add_validate(app, action);
  add_completion(app, action);
  app.footer(
      "Start with: medley run configs/scenarios/mixed_fleet.json\n"
      "Exit codes: 0 ok, 1 infeasible or a --fail-on condition holds, 2 bad input, 3 internal "
      "error, 130 interrupted");
}
}  // namespace

const std::atomic<bool>& interrupt_flag() {
  return g_interrupt;
}

}  // namespace medley::cli

int main(int argc, char** argv) {
  using namespace medley::cli;
  CLI::App app("Simulator of heterogeneous AI infrastructure: time, energy and cost of a workload",
               "medley");
  Action action;
  build(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const bool asked = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    app.exit(e);
    return asked ? kOk : kBadInput;
  }
  catch_interrupt();
  return run_action(action);
}
