// Options of graph entries that are not layers: Data and embeddings. Private.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** Layers with a table of their own; the first two are HugeCTR's usual ones. */
inline constexpr std::string_view kEmbeddingTypes[] = {
    "DistributedSlotSparseEmbeddingHash", "LocalizedSlotSparseEmbeddingHash", "LocalizedSlotSparseEmbeddingOneHot",
    "HybridSparseEmbedding", "SparseEmbedding"};

struct LabelOptions {
  std::vector<std::string> top;
  std::vector<int64_t> label_dim;

  static constexpr auto fields() {
    return option_list(
        option_field<&LabelOptions::top>("top", "name of the tensor, or a list of names", required()),
        option_field<&LabelOptions::label_dim>(
            "label_dim", "columns, or a list with those of each; a single tensor without it, or with 0, has all",
            at_least(0)));
  }
};

struct DenseOptions {
  std::string top = "dense";
  int64_t dense_dim = 0;

  static constexpr auto fields() {
    return option_list(option_field<&DenseOptions::top>("top", "name of the tensor", required()),
                       option_field<&DenseOptions::dense_dim>("dense_dim", "0: as the dataset has it", at_least(0)));
  }
};

struct SparseOptions {
  std::string top;
  std::vector<int64_t> nnz_per_slot;
  bool is_fixed_length = false;
  int64_t slot_num = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&SparseOptions::top>("top", "name of the input", required()),
        option_field<&SparseOptions::nnz_per_slot>("nnz_per_slot", "most keys that a row may have in each slot",
                                                   at_least(1)),
        option_field<&SparseOptions::is_fixed_length>("is_fixed_length",
                                                      "accepted, not needed: row offsets come from the data"),
        option_field<&SparseOptions::slot_num>("slot_num", "number of slots; 0: all that are left", at_least(0)));
  }
};

/** The bag modes that embeddings of a graph support. */
enum class Combiner : uint8_t { Sum, Mean };
constexpr auto enum_names(Combiner) {
  return std::to_array<EnumName<Combiner>>({{Combiner::Sum, "sum"}, {Combiner::Mean, "mean"}});
}

/** How the initial values of a table's rows are chosen. */
enum class TableInit : uint8_t { Range, SlotSize, TableSize };
constexpr auto enum_names(TableInit) {
  return std::to_array<EnumName<TableInit>>(
      {{TableInit::Range, "Range"}, {TableInit::SlotSize, "SlotSize"}, {TableInit::TableSize, "TableSize"}});
}

/** How an EmbeddingLookup makes one vector of a slot's keys; "average" is HugeCTR's name. */
enum class LookupCombiner : uint8_t { Sum, Mean, Concat };
constexpr auto enum_names(LookupCombiner) {
  return std::to_array<EnumName<LookupCombiner>>({{LookupCombiner::Sum, "sum"},
                                                  {LookupCombiner::Mean, "average"},
                                                  {LookupCombiner::Mean, "mean"},
                                                  {LookupCombiner::Concat, "concat"}});
}

struct LookupOptions {
  std::string table;
  LookupCombiner combiner = LookupCombiner::Sum;

  static constexpr auto fields() {
    return option_list(
        option_field<&LookupOptions::table>("table", "name of the table, which several lookups may share", required()),
        option_field<&LookupOptions::combiner>(
            "combiner", "sum or average of a slot's keys, or concat: their vectors side by side"));
  }
};

/** Which keys a table has: those of the dataset's ranges, or any that occur. */
enum class TableKind : uint8_t { Auto, Static, Hashed };
constexpr auto enum_names(TableKind) {
  return std::to_array<EnumName<TableKind>>(
      {{TableKind::Auto, "auto"}, {TableKind::Static, "static"}, {TableKind::Hashed, "hashed"}});
}

struct EmbeddingParameters {
  int64_t workspace_size_per_gpu_in_mb = 0;
  int64_t max_vocabulary_size_global = 0;
  int64_t embedding_vec_size = 16;
  Combiner combiner = Combiner::Sum;
  std::vector<int64_t> slot_size_array;
  TableInit init = TableInit::Range;
  double init_stddev = 0;
  double init_range = 0.05;
  TableKind table = TableKind::Auto;
  Eviction eviction = Eviction::None;
  int64_t admission = 1;
  double default_value = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&EmbeddingParameters::workspace_size_per_gpu_in_mb>(
            "workspace_size_per_gpu_in_mb",
            "where neither the dataset nor the next option says how many keys there are, the rows that fit, with the "
            "optimizer's states: of a static table, or most of a hashed one",
            at_least(0), at_most(1 << 30)),
        option_field<&EmbeddingParameters::max_vocabulary_size_global>(
            "max_vocabulary_size_global",
            "rows of a static table, 0: the dataset's keys; most rows of a hashed one, 0 or -1: no limit; -1 also "
            "makes the table hashed",
            at_least(-1)),
        option_field<&EmbeddingParameters::embedding_vec_size>("embedding_vec_size", "width of a row", at_least(1),
                                                               at_most(1 << 16)),
        option_field<&EmbeddingParameters::combiner>("combiner", "sum or mean of a slot's keys"),
        option_field<&EmbeddingParameters::slot_size_array>("slot_size_array", "number of keys of each slot",
                                                            at_least(1)),
        option_field<&EmbeddingParameters::init>(
            "init",
            "initial rows by init_stddev and init_range, or uniform in +- sqrt(1 / keys of the slot or of the table)"),
        option_field<&EmbeddingParameters::init_stddev>(
            "init_stddev", "initial rows normal with this deviation; 0: uniform", at_least(0), at_most(1e30)),
        option_field<&EmbeddingParameters::init_range>("init_range", "initial rows uniform in +- this", at_least(0),
                                                       at_most(1e30)),
        option_field<&EmbeddingParameters::table>(
            "table_type",
            "static: a row for each key of a range; hashed: a row for each key that occurs in training, any int64; "
            "auto: hashed where neither the dataset nor options say how many keys there are"),
        option_field<&EmbeddingParameters::eviction>(
            "eviction",
            "hashed: the keys that lose their rows when the table is full: none (an error), by frequency or age"),
        option_field<&EmbeddingParameters::admission>(
            "admission", "hashed: at which occurrence in training a key gets its row", at_least(1)),
        option_field<&EmbeddingParameters::default_value>(
            "default_value", "hashed: of the vectors of keys without a row", at_least(-1e30), at_most(1e30)));
  }
};

}  // namespace tercel::recsys
