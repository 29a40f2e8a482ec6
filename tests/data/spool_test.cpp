#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tercel/data/spool_impl.h"
#include "tercel/util/file.h"

namespace tercel::data::test {
namespace {

DecodedRows rows_of(int64_t count, int64_t first) {
  DecodedRows rows;
  rows.rows = count;
  rows.keys.resize(1);
  for (int64_t row = 0; row < count; ++row) rows.keys[0].own.push_back(first + row);
  rows.keys[0].keys = rows.keys[0].own.data();
  return rows;
}

/** Mappings of files of spools in this process. */
size_t mappings() {
  const std::string maps = read_file("/proc/self/maps", int64_t{64} << 20);
  size_t count = 0;
  for (size_t at = 0; (at = maps.find("/tercel-spool-", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Spool, ManyPiecesShareAMapping) {
  const size_t before = mappings();
  Spool spool(1000);
  std::vector<DecodedRows> kept;
  for (int64_t i = 0; i < 2000; ++i) kept.push_back(spool.keep(rows_of(50, 50 * i)));
  EXPECT_EQ(mappings(), before + 1);
  // Larger than a mapping of many.
  const int64_t large = (int64_t{80} << 20) / 8;
  kept.push_back(spool.keep(rows_of(large, 100000)));
  kept.push_back(spool.keep(rows_of(3, 7)));
  EXPECT_LE(mappings(), before + 3);
  for (int64_t i = 0; i < 2000; ++i)
    for (int64_t row = 0; row < 50; ++row) ASSERT_EQ(kept[static_cast<size_t>(i)].keys[0].keys[row], 50 * i + row);
  EXPECT_EQ(kept[2000].keys[0].keys[large - 1], 100000 + large - 1);
  EXPECT_EQ(kept[2001].keys[0].keys[2], 9);
}

}  // namespace
}  // namespace tercel::data::test
