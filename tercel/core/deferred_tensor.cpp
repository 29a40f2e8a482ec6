#include "tercel/core/deferred_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "tercel/core/context.h"
#include "tercel/util/error.h"

namespace tercel {

const ElementType& element_type_of(ScalarType dtype) {
  if (dtype == ScalarType::Undefined) return kNoElementType;
  return *visit_all_types("element_type_of", dtype, []<class T> { return &element_type_of<T>(); });
}

DeferredTensor::DeferredTensor(Device device) : storage_(create_storage(device)) {}

DeferredTensor::DeferredTensor(const Tensor& tensor) {
  check_defined("DeferredTensor", tensor, "tensor");
  TERCEL_CHECK(tensor.has_storage() && tensor.layout() == Layout::Strided && tensor.is_contiguous(), RuntimeError,
               "DeferredTensor: expected a contiguous tensor, got ", describe(tensor));
  storage_ = tensor.storage();
  type_ = &element_type_of(tensor.dtype());
  sizes_ = DimVector(tensor.sizes());
  numel_ = tensor.numel();
  storage_offset_ = tensor.storage_offset();
}

Tensor DeferredTensor::tensor() const {
  TERCEL_CHECK(type_->dtype != ScalarType::Undefined, RuntimeError, "tensor: ops do not support elements of type ",
               type_->name);
  check_data(nullptr);
  return Tensor(
      make_intrusive<TensorImpl>(storage_, type_->dtype, sizes_, contiguous_strides(sizes_), storage_offset_));
}

size_t DeferredTensor::itemsize() const {
  TERCEL_CHECK(dtype_initialized(), RuntimeError,
               "Cannot report itemsize of Tensor that doesn't have initialized dtype "
               "(e.g., caffe2::Tensor x(CPU), prior to calling mutable_data<T>() on x)");
  return type_->itemsize;
}

namespace {

size_t bytes_of(int64_t offset, int64_t count, const ElementType& type) {
  int64_t items = 0, nbytes = 0;
  TERCEL_CHECK(!__builtin_add_overflow(offset, count, &items) &&
                   !__builtin_mul_overflow(items, static_cast<int64_t>(type.itemsize), &nbytes),
               RuntimeError, count, " elements of ", type.itemsize, " bytes do not fit 64 bits");
  return static_cast<size_t>(nbytes);
}

}  // namespace

bool DeferredTensor::set_sizes(DimVector sizes) {
  const int64_t count = numel_of(sizes);
  const bool changes = count != numel_;
  if (changes && !keeps_memory(count) && storage_->data()) free_memory();
  sizes_ = std::move(sizes);
  numel_ = count;
  return changes;
}

bool DeferredTensor::keeps_memory(int64_t count) const {
  // Without dtype no memory is needed, and none can be too large.
  const size_t needed = bytes_of(storage_offset_, count, *type_), capacity = storage_->nbytes();
  if (capacity < needed) return false;
  if (reserved_ || !dtype_initialized()) return true;
  return keep_on_shrink() && capacity - needed <= static_cast<size_t>(max_keep_on_shrink_memory());
}

void DeferredTensor::free_memory() {
  if (owns_alone()) {
    storage_->reset();
    storage_->bump_version();
  } else {
    storage_ = create_storage(device());
  }
  storage_offset_ = 0;
}

void DeferredTensor::reshape(IntSpan sizes) {
  const int64_t count = numel_of(sizes);
  TERCEL_CHECK(
      count == numel_, RuntimeError,
      "New size and old size are not equal. You cannot use Reshape, but should use Resize. The old sizes were ",
      IntSpan(sizes_), ", the new ones are ", sizes);
  sizes_ = DimVector(sizes);
}

Allocator& DeferredTensor::allocator() const {
  return storage_->allocator() ? *storage_->allocator() : get_allocator(device().type);
}

namespace {

/** Destroys elements that are objects before their memory is freed. */
struct Objects {
  DataPtr memory;
  const ElementType& type;
  int64_t count;

