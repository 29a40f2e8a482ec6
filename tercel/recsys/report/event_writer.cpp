#include "tercel/recsys/report/event_writer.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "tercel/util/crc32c.h"

namespace tercel::recsys {

namespace {

// Wire types of protobuf: the low bits of a field's key.
enum class Wire : uint8_t { Varint = 0, Bits64 = 1, Bytes = 2, Bits32 = 5 };

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(static_cast<uint8_t>(value | 128));
  return bytes += static_cast<char>(static_cast<uint8_t>(value));
}

std::string key_of(uint64_t field, Wire wire) { return varint(field << 3 | static_cast<uint8_t>(wire)); }
std::string integer(uint64_t field, int64_t value) {
  return key_of(field, Wire::Varint) + varint(static_cast<uint64_t>(value));
}
/** A string or a message. */
std::string content(uint64_t field, std::string_view bytes) {
  return key_of(field, Wire::Bytes) + varint(bytes.size()) + std::string(bytes);
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/** Value of a Summary: a scalar. */
std::string scalar(std::string_view tag, double value) {
  constexpr uint64_t kTag = 1, kSimpleValue = 2;
  return content(kTag, tag) + key_of(kSimpleValue, Wire::Bits32) + bytes_of(static_cast<float>(value));
}

/** Value of a Summary: a tensor of one string, shown by TensorBoard's plugin for texts. */
std::string text_value(std::string_view tag, std::string_view text) {
  constexpr uint64_t kTag = 1, kTensor = 8, kMetadata = 9;                       // of Value
  constexpr uint64_t kPluginData = 1, kPluginName = 1;                           // of SummaryMetadata, PluginData
  constexpr uint64_t kDtype = 1, kShape = 2, kStrings = 8, kDim = 2, kSize = 1;  // of TensorProto, TensorShapeProto
  constexpr int64_t kString = 7;
  const std::string shape = content(kDim, integer(kSize, 1));
  return content(kTag, tag) + content(kMetadata, content(kPluginData, content(kPluginName, "text"))) +
         content(kTensor, integer(kDtype, kString) + content(kShape, shape) + content(kStrings, text));
}

constexpr uint64_t kFileVersion = 3, kSummary = 5, kSessionLog = 7;  // of Event
constexpr uint64_t kSummaryValue = 1;

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  std::string host(name);
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

constexpr std::string_view kPrefix = "events.out.tfevents.";

/** TensorBoard reads the files of a folder in the order of their names: each has a later second than those before it.
 */
File create_events(const std::string& folder) {
  int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (const std::string& name : list_dir(folder)) {
    int64_t other = 0;
    if (!name.starts_with(kPrefix)) continue;
    const auto read = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), other);
    if (read.ec == std::errc() && other < INT64_MAX) seconds = std::max(seconds, other + 1);
  }
  return File::create_new(join_path(
      folder, std::string(kPrefix) + std::to_string(seconds) + "." + host_name() + "." + std::to_string(::getpid())));
}

}  // namespace

EventWriter::EventWriter(const std::string& folder, int64_t first_step) : file_(create_events(folder)) {
  constexpr uint64_t kStatus = 1;
  constexpr int64_t kStart = 1;
  write(0, content(kFileVersion, "brain.Event:2"));
  write(first_step, content(kSessionLog, integer(kStatus, kStart)));
}

void EventWriter::write(int64_t step, const std::string& fields) {
  constexpr uint64_t kWallTime = 1, kStep = 2;
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string event = key_of(kWallTime, Wire::Bits64) + bytes_of(now) + integer(kStep, step) + fields;
  const std::string length = bytes_of(static_cast<uint64_t>(event.size()));
  const std::string record = length + bytes_of(masked_crc(length)) + event + bytes_of(masked_crc(event));
  file_.write_all(record.data(), record.size());
}

void EventWriter::add(const MetricsRecord& record) {
  std::string summary;
  for (const auto& [name, value] : record.values)
    if (std::isfinite(value))
      summary += content(kSummaryValue, scalar((record.part.empty() ? record.kind : record.part) + "/" + name, value));
  if (!summary.empty()) write(record.step, content(kSummary, summary));
}

void EventWriter::add_text(std::string_view tag, std::string_view text, int64_t step) {
  write(step, content(kSummary, content(kSummaryValue, text_value(tag, text))));
}

}  // namespace tercel::recsys
