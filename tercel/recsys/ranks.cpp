#include "tercel/recsys/ranks.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include "tercel/autograd/function.h"
#include "tercel/distributed/error.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/huge_pages_impl.h"
#include "tercel/ops/reduce/array_reduction.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

struct SumOverRanks : Function<SumOverRanks> {
  static Tensor forward(FunctionContext& context, const Tensor& x, distributed::ProcessGroup* group) {
    context.data = group;
    return summed(*group, x);
  }
  static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& gradients) {
    return {summed(*std::any_cast<distributed::ProcessGroup*>(context.data), gradients[0])};
  }
  static Tensor summed(distributed::ProcessGroup& group, const Tensor& x) {
    const Tensor sum = x.detach().clone(MemoryFormat::Contiguous);
    sum_over_ranks(group, sum);
    return sum;
  }
};

}  // namespace

void sum_over_ranks(distributed::ProcessGroup& group, const Tensor& x) {
  group.await([&] { return start_sum_over_ranks(group, x); });
}

distributed::Work start_sum_over_ranks(distributed::ProcessGroup& group, const Tensor& x) {
  const TensorOptions like(x.dtype(), x.device());
  const auto add_up = [like](void* out, Span<const void*> parts, int64_t count) {
    std::vector<Tensor> arrays;
    // from_blob() takes memory that may be written to; these are only read.
    for (const void* part : parts) arrays.push_back(from_blob(const_cast<void*>(part), {count}, like));
    reduce_arrays(ArrayReduction::Sum, from_blob(out, {count}, like), arrays);
  };
  return group.all_reduce(x.detach(), add_up);
}

Tensor recorded_sum_over_ranks(distributed::ProcessGroup& group, const Tensor& x) {
  return SumOverRanks::apply(x, &group);
}

std::vector<int64_t> numbers_of_ranks(distributed::ProcessGroup& group, int64_t number) {
  const Tensor own = full({1}, number, kInt64), all = empty({group.size()}, kInt64);
  group.await([&] { return group.all_gather(all, own); });
  const auto* const first = all.data<int64_t>();
  return {first, first + group.size()};
}

Tensor rows_of_ranks(distributed::ProcessGroup& group, const Tensor& rows, Span<int64_t> counts) {
  const Tensor own = rows.detach().contiguous();
  DimVector sizes = own.sizes();
  int64_t row = 1;  // elements
  for (size_t d = 1; d < sizes.size(); ++d) row *= sizes[d];
  sizes[0] = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<int64_t> elements(counts.begin(), counts.end());
  for (int64_t& count : elements) count *= row;
  const Tensor all = empty_in_huge_pages(sizes, TensorOptions(own.dtype(), own.device()));
  group.await([&] { return group.all_gather(all, own, elements); });
  return all;
}

namespace {

/** Bytes of a text of rank 0, of which all know the length. */
std::string text_of_first(distributed::ProcessGroup& group, const std::string& text, int64_t length) {
  if (length == 0) return {};
  const Tensor bytes = empty({length}, kUInt8);
  if (group.rank() == 0) std::copy(text.begin(), text.end(), bytes.data<uint8_t>());
  group.await([&] { return group.broadcast(bytes, 0); });
  return {bytes.data<uint8_t>(), bytes.data<uint8_t>() + length};
}

}  // namespace

std::string text_of_first(distributed::ProcessGroup& group, const std::string& text) {
  const Tensor length = full({1}, static_cast<int64_t>(text.size()), kInt64);
  group.await([&] { return group.broadcast(length, 0); });
  return text_of_first(group, text, *length.data<int64_t>());
}

std::vector<std::string> texts_of_ranks(distributed::ProcessGroup& group, const std::string& text) {
  const Tensor own = empty({static_cast<int64_t>(text.size())}, kUInt8);
  std::copy(text.begin(), text.end(), own.data<uint8_t>());
  const std::vector<int64_t> counts = numbers_of_ranks(group, own.numel());
  const Tensor all = rows_of_ranks(group, own, counts);
  const auto* next = all.data<uint8_t>();
  std::vector<std::string> texts;
  for (const int64_t count : counts) {
    texts.emplace_back(next, next + count);
    next += count;
  }
  return texts;
}

std::string text_of_ranks(distributed::ProcessGroup& group, const std::string& text) {
  const std::vector<int64_t> sizes = numbers_of_ranks(group, static_cast<int64_t>(text.size()));
  const auto first = std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; });
  if (first == sizes.end()) return {};
  const int64_t root = first - sizes.begin();
  const Tensor bytes = empty({*first}, kUInt8);
  if (group.rank() == root) std::copy(text.begin(), text.end(), bytes.data<uint8_t>());
  group.await([&] { return group.broadcast(bytes, root); });
  return std::string(bytes.data<uint8_t>(), bytes.data<uint8_t>() + *first);
}

void do_together(distributed::ProcessGroup* group, FunctionRef<void()> work) {
  if (group == nullptr) return work();
  std::exception_ptr error;
  std::string text;
  try {
    work();
  } catch (const DistributedError&) {  // the others have it too, and cannot be asked
    throw;
  } catch (const std::exception& e) {
    error = std::current_exception();
    text = e.what();
    if (text.empty()) text = "an error without a text";
  }
  const std::vector<std::string> texts = texts_of_ranks(*group, text);
  if (error) std::rethrow_exception(error);
  for (size_t r = 0; r < texts.size(); ++r)
    TERCEL_CHECK(texts[r].empty(), IoError, "rank ", r, " of ", texts.size(), ": ", texts[r]);
}

void do_on_first(distributed::ProcessGroup* group, FunctionRef<void()> work) {
  do_together(group, [&] {
    if (group == nullptr || group->rank() == 0) work();
  });
}

RankMessage message_of_first(distributed::ProcessGroup& group, const RankMessage& message) {
  const Tensor header = empty({2}, kInt64);
  auto* const numbers = header.data<int64_t>();
  numbers[0] = static_cast<int64_t>(message.command);
  numbers[1] = static_cast<int64_t>(message.text.size());
  group.await([&] { return group.broadcast(header, 0); });
  return {static_cast<RankCommand>(numbers[0]), text_of_first(group, message.text, numbers[1])};
}

}  // namespace tercel::recsys
