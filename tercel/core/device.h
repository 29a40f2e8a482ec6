// The device of a tensor's data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel {

enum class DeviceType : int8_t { Cpu = 0, Cuda = 1 };
constexpr int kNumDeviceTypes = 2;

/** A device type and the index of the device; -1 is the current one. */
struct Device {
  DeviceType type = DeviceType::Cpu;
  int8_t index = -1;

  constexpr Device() = default;
  constexpr Device(DeviceType t, int8_t i = -1) : type(t), index(i) {}

  constexpr bool is_cpu() const { return type == DeviceType::Cpu; }
  constexpr bool is_cuda() const { return type == DeviceType::Cuda; }
  friend constexpr bool operator==(Device, Device) = default;
};

constexpr Device kCpu{DeviceType::Cpu};
constexpr Device kCuda{DeviceType::Cuda};
/** "cpu" or "cuda". */
TERCEL_API std::string_view to_string(DeviceType type);
/** "cpu", "cuda", "cuda:1". */
TERCEL_API std::string to_string(Device device);
/** The reverse of to_string(); RuntimeError for anything else. */
TERCEL_API Device parse_device(std::string_view text);

}  // namespace tercel
