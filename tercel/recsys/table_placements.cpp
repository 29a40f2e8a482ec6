#include "tercel/recsys/table_placements.h"

#include <algorithm>
#include <string_view>

#include "tercel/recsys/placement_plan.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

TableLoad& table_of(const std::string& name, std::vector<TableLoad>& tables) {
  std::vector<std::string_view> names;
  for (TableLoad& table : tables) {
    if (table.name == name) return table;
    names.push_back(table.name);
  }
  throw_error<ConfigError>(
      {"solver.table_placements: there is no table '", printable(name), "'", known_names(name, names)});
}

void check_ranks(const GivenPlacement& given, int64_t ranks, const std::string& where) {
  TERCEL_CHECK(given.placement != Placement::Replicated || given.ranks.empty(), ConfigError, where,
               "every rank has all rows of a table that is replicated; expected no ranks, found ", given.ranks.size());
  std::vector<int64_t> sorted = given.ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  TERCEL_CHECK(twice == sorted.end(), ConfigError, where, "expected each rank once, found ", *twice, " twice");
  if (sorted.empty()) return;
  const int64_t bad = sorted.front() < 0 ? sorted.front() : sorted.back();
  TERCEL_CHECK(bad >= 0 && (ranks == 0 || bad < ranks), ConfigError, where, "expected ranks from 0 ",
               ranks == 0 ? std::string("on") : "to " + std::to_string(ranks - 1), ", found ", bad);
}

}  // namespace

void set_given_placements(Span<GivenPlacement> given, int64_t ranks, std::vector<TableLoad>& tables) {
  for (const GivenPlacement& one : given) {
    TableLoad& table = table_of(one.table, tables);
    const std::string where = str_cat({"solver.table_placements: table '", printable(one.table), "': "});
    TERCEL_CHECK(!table.given, ConfigError, where, "it is there twice");
    TERCEL_CHECK(one.placement != Placement::Localized || table.is_static, ConfigError, where,
                 "it grows, and cannot be localized; expected distributed or replicated");
    check_ranks(one, ranks, where);
    table.given = TablePlacement{one.placement, one.ranks};
  }
}

}  // namespace tercel::recsys
