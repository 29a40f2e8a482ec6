// Text as MovieLens' ratings: it is refused with a DataError, or gives interactions that follow their rules.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

#include "tercel/data/ratings_impl.h"
#include "tercel/util/error.h"

using tercel::data::Interactions;
using tercel::data::Ratings;

namespace {

void check(const Interactions& found) {
  if (found.first.size() != found.user_names.size() + 1 || found.items.size() != found.sorted.size()) std::abort();
  for (int64_t user = 0; user < found.num_users(); ++user) {
    const auto begin = found.sorted.begin() + found.begin(user), end = begin + found.count(user);
    if (begin == end || std::adjacent_find(begin, end, std::greater_equal<>()) != end) std::abort();
    for (int64_t i = 0; i < found.count(user); ++i) {
      const uint32_t item = found.items[static_cast<size_t>(found.begin(user) + i)];
      if (item >= found.item_names.size() || !found.contains(user, item)) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    const Ratings ratings =
        tercel::data::read_ratings({"/proc/self/fd/" + std::to_string(fd)}, 0, [](int64_t, int64_t, int64_t) {});
    check(tercel::data::make_interactions(ratings, 1));
  } catch (const tercel::DataError&) {
  }
  ::close(fd);
  return 0;
}
