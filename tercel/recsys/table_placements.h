// Placements of single tables, which a configuration gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/recsys/embedding/placement.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

struct TableLoad;

/** Where one table is; an entry of solver.table_placements. */
struct GivenPlacement {
  std::string table;
  Placement placement = Placement::Replicated;
  std::vector<int64_t> ranks;

  static constexpr auto fields() {
    return option_list(
        option_field<&GivenPlacement::table>("table", "its name", required()),
        option_field<&GivenPlacement::placement>("placement", "where its rows are", required()),
        option_field<&GivenPlacement::ranks>(
            "ranks", "that have its rows, in the order in which they take turns; empty: all", at_least(0)));
  }
  friend bool operator==(const GivenPlacement&, const GivenPlacement&) = default;
};

/**
 * Notes the placements that are given in the loads of their tables, where plan_placements() finds them. ConfigError
 * that names the table for one that there is not, one that is given twice, a placement that it cannot have, ranks of a
 * table that is replicated, and a rank that is given twice or that so many do not have; 0 ranks: any number of them.
 */
TERCEL_API void set_given_placements(Span<GivenPlacement> given, int64_t ranks, std::vector<TableLoad>& tables);

}  // namespace tercel::recsys
