// Event files for TensorBoard: TFRecords of protobuf messages.
//
// A record is the length of its data (64 bits), the masked CRC-32C of the length, the data, and its masked CRC-32C. The
// data is a message Event of TensorFlow (event.proto, summary.proto), of which a few fields are written here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/recsys/report/metrics_record.h"
#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel::recsys {

/** Appends scalars and texts to a new event file. Each call writes whole records, so that a reader may follow. */
class TERCEL_API EventWriter {
 public:
  /**
   * Creates events.out.tfevents.SECONDS.HOST.PROCESS in a folder, behind those that it has. Values of `first_step` and
   * later steps in other files of the folder do not count: a resumed run repeats them. IoError.
   */
  EventWriter(const std::string& folder, int64_t first_step);

  /** Every value of a record that is a number, as scalar "train/loss" or "test/auc": under the kind of the record, for
   * an evaluation its part, where it says that. float32, as TensorBoard has them. */
  void add(const MetricsRecord& record);
  /** A text in Markdown. */
  void add_text(std::string_view tag, std::string_view text, int64_t step);
  const std::string& path() const { return file_.path(); }

 private:
  void write(int64_t step, const std::string& fields);

  File file_;
};

}  // namespace tercel::recsys
