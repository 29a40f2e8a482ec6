#include "tercel/recsys/part_seed.h"

#include "tercel/util/checksum.h"
#include "tercel/util/philox.h"

namespace tercel::recsys {

uint64_t seed_of_part(uint64_t seed, std::string_view name) {
  const PhiloxBlock block = Philox{seed, checksum(name.data(), name.size())}(0);
  return random_u64(block.word[0], block.word[1]);
}

}  // namespace tercel::recsys
