#include "tercel/recsys/report/details.h"

#include <cmath>
#include <limits>

#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

namespace {

Json number_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double read_number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

/** Json::exception for other numbers, which get() would convert. */
int64_t read_integer(const Json& json) { return json.get_ref<const Json::number_integer_t&>(); }

Json json_of(const HeadDetails& head) {
  Json bins = Json::array(), slices = Json::array();
  for (const ReliabilityBin& bin : head.bins)
    bins.push_back({{"rows", bin.rows}, {"prediction", bin.prediction}, {"label", bin.label}});
  for (const Slice& slice : head.slices) {
    Json entry{{"key", slice.key}, {"rows", slice.rows}, {"label", number_of(slice.label)}};
    for (const auto& [name, value] : slice.values) entry["metrics"][name] = number_of(value);
    slices.push_back(std::move(entry));
  }
  return {{"name", head.name}, {"bins", std::move(bins)}, {"slices", std::move(slices)}};
}

HeadDetails head_of(const Json& json) {
  HeadDetails head{json.at("name").get<std::string>(), {}, {}};
  for (const Json& bin : json.at("bins"))
    head.bins.push_back(
        {bin.at("rows").get<double>(), bin.at("prediction").get<double>(), bin.at("label").get<double>()});
  for (const Json& entry : json.at("slices")) {
    Slice slice;
    slice.key = read_integer(entry.at("key"));
    slice.rows = read_integer(entry.at("rows"));
    slice.label = read_number(entry.at("label"));
    for (const auto& [name, value] : entry.at("metrics").items()) slice.values.emplace_back(name, read_number(value));
    head.slices.push_back(std::move(slice));
  }
  return head;
}

}  // namespace

std::string details_text(const std::vector<EvaluationDetails>& all) {
  Json list = Json::array();
  for (const EvaluationDetails& details : all) {
    Json heads = Json::array();
    for (const HeadDetails& head : details.heads) heads.push_back(json_of(head));
    list.push_back(
        {{"part", details.part}, {"step", details.step}, {"slice_by", details.slice_by}, {"heads", std::move(heads)}});
  }
  return dump_json(list);
}

std::vector<EvaluationDetails> parse_details(std::string_view text, std::string_view name) {
  std::vector<EvaluationDetails> all;
  const Json list = parse_json(text, name, JsonErrors::Data);
  try {
    for (const Json& json : list) {
      EvaluationDetails details{json.at("part").get<std::string>(),
                                read_integer(json.at("step")),
                                json.at("slice_by").get<std::string>(),
                                {}};
      for (const Json& head : json.at("heads")) details.heads.push_back(head_of(head));
      all.push_back(std::move(details));
    }
  } catch (const Json::exception& e) {
    throw_error<DataError>({printable(name), ": expected the details of evaluations, found another entry: ", e.what()});
  }
  return all;
}

void write_details(const std::string& path, const std::vector<EvaluationDetails>& all) {
  write_file_atomically(path, details_text(all));
}

std::vector<EvaluationDetails> read_details(const std::string& path) {
  if (!exists(path)) return {};
  return parse_details(read_file(path, JsonLimits().max_bytes), path);
}

}  // namespace tercel::recsys
