#include "sim/validation/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace medley {

void for_each_row(const ValidationContext& context, std::size_t count,
                  const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::size_t done = 0;
  std::mutex mutex;
  std::vector<std::exception_ptr> errors(count);
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
      const std::lock_guard<std::mutex> lock(mutex);
      ++done;
      if (context.progress) context.progress(done, count);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < context.threads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
}

}  // namespace medley