  Objects(DataPtr block, const ElementType& of, int64_t n) : memory(std::move(block)), type(of), count(n) {}
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects() {
    if (type.destroy) type.destroy(memory.get(), count);
  }
  static void give_back(void* context) { const std::unique_ptr<Objects> owner(static_cast<Objects*>(context)); }
};

DataPtr block_of(Allocator& allocator, const ElementType& type, int64_t count) {
  DataPtr memory = allocator.allocate(static_cast<size_t>(count) * type.itemsize);
  if (count == 0 || (!type.construct && !type.destroy)) return memory;
  void* const data = memory.get();
  const Device device = memory.device();
  auto objects = std::make_unique<Objects>(std::move(memory), type, 0);
  if (type.construct) type.construct(data, count);
  objects->count = count;
  return DataPtr(data, objects.release(), &Objects::give_back, device);
}

}  // namespace

/** Memory for `count` elements, none of which keeps a value; offset 0. */
void DeferredTensor::allocate(const ElementType& type, int64_t count) {
  Allocator& from = allocator();
  const size_t nbytes = bytes_of(0, count, type);
  DataPtr block = block_of(from, type, count);
  if (owns_alone()) {
    storage_->set_data_ptr_noswap(std::move(block));
    storage_->set_nbytes(nbytes);
    storage_->bump_version();
  } else {
    storage_ = make_intrusive<StorageImpl>(nbytes, std::move(block), &from, true);
  }
  type_ = &type;
  storage_offset_ = 0;
}

void* DeferredTensor::raw_mutable_data() {
  TERCEL_CHECK(dtype_initialized(), RuntimeError,
               "Calling raw_mutable_data() without meta, but the current meta is of unknown type.");
  return raw_mutable_data(*type_);
}

void* DeferredTensor::raw_mutable_data(const ElementType& type) {
  TERCEL_CHECK(type.itemsize != 0, RuntimeError, "raw_mutable_data: expected an initialized element type");
  if (*type_ == type && storage_initialized()) return const_cast<std::byte*>(first());
  const bool objects = type_->destroy || type.construct || type.destroy;
  const bool fits = !objects && storage_->nbytes() >= bytes_of(0, numel_, type) && storage_.unique();
  if (numel_ > 0 && !fits) {
    allocate(type, numel_);
  } else {
    // A later caller must not treat objects as bytes.
    if (objects && storage_->data()) free_memory();
    type_ = &type;
    storage_offset_ = 0;
  }
  return storage_->data();
}

void DeferredTensor::check_data(const ElementType* wanted) const {
  TERCEL_CHECK(dtype_initialized(), RuntimeError,
               "Cannot access data pointer of Tensor that doesn't have initialized "
               "dtype (e.g., caffe2::Tensor x(CPU), prior to calling mutable_data<T>() on x)");
  TERCEL_CHECK(!wanted || *wanted == *type_, RuntimeError, "Tensor type mismatch, caller expects elements to be ",
               wanted->name, ", while tensor contains ", type_->name, ". ");
  TERCEL_CHECK(
      storage_initialized(), RuntimeError,
      "The tensor has a non-zero number of elements, but its data is not allocated yet. Caffe2 uses a lazy "
      "allocation, so you will need to call mutable_data() or raw_mutable_data() to actually allocate memory.");
}

void DeferredTensor::reserve_space(int64_t outer) {
  TERCEL_CHECK(storage_.unique(), RuntimeError, "Can't call ReserveSpace on shared storage.");
  TERCEL_CHECK(!sizes_.empty() && outer >= 0, RuntimeError,
               "reserve_space: expected a first dimension and a size for "
               "it, got sizes ",
               IntSpan(sizes_), " and ", outer);
  static_cast<void>(itemsize());  // throws without a dtype
  DimVector wanted = sizes_;
  wanted[0] = outer;
  const int64_t count = numel_of(wanted);
  if (bytes_of(storage_offset_, count, *type_) <= storage_->nbytes()) return;
  allocate(*type_, count);
  reserved_ = true;
}

void DeferredTensor::extend(int64_t num, double growth_pct) {
  TERCEL_CHECK(!sizes_.empty(), RuntimeError, "extend: a tensor without dimensions cannot grow");
  TERCEL_CHECK(num >= 0, RuntimeError, "`num` must be non-negative for Extend");
  TERCEL_CHECK(growth_pct >= 0 && std::isfinite(growth_pct), RuntimeError, "extend: expected a percentage, got ",
               growth_pct);
  DimVector grown = sizes_;
  TERCEL_CHECK(!__builtin_add_overflow(grown[0], num, &grown[0]), RuntimeError, "extend: ", sizes_[0], " + ", num,
               " does not fit 64 bits");
  if (!storage_->data()) {
    // Nothing to keep: the next mutable_data() allocates.
    set_sizes(std::move(grown));
    return;
  }
  static_cast<void>(itemsize());
  const int64_t count = numel_of(grown);
  if (bytes_of(storage_offset_, count, *type_) > storage_->nbytes()) {
    DimVector room = grown;
    const double wanted = std::ceil(static_cast<double>(sizes_[0]) * (1 + growth_pct / 100));
    TERCEL_CHECK(wanted < 0x1p62, RuntimeError, "extend: ", wanted, " along the first dimension do not fit 64 bits");
    room[0] = std::max(grown[0], static_cast<int64_t>(wanted));
    const int64_t capacity = numel_of(room);
    Allocator& from = allocator();
    auto fresh =
        make_intrusive<StorageImpl>(bytes_of(0, capacity, *type_), block_of(from, *type_, capacity), &from, true);
    if (type_->copy)
      type_->copy(fresh->data(), first(), numel_);
    else if (numel_ > 0)
      std::memcpy(fresh->data(), first(), static_cast<size_t>(numel_) * type_->itemsize);
    storage_ = std::move(fresh);
    storage_offset_ = 0;
    reserved_ = true;
  }
  sizes_ = std::move(grown);
  numel_ = count;
}

void DeferredTensor::share_data(const DeferredTensor& source) {
  TERCEL_CHECK(numel_ == source.numel_, RuntimeError,
               "Size mismatch - did you call reshape before sharing the data? This has ", numel_,
               " elements, the source ", source.numel_);
  TERCEL_CHECK(source.storage_initialized(), RuntimeError,
               "Source tensor has no content and has size > 0: there is nothing to share");
  TERCEL_CHECK(source.dtype_initialized() || numel_ == 0, RuntimeError, "share_data: the source has no dtype");
  storage_ = source.storage_;
  type_ = source.type_;
  storage_offset_ = source.storage_offset_;
}

void DeferredTensor::share_external_pointer(DataPtr block, const ElementType& type, size_t capacity) {
  TERCEL_CHECK(type.itemsize != 0, RuntimeError,
               "To share with a raw external pointer you need to pass in an initialized data_type(TypeMeta).");
  const size_t needed = bytes_of(0, numel_, type);
  if (capacity == 0) capacity = needed;
  TERCEL_CHECK(capacity >= needed, RuntimeError, "share_external_pointer: ", capacity, " bytes for ", numel_,
               " elements of ", type.itemsize);
  if (storage_.unique())
    unique_storage_share_external_pointer(storage_, std::move(block), capacity);
  else
    storage_ = make_intrusive<StorageImpl>(capacity, std::move(block), nullptr, false);
  type_ = &type;
  storage_offset_ = 0;
}

}  // namespace tercel
