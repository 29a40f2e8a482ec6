// What a search for good options varies: entries of a configuration, with the values that each may take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/recsys/model/config.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** Values of one entry. */
struct SearchRange {
  enum class Kind : uint8_t {
    Choice,     ///< one of `choices`
    Uniform,    ///< from `low` to `high`
    Log,        ///< the same, with a uniform logarithm
    Integer,    ///< an integer from `low` to `high`, both included
    LogInteger  ///< the same, with a uniform logarithm
  };
  std::string entry;  ///< as of set_config(): "solver.lr"
  Kind kind = Kind::Choice;
  std::vector<std::string> choices;
  double low = 0, high = 0;
};

/**
 * Parses "solver.lr=log:0.001:0.1", "solver.batchsize=128,256,512", "...=uniform:0:0.5", "...=int:2:6" or
 * "...=logint:4:64". Separates choices that are lists themselves by '|': "...num_outputs=256,128|64". ConfigError that
 * begins with --search for anything else.
 */
TERCEL_API SearchRange parse_search(std::string_view text);

/**
 * The assignments of a trial, "entry=value" for each range: functions of seed, trial and the place of the range. Trial
 * 0 assigns nothing: it is the configuration as it is.
 */
TERCEL_API std::vector<std::string> draw_trial(Span<SearchRange> ranges, uint64_t seed, int64_t trial);

}  // namespace tercel::recsys
