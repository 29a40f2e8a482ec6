// What a session does together with those of other ranks.
#include <utility>

#include "tercel/ops/common/copy.h"
#include "tercel/recsys/session.h"
#include "tercel/util/checksum.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/profile.h"

namespace tercel::recsys {

/** ConfigError unless all ranks train the same. */
void Session::check_ranks() const {
  const std::pair<const char*, std::string> parts[] = {{"version of Tercel", identity_.tercel_version},
                                                       {"configuration", to_json(identity_.config)},
                                                       {"dataset", dump_json_line(write_options(identity_.data))}};
  for (const auto& [name, text] : parts) {
    const auto own = static_cast<int64_t>(checksum(text.data(), text.size()));
    const std::vector<int64_t> all = numbers_of_ranks(*group_, own);
    for (size_t r = 1; r < all.size(); ++r)
      TERCEL_CHECK(all[r] == all[0], ConfigError, "session: expected the same ", name, " on all ranks, but rank ", r,
                   " has another than rank 0");
  }
}

/** Tells the ranks that follow what to do. */
void Session::tell(RankCommand command, const std::string& text) const {
  if (leads_) message_of_first(*group_, {command, text});
}

void Session::follow() {
  check_dataset("follow");
  for (bool goes_on = group_ != nullptr; goes_on;) {
    const auto [command, text] = message_of_first(*group_);
    goes_on = obey(command, text);
  }
}

void Session::leave_ranks() {
  group_ = nullptr;
  leads_ = false;
}

/** False at the end. */
bool Session::obey(RankCommand command, const std::string& text) {
  const auto go_on = [](int64_t) { return true; };
  try {
    switch (command) {
      case RankCommand::Step: step(); break;
      case RankCommand::Skip: skip(); break;
      case RankCommand::Validate: measure(data::PartName::Valid, go_on); break;
      case RankCommand::Test: measure(data::PartName::Test, go_on); break;
      case RankCommand::CheckFinite: check_finite(); break;
      case RankCommand::Save: write(nullptr, {}); break;
      case RankCommand::Load: load(Checkpoint(text)); break;
      case RankCommand::LoadNewData: load(Checkpoint(text), NewData::Accept); break;
      case RankCommand::End: return false;
    }
  } catch (const NumericError&) {  // all ranks have it
  } catch (const IoError&) {       // of the checkpoint that rank 0 writes
    if (command != RankCommand::Save) throw;
  }
  return true;
}

/** The sum over the parts of a batch. */
Tensor Session::of_all_ranks(const Tensor& loss) {
  if (group_ == nullptr) return loss;
  const Tensor sum = to(loss.detach(), kFloat64).clone();
  sum_over_ranks(*group_, sum);
  return sum;
}

void Session::reduce() {
  check_gradients("reduce");
  if (group_ == nullptr) return;
  const ProfileRange range("reduce gradients", RangeKind::Annotation);
  sum_over_ranks(*group_, model_.parameters().gradients());
  model_.embeddings().reduce_gradients();
}

}  // namespace tercel::recsys
