#include "tercel/util/signals.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tercel/util/sanitizers_impl.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

// Result of a child that runs the body: its exit code, or 1000 + the signal that killed it.
template <class Body>
int end_of(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(Signals, FirstOneAsks) {
  const ScopedSignals scope;
  EXPECT_EQ(stop_signal(), 0);
  ::raise(SIGTERM);
  EXPECT_EQ(stop_signal(), SIGTERM);
}

TEST(Signals, SecondOneEndsTheProcess) {
#if TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer delays signals, and two of a kind become one";
#endif
  EXPECT_EQ(end_of([] {
              const ScopedSignals scope;
              ::raise(SIGINT);
              ::raise(SIGINT);
              _exit(99);
            }),
            130);
  EXPECT_EQ(end_of([] {
              const ScopedSignals scope;
              ::raise(SIGINT);
              ::raise(SIGTERM);
              _exit(99);
            }),
            143);
}

TEST(Signals, HangupAsksHoweverOftenItComes) {
  const ScopedSignals scope;
  ::raise(SIGHUP);
  ::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), SIGHUP);
  EXPECT_EQ(signal_name(stop_signal()), "SIGHUP");
}

TEST(Signals, ClosedPipeAsksHoweverOftenItIsWrittenTo) {
  const ScopedSignals scope;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(::write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(stop_signal(), SIGPIPE);
  }
  ::close(ends[1]);
  EXPECT_EQ(signal_name(SIGPIPE), "SIGPIPE");
}

TEST(Signals, UserSignalAsksForASaveAndNotForAStop) {
  const ScopedSignals scope;
  EXPECT_FALSE(take_save_request());
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  EXPECT_TRUE(take_save_request());
  EXPECT_FALSE(take_save_request());
  EXPECT_EQ(stop_signal(), 0);
}

TEST(Signals, ScopeEndsWithTheHandlersThatWereThere) {
  EXPECT_EQ(end_of([] {
              {
                const ScopedSignals scope;
                ::raise(SIGINT);
              }
              if (stop_signal() != 0) _exit(98);
              ::raise(SIGTERM);
              _exit(99);
            }),
            1000 + SIGTERM);
}

TEST(Signals, IgnoredSignalStaysIgnored) {
  EXPECT_EQ(end_of([] {
              ::signal(SIGINT, SIG_IGN);
              const ScopedSignals scope;
              ::raise(SIGINT);
              _exit(stop_signal());
            }),
            0);
}

TEST(Signals, FileSizeLimitIsAnErrorNotASignal) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(end_of([&] {
              const ScopedSignals scope;
              const rlimit limit{10, 10};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              FILE* const file = fopen((folder / "x").c_str(), "w");
              for (int i = 0; i < 100; ++i) fputc('x', file);
              _exit(fflush(file) != 0 && errno == EFBIG ? 0 : 1);
            }),
            0);
}

TEST(Signals, StopCanBeAskedForByHand) {
  const ScopedSignals scope;
  request_stop(SIGINT);
  EXPECT_EQ(stop_signal(), SIGINT);
}

}  // namespace
}  // namespace tercel
