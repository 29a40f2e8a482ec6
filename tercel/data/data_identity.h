// Identity of a dataset: the meaning of its rows, and its files in order.
//
// Made from a description, and independent of that description's version and of the files' format. Checkpoints store
// it, to know later whether the same rows are read again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

struct FileIdentity {
  std::string path;  // relative to the dataset's folder, or absolute; for messages: a file may move
  int64_t bytes = 0;
  int64_t rows = 0;
  std::string checksum;  // XXH3-64 of the content in 16 hexadecimal digits; empty: not known

  static constexpr auto fields() {
    return option_list(
        option_field<&FileIdentity::path>("path", "relative to the dataset's folder, or absolute", required()),
        option_field<&FileIdentity::bytes>("bytes", "size", at_least(0), required()),
        option_field<&FileIdentity::rows>("rows", "rows in the file", at_least(0), required()),
        option_field<&FileIdentity::checksum>("checksum", "XXH3-64 in hexadecimal digits, or empty"));
  }
};

struct PartIdentity {
  PartName part = PartName::Train;
  std::vector<FileIdentity> files;

  static constexpr auto fields() {
    return option_list(option_field<&PartIdentity::part>("part", "which rows", required()),
                       option_field<&PartIdentity::files>("files", "their files, in order", required()));
  }
};

struct DataIdentity {
  Schema schema;
  std::string vocabulary;          // checksum of the vocabulary that made the keys; empty: none
  std::string dense_transform;     // how dense values were made from text; empty: not known
  std::vector<double> dense_mean;  // moments of the transforms `standard` and `zscore`; else none
  std::vector<double> dense_std;
  double negative_rate = 1;         // share of the train rows of label 0 that were kept
  std::vector<PartIdentity> parts;  // those that have files

  static constexpr auto fields() {
    return option_list(option_field<&DataIdentity::schema>("schema", "contents of a row", required()),
                       option_field<&DataIdentity::vocabulary>("vocabulary", "its checksum, or empty"),
                       option_field<&DataIdentity::dense_transform>("dense_transform", "of the conversion, or empty"),
                       option_field<&DataIdentity::dense_mean>("dense_mean", "moments of the transform"),
                       option_field<&DataIdentity::dense_std>("dense_std", "moments of the transform", above(0)),
                       option_field<&DataIdentity::negative_rate>(
                           "negative_rate", "share of the train rows of label 0 that were kept", above(0), at_most(1)),
                       option_field<&DataIdentity::parts>("parts", "those that have files", required()));
  }
};

/** The identity of a described dataset; opens no file. */
TERCEL_API DataIdentity identity_of(const Dataset& dataset);

/** 16 hexadecimal digits that differ if compare_part() finds a difference; empty if there is no such part. */
TERCEL_API std::string digest_of(const DataIdentity& identity, PartName part);

/** Whether a part has the same rows in two datasets, according to the descriptions. */
struct PartComparison {
  std::string difference;  ///< the first one, "train: file 2 of 3: expected ..., found ..."; empty: the same
  bool by_size = false;    ///< some files have no checksums to compare, and their sizes and rows are the same
};
/** Compares file by file: by checksum, or by bytes and rows if one of the two has none. Ignores paths. */
TERCEL_API PartComparison compare_part(const DataIdentity& expected, const DataIdentity& found, PartName part);

/**
 * DataError that starts with `name` unless rows of `found` mean what rows of `expected` mean: the same dims, keys of
 * the same slots, vocabulary, dense columns and transform. What one of the two does not know (bare files have neither
 * vocabulary nor names) is not compared. compare_part() compares the rows themselves.
 */
TERCEL_API void check_same_meaning(const DataIdentity& expected, const DataIdentity& found, const std::string& name);

/**
 * The first difference between the moments that standardised the dense values; empty: none, or not known. Rows of
 * another day have other moments, so this is not an error.
 */
TERCEL_API std::string compare_moments(const DataIdentity& expected, const DataIdentity& found);

}  // namespace tercel::data
