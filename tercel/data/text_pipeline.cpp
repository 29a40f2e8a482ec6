#include <utility>

#include "tercel/data/text_pipeline_impl.h"
#include "tercel/util/parallel.h"

namespace tercel::data {

namespace {

// Enough work between two meetings of the threads.
constexpr size_t kBlocksPerThread = 4;

}  // namespace

TextPipeline::TextPipeline(TextTable& table, FunctionRef<void(ParsedBlock&)> work) : table_(table), work_(work) {
  const auto threads = static_cast<size_t>(num_threads());
  for (Group& group : groups_) group.blocks.resize(threads > 1 ? threads * kBlocksPerThread : 1);
}

TextPipeline::~TextPipeline() { finish_reading(); }

void TextPipeline::read(Group& group) {
  group.count = 0;
  group.error = nullptr;
  try {
    while (group.count < group.blocks.size() && table_.next(group.blocks[group.count].text)) ++group.count;
  } catch (...) {
    group.error = std::current_exception();
  }
  group.bytes_done = table_.bytes_done();
}

void TextPipeline::start_reading(Group& group) {
  if (group.blocks.size() == 1) return;
  reader_.emplace([this, &group] { read(group); });
}

void TextPipeline::finish_reading() {
  if (reader_) reader_->join();
  reader_.reset();
}

std::span<ParsedBlock> TextPipeline::next() {
  Group& group = groups_[present_];
  Group& following = groups_[1 - present_];
  if (group.blocks.size() == 1 || !started_)
    read(group);
  else
    finish_reading();
  started_ = true;
  if (group.count == 0) {
    if (group.error) std::rethrow_exception(group.error);
    return {};
  }
  present_ = 1 - present_;
  if (group.error) {  // delivered next time
    following.count = 0;
    following.error = std::exchange(group.error, nullptr);
  } else {
    start_reading(following);
  }
  parallel_for(0, static_cast<int64_t>(group.count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ParsedBlock& block = group.blocks[static_cast<size_t>(i)];
      table_.parse(block.text, block.rows);
      work_(block);
    }
  });
  bytes_done_ = group.bytes_done;
  return {group.blocks.data(), group.count};
}

}  // namespace tercel::data
