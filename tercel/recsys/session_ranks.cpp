// What a session does together with those of other ranks.
#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "tercel/distributed/error.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/placement_plan.h"
#include "tercel/recsys/session.h"
#include "tercel/recsys/table_placements.h"
#include "tercel/util/checksum.h"
#include "tercel/util/format.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/profile.h"
#include "tercel/util/warning.h"

namespace tercel::recsys {

namespace {

/** An error that all ranks have, as they have counted together. */
struct BadRecordsOfRanks : DataError {
  using DataError::DataError;
};

}  // namespace

/** No effect with one rank. */
void Session::join(distributed::ProcessGroup& group) {
  if (group.size() == 1) return;
  group_ = &group;
  check_ranks();
  std::vector<TableLoad> tables = table_loads(model_);
  const SolverOptions& solver = config_.solver;
  set_given_placements(solver.table_placements, group.size(), tables);
  model_.set_group(group, plan_placements(tables, solver.placement, group.size(), solver.batchsize));
}

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

RankMessage Session::follow() {
  check_dataset("follow");
  RankMessage message;
  while (group_ != nullptr) {
    message = message_of_first(*group_);
    if (!obey(message.command, message.text)) break;
  }
  return message;
}

/** In a handler of exceptions: whether the others have this one, too. */
void Session::note_failure() noexcept {
  if (group_ == nullptr) return;
  try {
    throw;
  } catch (const NumericError&) {
  } catch (const BadRecordsOfRanks&) {
  } catch (const DistributedError&) {
  } catch (...) {
    has_failed_alone_ = true;
  }
}

void Session::leave_ranks() {
  buckets_.reset();
  forget_ahead();
  group_ = nullptr;
  leads_ = false;
}

/** False if it is for no session. */
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
      case RankCommand::WarmStart:
      case RankCommand::End: return false;
    }
  } catch (const NumericError&) {  // all ranks have it
  } catch (const BadRecordsOfRanks&) {
  } catch (const IoError&) {  // of the checkpoint that rank 0 writes
    if (command != RankCommand::Save) throw;
  }
  return true;
}

/** Begins to add up the losses of the parts of a batch. With them travels the number of bad records up to there. */
void Session::begin_sum_of_losses(const Tensor& own) {
  loss_sums_ = empty({2}, kFloat64);
  loss_sums_.data<double>()[0] = own.item<double>();
  loss_sums_.data<double>()[1] = static_cast<double>(read_.position.bad_records);
  summing_losses_ = start_sum_over_ranks(*group_, loss_sums_);
}

Tensor Session::sum_of_losses() {
  summing_losses_->wait();
  batch_bad_records_ = static_cast<int64_t>(loss_sums_.data<double>()[1]);
  return loss_sums_.select(0, 0);
}

int64_t Session::sum_of_ranks(int64_t number) const {
  if (group_ == nullptr) return number;
  const std::vector<int64_t> all = numbers_of_ranks(*group_, number);
  return std::accumulate(all.begin(), all.end(), int64_t{0});
}

/** Behind a batch: the place to go on from. */
void Session::keep_position(int64_t bad_records_of_ranks) {
  position_ = read_.position;
  is_ahead_ = has_read_ahead_;
  in_batch_ = false;
  bad_records_ = group_ == nullptr ? position_.bad_records : bad_records_of_ranks;
  if (!first_bad_record_.empty() || bad_records_ == loaded_bad_records_) return;
  first_bad_record_ = group_ == nullptr ? read_.first_bad_record : text_of_ranks(*group_, read_.first_bad_record);
}

/** That several ranks together have not left out too many; the reader of one checks that itself. */
void Session::check_bad_records(int64_t count, const std::string& first) const {
  const int64_t most = config_.data.max_bad_records;
  if (group_ != nullptr && count > most)
    throw BadRecordsOfRanks(str_cat(
        {data::bad_records_text(count, first), "; expected at most ", most, " of all ranks, by max_bad_records"}));
}

/** Warns of those of an evaluation. */
void Session::report_bad_records(const data::BatchReader& reader) const {
  if (group_ == nullptr) return warn_of_bad_records(reader);
  const int64_t count = sum_of_ranks(reader.bad_records());
  if (count == 0) return;
  const std::string first = text_of_ranks(*group_, reader.first_bad_record());
  check_bad_records(count, first);
  if (group_->rank() == 0) warn(str_cat({"evaluate: ", data::bad_records_text(count, first)}));
}

/**
 * Writes this rank's part of a checkpoint into a folder, and gives rank 0 what all ranks have written. Shards are
 * written by their ranks; files that every rank could write, the largest first, by the rank with the least to write.
 * Errors of writing; IoError on the other ranks.
 */
void Session::write_files(const std::string& folder, Span<CheckpointFile> files, std::vector<WrittenFile>& written) {
  const ShardNumber number{group_->rank(), group_->size()};
  std::vector<size_t> whole;
  std::vector<int64_t> bytes(files.size(), 0);
  for (size_t f = 0; f < files.size(); ++f) {
    for (const std::vector<io::NamedTensor>* tensors : {&files[f].tensors, &files[f].others})
      for (const io::NamedTensor& t : *tensors) bytes[f] += static_cast<int64_t>(t.tensor.nbytes());
    if (!files[f].shard) whole.push_back(f);
  }
  std::stable_sort(whole.begin(), whole.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<int64_t> load(static_cast<size_t>(group_->size()), 0);
  std::vector<bool> is_own(files.size(), true);
  for (const size_t f : whole) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += bytes[f];
    is_own[f] = least - load.begin() == group_->rank();
  }
  std::exception_ptr error;
  std::string text;
  std::vector<WrittenFile> own;
  try {
    for (size_t f = 0; f < files.size(); ++f)
      if (is_own[f]) own.push_back(write_checkpoint_file(folder, files[f], number));
  } catch (const Error& e) {
    error = std::current_exception();
    text = e.what();
  }
  const std::vector<std::string> errors = texts_of_ranks(*group_, text);
  const std::vector<std::string> lists = texts_of_ranks(*group_, error ? std::string() : to_json(own));
  if (error) std::rethrow_exception(error);
  for (size_t r = 0; r < errors.size(); ++r)
    TERCEL_CHECK(errors[r].empty(), IoError, "session: save: rank ", r, " of ", errors.size(), ": ", errors[r]);
  for (const std::string& list : lists)
    for (WrittenFile& file : written_files(list)) written.push_back(std::move(file));
}

void Session::reduce() {
  check_gradients("reduce");
  if (group_ == nullptr) return;
  const ProfileRange range("reduce gradients", RangeKind::Annotation);
  buckets_->start();
  model_.embeddings().reduce_gradients();  // while the last buckets travel
  buckets_->finish();
}

}  // namespace tercel::recsys
