#include "tercel/data/data_identity.h"

#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

Span<FileIdentity> files_of(const DataIdentity& identity, PartName part) {
  for (const PartIdentity& candidate : identity.parts)
    if (candidate.part == part) return candidate.files;
  return {};
}

std::string size_text(const FileIdentity& file) { return str_cat({file.bytes, " bytes and ", file.rows, " rows"}); }

}  // namespace

DataIdentity identity_of(const Dataset& dataset) {
  DataIdentity identity;
  identity.schema = dataset.schema;
  if (dataset.conversion && dataset.conversion->vocabulary)
    identity.vocabulary = dataset.conversion->vocabulary->checksum;
  for (const PartName name : {PartName::Train, PartName::Test}) {
    if (dataset.part(name).files.empty()) continue;
    PartIdentity part{name, {}};
    for (const DataFile& file : dataset.part(name).files)
      part.files.push_back({file.path, file.bytes, file.rows, file.checksum});
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
    TERCEL_CHECK(x.size == y.size && x.first_key == y.first_key, DataError, printable(name),
                 ": made with another vocabulary than the model's: slot '", printable(y.name), "': expected ", x.size,
                 " keys from ", x.first_key, " on, found ", y.size, " from ", y.first_key, " on");
  }
  TERCEL_CHECK(expected.vocabulary.empty() || found.vocabulary.empty() || expected.vocabulary == found.vocabulary,
               DataError, printable(name), ": made with another vocabulary than the model's: expected checksum ",
               expected.vocabulary, ", found ", found.vocabulary);
}

}  // namespace tercel::data
