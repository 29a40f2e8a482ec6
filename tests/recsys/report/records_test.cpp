// The files beside metrics.jsonl: metrics.csv, events, details.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tercel/recsys/report/details.h"
#include "tercel/recsys/report/event_writer.h"
#include "tercel/recsys/report/metrics_csv.h"
#include "tercel/util/crc32c.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys {
namespace {

using tercel::test::TemporaryFolder;

TEST(MetricsRecords, WithAndWithoutPart) {
  const TemporaryFolder root;
  const std::string path = root.put("metrics.jsonl",
                                    "{\"kind\":\"train\",\"step\":2,\"loss\":0.5}\n"
                                    "{\"kind\":\"evaluation\",\"step\":3,\"auc\":null,\"note\":\"x\"}\n"
                                    "{\"kind\":\"evaluation\",\"part\":\"valid\",\"step\":4,\"auc\":0.75}\n"
                                    "{\"kind\":\"evalua");
  std::vector<std::string> warnings;
  const std::vector<MetricsRecord> records = read_metrics(path, warnings);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].values, (std::vector<std::pair<std::string, double>>{{"loss", 0.5}}));
  EXPECT_EQ(records[1].part, "");
  ASSERT_EQ(records[1].values.size(), 1u);
  EXPECT_TRUE(std::isnan(records[1].values[0].second));
  EXPECT_EQ(records[2].part, "valid");
  EXPECT_EQ(records[2].step, 4);
  EXPECT_TRUE(read_metrics(root / "none.jsonl", warnings).empty());
  EXPECT_TRUE(warnings.empty()) << "a last line that is cut short is no damage";
  const std::string good = "{\"kind\":\"train\",\"step\":";
  for (const std::string& bad : {std::string("[]"), std::string("{\"step\":1}"), good + "\"1\"}", std::string("{"),
                                 std::string(), std::string("\xff"), good + good + "2}", std::string(500, 'x')}) {
    root.put("bad.jsonl", good + "1}\n" + bad + "\n" + good + "3}\n");
    warnings.clear();
    const std::vector<MetricsRecord> left = read_metrics(root / "bad.jsonl", warnings);
    ASSERT_EQ(left.size(), 2u) << bad;
    EXPECT_EQ(left[1].step, 3);
    ASSERT_EQ(warnings.size(), 1u) << bad;
    EXPECT_NE(warnings[0].find("bad.jsonl: line 2 is left out: expected an object with 'kind' and 'step', found '"),
              std::string::npos)
        << warnings[0];
    EXPECT_LT(warnings[0].size(), 300u);
  }
}

TEST(MetricsCsv, HasARowForEachRecordAndAHeaderThatStays) {
  const TemporaryFolder root;
  root.put("metrics.jsonl", "{\"kind\":\"train\",\"step\":2,\"loss\":0.5}\n");
  MetricsCsv csv(root / "metrics.csv", root / "metrics.jsonl", {"auc", "auc/a,b"});
  const std::string header = "step,kind,part,loss,learning_rate,samples_per_second,auc,\"auc/a,b\"\n";
  EXPECT_EQ(root.get("metrics.csv"), header + "2,train,,0.5,,,,\n");
  csv.add({"evaluation", "test", 3, {{"auc", 0.75}, {"auc/a,b", std::nan("")}}});
  csv.add({"train", "", 4, {{"loss", 0.25}, {"learning_rate", 1e-7}, {"samples_per_second", 1000}}});
  EXPECT_EQ(root.get("metrics.csv"),
            header + "2,train,,0.5,,,,\n3,evaluation,test,,,,0.75,nan\n4,train,,0.25,1e-07,1000,,\n");
  // A name that nobody announced becomes a column behind the others; the rows are those of metrics.jsonl.
  root.put("metrics.jsonl",
           "{\"kind\":\"train\",\"step\":2,\"loss\":0.5}\n{\"kind\":\"train\",\"step\":5,\"new\":1}\n");
  csv.add({"train", "", 5, {{"new", 1}}});
  csv.add({"train", "", 6, {{"new", 2}}});
  EXPECT_EQ(root.get("metrics.csv"),
            header.substr(0, header.size() - 1) + ",new\n2,train,,0.5,,,,,\n5,train,,,,,,,1\n6,train,,,,,,,2\n");
}

