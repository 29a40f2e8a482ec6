#include "tercel/core/device.h"

#include <gtest/gtest.h>

#include "tercel/core/layout.h"
#include "tercel/util/error.h"

namespace tercel {
namespace {

TEST(Device, IsTwoBytes) { EXPECT_EQ(sizeof(Device), 2u); }

TEST(Device, NamesThereAndBack) {
  for (const Device device :
       {kCpu, Device(DeviceType::Cpu, 0), kCuda, Device(DeviceType::Cuda, 0), Device(DeviceType::Cuda, 127)})
    EXPECT_EQ(parse_device(to_string(device)), device);
  EXPECT_EQ(to_string(Device(DeviceType::Cuda, 3)), "cuda:3");
  EXPECT_EQ(to_string(kCpu), "cpu");
}

TEST(Device, Refuses) {
  for (const char* bad : {"", "gpu", "cpu:", "cuda:", "cuda:-1", "cuda:128", "cuda:1x", "cuda: 1", "CUDA", ":1",
                          "cuda:99999999999999999999", "cuda:1:1"})
    EXPECT_THROW(parse_device(bad), RuntimeError) << bad;
  try {
    parse_device("gpu");
  } catch (const RuntimeError& e) {
    EXPECT_STREQ(e.what(), "Expected one of cpu, cuda device type at start of device string: gpu");
  }
}

TEST(Device, Kinds) {
  EXPECT_TRUE(Device().is_cpu());
  EXPECT_FALSE(kCpu.is_cuda());
  EXPECT_TRUE(kCuda.is_cuda());
  EXPECT_NE(kCuda, Device(DeviceType::Cuda, 0));
}

TEST(Layout, Names) {
  EXPECT_EQ(to_string(Layout::Strided), "strided");
  EXPECT_EQ(to_string(Layout::SparseCoo), "sparse_coo");
  EXPECT_EQ(to_string(Layout::SparseCsr), "sparse_csr");
  EXPECT_EQ(to_string(Layout::SparseCsc), "sparse_csc");
  EXPECT_EQ(to_string(Layout::SparseBsr), "sparse_bsr");
  EXPECT_EQ(to_string(Layout::SparseBsc), "sparse_bsc");
  EXPECT_EQ(to_string(Layout::Opaque), "_mkldnn");
  EXPECT_EQ(to_string(MemoryFormat::Contiguous), "contiguous");
  EXPECT_EQ(to_string(MemoryFormat::Preserve), "preserve");
  EXPECT_EQ(to_string(MemoryFormat::ChannelsLast), "channels_last");
  EXPECT_EQ(to_string(MemoryFormat::ChannelsLast3d), "channels_last_3d");
}

}  // namespace
}  // namespace tercel
