#include "tercel/data/data_identity.h"

#include <algorithm>

#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::data {

namespace {

Span<FileIdentity> files_of(const DataIdentity& identity, PartName part) {
  for (const PartIdentity& candidate : identity.parts)
    if (candidate.part == part) return candidate.files;
  return {};
}

/** "zscore", and what is done before it: "zscore, clip_min 0". */
std::string transform_text(const Conversion& conversion) {
  std::string text(to_string(conversion.dense_transform));
  for (const char* name : {"fill_missing", "clip_min", "clip_max"}) {
    const std::string* const value = conversion.setting(name);
    if (value != nullptr && !value->empty() && *value != "[]") text += str_cat({", ", name, " ", *value});
  }
  return text;
}

std::string size_text(const FileIdentity& file) { return str_cat({file.bytes, " bytes and ", file.rows, " rows"}); }

}  // namespace

DataIdentity identity_of(const Dataset& dataset) {
  DataIdentity identity;
  identity.schema = dataset.schema;
  if (dataset.conversion) {
    const Conversion& conversion = *dataset.conversion;
    if (conversion.vocabulary) identity.vocabulary = conversion.vocabulary->checksum;
    if (identity.schema.dense_dim > 0) identity.dense_transform = transform_text(conversion);
    identity.negative_rate = conversion.negative_rate;
    identity.dense_mean = conversion.dense_mean;
    identity.dense_std = conversion.dense_std;
  }
  for (const auto& [name, rows] : dataset.parts()) {
    if (rows.files.empty()) continue;
    PartIdentity part{name, {}};
    for (const DataFile& file : rows.files) part.files.push_back({file.path, file.bytes, file.rows, file.checksum});
    identity.parts.push_back(std::move(part));
  }
  return identity;
}

std::string digest_of(const DataIdentity& identity, PartName part) {
  std::string text;
  for (const FileIdentity& file : files_of(identity, part))
    text += str_cat({file.bytes, " ", file.rows, " ", file.checksum, "\n"});
  return text.empty() ? text : checksum_to_hex(checksum(text.data(), text.size()));
}

PartComparison compare_part(const DataIdentity& expected, const DataIdentity& found, PartName part) {
  const Span<FileIdentity> before = files_of(expected, part), now = files_of(found, part);
  PartComparison result;
  if (before.size() != now.size()) {
    result.difference = str_cat({to_string(part), ": expected ", before.size(), before.size() == 1 ? " file" : " files",
                                 ", found ", now.size()});
    return result;
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const FileIdentity &a = before[i], &b = now[i];
    const bool has_checksums = !a.checksum.empty() && !b.checksum.empty();
    result.by_size |= !has_checksums;
    const std::string place =
        str_cat({to_string(part), ": file ", i + 1, " of ", before.size(), ", ", printable(b.path), ": expected "});
    if (a.bytes != b.bytes || a.rows != b.rows)
      result.difference = str_cat({place, size_text(a), ", found ", size_text(b)});
    else if (has_checksums && a.checksum != b.checksum)
      result.difference = str_cat({place, "checksum ", a.checksum, ", found ", b.checksum});
    if (!result.difference.empty()) return result;
  }
  return result;
}

void check_same_meaning(const DataIdentity& expected, const DataIdentity& found, const std::string& name) {
  const Schema &a = expected.schema, &b = found.schema;
  TERCEL_CHECK(a.label_dim == b.label_dim && a.dense_dim == b.dense_dim && a.slot_num() == b.slot_num(), DataError,
               printable(name), ": expected rows as the model was trained on, of ", a.label_dim, " labels, ",
               a.dense_dim, " dense values and ", a.slot_num(), " slots, found ", b.label_dim, ", ", b.dense_dim,
               " and ", b.slot_num());
  for (size_t s = 0; s < a.slots.size(); ++s) {
    const Slot &x = a.slots[s], &y = b.slots[s];
    const auto keys = [](const Slot& slot) {
      return slot.size == 0 ? std::string("any keys") : str_cat({slot.size, " keys from ", slot.first_key, " on"});
    };
    TERCEL_CHECK(x.size == y.size && x.first_key == y.first_key, DataError, printable(name),
                 ": made with another vocabulary than the model's: slot '", printable(y.name), "': expected ", keys(x),
                 ", found ", keys(y));
  }
  for (size_t d = 0; d < a.dense_names.size() && !b.dense_names.empty(); ++d)
    TERCEL_CHECK(a.dense_names[d] == b.dense_names[d], DataError, printable(name),
                 ": other dense columns than the model's: column ", d + 1, ": expected '", printable(a.dense_names[d]),
                 "', found '", printable(b.dense_names[d]), "'");
  TERCEL_CHECK(expected.dense_transform.empty() || found.dense_transform.empty() ||
                   expected.dense_transform == found.dense_transform,
               DataError, printable(name),
               ": dense values made in another way than the model's: expected the transform ",
               printable(expected.dense_transform), ", found ", printable(found.dense_transform));
  TERCEL_CHECK(expected.vocabulary.empty() || found.vocabulary.empty() || expected.vocabulary == found.vocabulary,
               DataError, printable(name), ": made with another vocabulary than the model's: expected checksum ",
               expected.vocabulary, ", found ", found.vocabulary);
}

std::string compare_moments(const DataIdentity& expected, const DataIdentity& found) {
  const auto difference = [](const char* what, Span<double> a, Span<double> b) {
    for (size_t d = 0; d < std::min(a.size(), b.size()); ++d)
      if (a[d] != b[d])
        return str_cat({"dense column ", d + 1, ": standardised by the ", what, " ", dump_json_line(b[d]),
                        ", the model's data by ", dump_json_line(a[d])});
    return std::string();
  };
  const std::string of_mean = difference("mean", expected.dense_mean, found.dense_mean);
  return of_mean.empty() ? difference("standard deviation", expected.dense_std, found.dense_std) : of_mean;
}

}  // namespace tercel::data
