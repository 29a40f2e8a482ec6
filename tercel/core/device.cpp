#include "tercel/core/device.h"

#include <charconv>

#include "tercel/core/layout.h"
#include "tercel/util/error.h"

namespace tercel {

std::string_view to_string(DeviceType type) {
  switch (type) {
    case DeviceType::Cpu: return "cpu";
    case DeviceType::Cuda: return "cuda";
  }
  return "unknown";
}

std::string to_string(Device device) {
  std::string out(to_string(device.type));
  if (device.index >= 0) out += ":" + std::to_string(device.index);
  return out;
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  TERCEL_CHECK(type == "cpu" || type == "cuda", RuntimeError,
               "Expected one of cpu, cuda device type at start of device string: ", text);
  Device device;
  if (type == "cuda") device.type = DeviceType::Cuda;
  if (colon == std::string_view::npos) return device;
  int index = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, index);
  TERCEL_CHECK(error == std::errc() && stop == end && index >= 0 && index < 128, RuntimeError,
               "Invalid device string: '", text, "'");
  device.index = static_cast<int8_t>(index);
  return device;
}

std::string_view to_string(Layout layout) {
  switch (layout) {
    case Layout::Strided: return "strided";
    case Layout::SparseCoo: return "sparse_coo";
    case Layout::SparseCsr: return "sparse_csr";
    case Layout::SparseCsc: return "sparse_csc";
    case Layout::SparseBsr: return "sparse_bsr";
    case Layout::SparseBsc: return "sparse_bsc";
    case Layout::Opaque: return "_mkldnn";
  }
  return "unknown";
}

void refuse_layout(std::string_view op, Layout layout) {
  throw_error<NotImplementedError>({op, ": not implemented for layout ", to_string(layout)});
}

std::string_view to_string(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: return "contiguous";
    case MemoryFormat::Preserve: return "preserve";
    case MemoryFormat::ChannelsLast: return "channels_last";
    case MemoryFormat::ChannelsLast3d: return "channels_last_3d";
  }
  return "unknown";
}

}  // namespace tercel
