// With a small stack limit (ulimit -s) the program runs on a separate thread.
#include <gtest/gtest.h>

#include <string>

#include "tercel/util/sanitizers_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;

test::ProgramOptions small_stack() {
  test::ProgramOptions options;
  options.stack_bytes = 64 << 10;
  return options;
}

TEST(SmallStack, IsEnoughForEveryModel) {
  const test::TemporaryFolder root;
  const Outcome generated = run({"generate", root / "data", "--preset", "small", "--rows", "5000"}, small_stack());
  ASSERT_EQ(generated.code, 0) << generated.err;
  for (const std::string model : {"dlrm", "wdl", "deepfm", "dcn"}) {
    const Outcome trained =
        run({"train", root / "data", "--model", model, "--out", root / model, "--threads", "2"}, small_stack());
    EXPECT_EQ(trained.code, 0) << model << ": " << trained.err;
  }
  expect_error(run({"train", root / "data", "--model", "x"}, small_stack()), 2, {"x"});
  EXPECT_EQ(run({"eval", root / "dlrm", root / "data"}, small_stack()).code, 0);
}

#if !TERCEL_ADDRESS_SANITIZER && !TERCEL_THREAD_SANITIZER  // which need terabytes of addresses

TEST(SmallStack, WithoutRoomForALargerOneIsAnError) {
  test::ProgramOptions options = small_stack();
  Outcome outcome;
  // The smallest address space in which the program starts.
  for (options.address_bytes = 16 << 20; outcome.code != 5 && options.address_bytes < 96 << 20;
       options.address_bytes += 2 << 20)
    outcome = run({"doctor"}, options);
  expect_error(outcome, 5, {"limit of the stack (ulimit -s) is below 8.0 MiB"});
}

#endif

}  // namespace
}  // namespace tercel::cli
