#include "tercel/core/dispatch.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace tercel {

using TestKernel = int(int);

// Kernels of two fictitious ops: one also for CUDA if it is built, one intentionally for the CPU only.
TERCEL_DECLARE_KERNELS(TestKernel, test_kernel)
TERCEL_DECLARE_KERNELS(TestKernel, test_cpu_kernel)
namespace cpu_generic {
int test_kernel(int x) { return x; }
int test_cpu_kernel(int x) { return x; }
}  // namespace cpu_generic
namespace cpu_avx2 {
int test_kernel(int x) { return x + 100; }
int test_cpu_kernel(int x) { return x + 100; }
}  // namespace cpu_avx2
namespace cpu_avx512 {
int test_kernel(int x) { return x + 200; }
int test_cpu_kernel(int x) { return x + 200; }
}  // namespace cpu_avx512
namespace cuda {
int test_kernel(int x) { return x + 300; }
int test_cpu_kernel(int) { return 0; }
}  // namespace cuda

namespace {

using test::message_of;

constinit const KernelTable<TestKernel> kKernels = TERCEL_KERNELS(test_kernel);
constinit const KernelTable<TestKernel> kCpuKernels = TERCEL_CPU_KERNELS(test_cpu_kernel);

/** Sets TERCEL_CPU_ISA and resets the chosen instruction set; restores both. */
class Dispatch : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* set = std::getenv("TERCEL_CPU_ISA");
    old_ = set ? set : "";
    slot_ = detail::g_cpu_slot;
  }
  void TearDown() override {
    choose(old_.c_str());
    detail::g_cpu_slot = slot_;
  }
  static void choose(const char* isa) {
    setenv("TERCEL_CPU_ISA", isa, 1);
    detail::g_cpu_slot = -1;
  }

 private:
  std::string old_;
  int8_t slot_ = -1;
};

TEST_F(Dispatch, NamesOfInstructionSets) {
  EXPECT_EQ(to_string(CpuIsa::Generic), "generic");
  EXPECT_EQ(to_string(CpuIsa::Avx2), "avx2");
  EXPECT_EQ(to_string(CpuIsa::Avx512), "avx512");
}

TEST_F(Dispatch, BestIsTheDefault) {
  choose("");
  EXPECT_EQ(cpu_isa(), best_cpu_isa());
  unsetenv("TERCEL_CPU_ISA");
  detail::g_cpu_slot = -1;
  EXPECT_EQ(cpu_isa(), best_cpu_isa());
}

TEST_F(Dispatch, VariableChooses) {
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    choose(std::string(to_string(isa)).c_str());
    if (isa <= best_cpu_isa()) {
      EXPECT_EQ(cpu_isa(), isa);
      EXPECT_EQ(kernel_slot(kCpu), static_cast<int>(isa));
    } else {
      EXPECT_EQ(message_of<RuntimeError>([] { cpu_isa(); }),
                str_cat({"TERCEL_CPU_ISA=", to_string(isa), ": this CPU or this build lacks it; the best is ",
                         to_string(best_cpu_isa())}));
    }
  }
}

TEST_F(Dispatch, VariableIsReadOnce) {
  choose("generic");
  EXPECT_EQ(cpu_isa(), CpuIsa::Generic);
  setenv("TERCEL_CPU_ISA", "nonsense", 1);
  EXPECT_EQ(cpu_isa(), CpuIsa::Generic);
}

TEST_F(Dispatch, WrongVariableIsRefused) {
  for (const char* bad : {"sse", "AVX2", "avx512 ", "3"}) {
    choose(bad);
    EXPECT_EQ(message_of<RuntimeError>([] { cpu_isa(); }),
              str_cat({"TERCEL_CPU_ISA=", bad, ": expected generic, avx2 or avx512"}));
  }
}

TEST_F(Dispatch, SetCpuIsa) {
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    if (isa <= best_cpu_isa()) {
      set_cpu_isa(isa);
      EXPECT_EQ(cpu_isa(), isa);
    } else {
      EXPECT_EQ(message_of<RuntimeError>([&] { set_cpu_isa(isa); }).find("set_cpu_isa: "), 0u);
    }
  }
}

TEST_F(Dispatch, TableFindsTheKernel) {
  for (int i = 0; i <= static_cast<int>(best_cpu_isa()); ++i) {
    set_cpu_isa(static_cast<CpuIsa>(i));
    EXPECT_EQ(kKernels[kCpu](7), 7 + 100 * i);
    EXPECT_EQ(kCpuKernels[kCpu](7), 7 + 100 * i);
  }
  EXPECT_EQ(kernel_slot(kCuda), detail::kCudaSlot);
}

TEST_F(Dispatch, MissingKernelNamesOpAndDevice) {
  EXPECT_EQ(message_of<NotImplementedError>([] { kCpuKernels[Device(DeviceType::Cuda, 1)](7); }),
            "test_cpu_kernel: not implemented for device cuda:1");
#ifdef TERCEL_CUDA
  EXPECT_EQ(kKernels[kCuda](7), 307);
#else
  EXPECT_THROW(kKernels[kCuda](7), NotImplementedError);
#endif
}

TEST(DispatchThreads, FirstUseMayRace) {
  detail::g_cpu_slot = -1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([] { EXPECT_EQ(kKernels[kCpu](0) % 100, 0); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tercel