TEST(EvaluationDetails, AreReadAsTheyWereWritten) {
  const TemporaryFolder root;
  EvaluationDetails details{"test", 7, "slot", {{"loss", {{10, 0.25, 0.2}, {5, 0.5, 0.75}}, {}}}};
  details.heads[0].slices.push_back({3, "", 11, 0.5, {{"auc", std::nan("")}, {"log_loss", 0.25}}});
  write_details(root / "details.json", {details, {"valid", 7, "", {}}});
  const std::vector<EvaluationDetails> found = read_details(root / "details.json");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].part, "valid");
  EXPECT_EQ(found[0].slice_by, "slot");
  ASSERT_EQ(found[0].heads.size(), 1u);
  EXPECT_EQ(found[0].heads[0].bins, details.heads[0].bins);
  ASSERT_EQ(found[0].heads[0].slices.size(), 1u);
  const Slice& slice = found[0].heads[0].slices[0];
  EXPECT_EQ(slice.key, 3);
  EXPECT_EQ(slice.rows, 11);
  EXPECT_TRUE(std::isnan(slice.values.at(0).second));
  EXPECT_EQ(slice.values.at(1).second, 0.25);
  EXPECT_TRUE(read_details(root / "none.json").empty());
  for (const char* bad :
       {"[1]", "[{}]", "{\"part\": 1}", R"([{"part":"test","step":1e300,"slice_by":"","heads":[]}])",
        R"([{"part":"test","step":1,"slice_by":"","heads":[{"name":"x","bins":[{}],"slices":[]}]}])"}) {
    root.put("bad.json", bad);
    TERCEL_EXPECT_THROW(read_details(root / "bad.json"), DataError, "bad.json: expected the details of evaluations");
  }
  root.put("bad.json", "[");
  TERCEL_EXPECT_THROW(read_details(root / "bad.json"), DataError, "bad.json: line 1");
}

// ---- events, read without the code that writes them

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.at(0));
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

/** Fields of a protobuf message by their number, with the bytes of each. */
std::multimap<uint64_t, std::string> fields_of(std::string_view bytes) {
  std::multimap<uint64_t, std::string> fields;
  while (!bytes.empty()) {
    const uint64_t key = take_varint(bytes);
    size_t size = 0;
    switch (key & 7) {
      case 0: {
        const uint64_t value = take_varint(bytes);
        fields.emplace(key >> 3, std::to_string(value));
        continue;
      }
      case 1: size = 8; break;
      case 2: size = take_varint(bytes); break;
      case 5: size = 4; break;
      default: ADD_FAILURE() << "wire type " << (key & 7); return fields;
    }
    fields.emplace(key >> 3, std::string(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  return fields;
}

template <class T>
T number_of(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/** The messages of TFRecords, whose checksums are compared. */
std::vector<std::multimap<uint64_t, std::string>> events_of(std::string_view bytes) {
  const auto masked = [](std::string_view data) {
    const uint32_t crc = crc32c(data);
    return static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8u);
  };
  std::vector<std::multimap<uint64_t, std::string>> events;
  while (!bytes.empty()) {
    const auto length = number_of<uint64_t>(bytes);
    EXPECT_EQ(number_of<uint32_t>(bytes.substr(8)), masked(bytes.substr(0, 8)));
    EXPECT_EQ(number_of<uint32_t>(bytes.substr(12 + length)), masked(bytes.substr(12, length)));
    events.push_back(fields_of(bytes.substr(12, length)));
    bytes.remove_prefix(16 + length);
  }
  return events;
}

TEST(EventWriter, WritesRecordsOfMessages) {
  const TemporaryFolder root;
  EventWriter writer(root.path(), 8), other(root.path(), 1);
  EXPECT_NE(writer.path(), other.path()) << "of the same second and process";
  EXPECT_NE(writer.path().find("/events.out.tfevents."), std::string::npos);
  writer.add({"train", "", 300, {{"loss", 0.5}, {"learning_rate", std::nan("")}}});
  writer.add({"evaluation", "valid", 301, {{"auc", 0.75}}});
  writer.add({"evaluation", "", 302, {{"auc", std::nan("")}}});  // nothing to write
  writer.add_text("config", "a\nb", 303);
  const auto events = events_of(root.get(writer.path().substr(root.path().size() + 1)));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].find(3)->second, "brain.Event:2");
  EXPECT_EQ(events[1].find(2)->second, "8");
  EXPECT_EQ(fields_of(events[1].find(7)->second).find(1)->second, "1") << "SessionLog::START";
  EXPECT_GT(number_of<double>(events[2].find(1)->second), 1.6e9) << "seconds since 1970";
  EXPECT_EQ(events[2].find(2)->second, "300");
  const auto summary = fields_of(events[2].find(5)->second);
  ASSERT_EQ(summary.count(1), 1u) << "without the value that is no number";
  const auto value = fields_of(summary.find(1)->second);
  EXPECT_EQ(value.find(1)->second, "train/loss");
  EXPECT_EQ(number_of<float>(value.find(2)->second), 0.5f);
  const auto valid = fields_of(fields_of(events[3].find(5)->second).find(1)->second);
  EXPECT_EQ(valid.find(1)->second, "valid/auc");
  const auto text = fields_of(fields_of(events[4].find(5)->second).find(1)->second);
  const auto tensor = fields_of(text.find(8)->second);
  EXPECT_EQ(tensor.find(1)->second, "7") << "DT_STRING";
  EXPECT_EQ(tensor.find(8)->second, "a\nb");
  EXPECT_EQ(fields_of(fields_of(text.find(9)->second).find(1)->second).find(1)->second, "text");
}

}  // namespace
}  // namespace tercel::recsys
