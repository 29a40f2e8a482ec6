// Files of predictions, with the ids of their rows: CSV, .npy and Parquet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/parquet_table.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

enum class PredictionFormat : uint8_t { Csv, Npy, Parquet };

constexpr auto enum_names(PredictionFormat) {
  return std::to_array<EnumName<PredictionFormat>>(
      {{PredictionFormat::Csv, "csv"}, {PredictionFormat::Npy, "npy"}, {PredictionFormat::Parquet, "parquet"}});
}

/**
 * Names of the columns of probabilities: "probability"; of several heads "probability/loss1", and of a head of several
 * columns or classes "probability/loss1/0" and so on.
 */
TERCEL_API std::vector<std::string> prediction_names(Span<Head> heads);

/** Where predictions are written. */
class TERCEL_API PredictionWriter {
 public:
  virtual ~PredictionWriter();

  virtual void write(const Predictions& predictions) = 0;
  /** Files appear under their name here, and are removed otherwise. */
  virtual void commit() = 0;
};

/** What the ids are. */
struct IdColumn {
  std::string name = {};  ///< empty: there are none
  data::ValueType type = data::ValueType::I64;
};

/**
 * Writes a file: its first column are the ids, if there are any, the others the probabilities. A .npy file without ids
 * is an array [rows] or [rows, columns] of float32, with ids an array of records with a field for each column (NumPy's
 * structured array), for which ids that are texts are in memory until commit(), as their longest length must be known.
 * ConfigError if the ids have the name of a column of probabilities.
 */
TERCEL_API std::unique_ptr<PredictionWriter> make_prediction_file(PredictionFormat format, const std::string& path,
                                                                  const std::vector<std::string>& names,
                                                                  const IdColumn& id);

/** Writes CSV text by a function, which receives the header with the first rows, or at commit() if there are none. */
TERCEL_API std::unique_ptr<PredictionWriter> make_prediction_text(FunctionRef<void(std::string_view)> write,
                                                                  const std::vector<std::string>& names,
                                                                  const IdColumn& id);

}  // namespace tercel::recsys
