// The categories that the keys of slices stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/vocabulary.h"
#include "tercel/recsys/metrics/slices.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

class TERCEL_API SliceTitles {
 public:
  /**
   * Of a slot of a dataset that was converted from text, by its vocabulary; of others, the keys are the titles.
   * DataError for a damaged vocabulary.
   */
  SliceTitles(const data::Dataset& dataset, std::string_view slot);

  /**
   * Sets Slice::title of each: "c3"; "(other)" for the key of rare and unknown categories, "(none)" for rows without a
   * key.
   */
  void set(std::vector<Slice>& slices) const;

 private:
  std::string title_of(int64_t key, Span<std::string_view> categories) const;

  std::optional<data::Vocabulary> vocabulary_;
  int64_t field_ = -1, first_key_ = 0;
};

}  // namespace tercel::recsys
